//! The examples of `docs/cli.md`, which the program's help shows, too: each is typed in a shell and must end as it should.
//! `cli-examples.md` says what must be there first.

use std::collections::BTreeSet;
use std::fs;

use super::reader::play;
use crate::support::repository;

const PAGE: &str = "docs/cli.md";
/// Its groups of commands are the ones of the page.
const NEEDED: &str = include_str!("cli-examples.md");
const FENCE: &str = "```";
/// The fence of the page's examples.
const EXAMPLES: &str = "sh manual";
const EACH: &str = "sh each";
const BEFORE: &str = "sh before ";
/// What the examples write, and what stands for it here: the ids of a page, variables, and files in its folder.
const WRITTEN: [(&str, &str); 9] = [
    ("gat_...", "GATE"),
    ("wrk_...", "WORK"),
    ("eff_...", "EFFECT"),
    (" TOKEN", " $TOKEN"),
    ("drop ID", "drop $ID"),
    ("3f9c0a17b2d84e65a1c0", "$MAIL"),
    ("/etc/switchward/", "etc/"),
    ("/var/lib/switchward", "data"),
    ("/backups/", "backups/"),
];

/// A group of commands, or one command of it.
#[derive(Debug, Default)]
struct Section {
    group: String,
    /// Empty for the group itself.
    command: String,
    /// What follows the backticks of a fence, and the text.
    blocks: Vec<(String, String)>,
    /// The items of its lists.
    notes: Vec<String>,
}

/// The sections of a page from its first group on.
fn sections(page: &str) -> Vec<Section> {
    let (mut all, mut open) = (Vec::<Section>::new(), None::<(String, String)>);
    for line in page.lines() {
        match (line.strip_prefix(FENCE), &mut open) {
            (Some(info), None) => open = Some((info.to_owned(), String::new())),
            (Some(_), Some(_)) => {
                let block = open.take();
                all.last_mut().expect("a block is in a group").blocks.extend(block);
            }
            (None, Some((_, text))) => text.extend([line, "\n"]),
            (None, None) => {
                let group = all.last().map(|section| section.group.clone()).unwrap_or_default();
                if let Some(group) = line.strip_prefix("## ") {
                    all.push(Section { group: group.to_owned(), ..Section::default() });
                } else if let Some(command) = line.strip_prefix("### ") {
                    all.push(Section { group, command: command.to_owned(), ..Section::default() });
                } else if let (Some(note), Some(section)) = (line.strip_prefix("- "), all.last_mut()) {
                    section.notes.push(note.to_owned());
                }
            }
        }
    }
    all
}

impl Section {
    /// Its examples, without their comments; a line that ends with ` \` goes on.
    fn examples(&self) -> Vec<String> {
        let blocks = self.blocks.iter().filter(|(info, _)| info == EXAMPLES);
        let text: String = blocks.map(|(_, text)| text.replace(" \\\n  ", " ")).collect();
        text.lines().map(|line| line.split("  #").next().unwrap_or_default().trim().to_owned()).collect()
    }

    /// The note of this kind about an example: what is between the kind and the example's beginning.
    fn note(&self, kind: &str, example: &str, used: &mut BTreeSet<String>) -> Option<&str> {
        self.notes.iter().find_map(|note| {
            let (value, begins) = note.strip_prefix(kind)?.split_once(": ")?;
            let begins = begins.strip_prefix('`')?.strip_suffix('`')?;
            example.starts_with(begins).then(|| {
                used.insert(note.clone());
                value.trim()
            })
        })
    }

    /// What is played before this example, as blocks of a page.
    fn before(&self, example: &str, used: &mut BTreeSet<String>) -> String {
        let is_before =
            |info: &str| info == EACH || info.strip_prefix(BEFORE).is_some_and(|it| example.starts_with(it));
        let blocks = self.blocks.iter().filter(|(info, _)| is_before(info));
        blocks.fold(String::new(), |page, (info, text)| {
            used.insert(info.clone());
            page + &fenced("sh", text)
        })
    }

    /// What is played once, as blocks of a page.
    fn first(&self) -> String {
        let once = |info: &str| info != EACH && !info.starts_with(BEFORE);
        let blocks = self.blocks.iter().filter(|(info, _)| once(info));
        blocks.map(|(info, text)| fenced(info, text)).collect()
    }

    /// What must have been used: its notes, and its blocks before examples.
    fn rules(&self) -> impl Iterator<Item = &String> {
        let blocks = self.blocks.iter().map(|(info, _)| info);
        self.notes.iter().chain(blocks.filter(|info| *info == EACH || info.starts_with(BEFORE)))
    }
}

fn fenced(info: &str, text: &str) -> String {
    format!("{FENCE}{info}\n{text}{FENCE}\n")
}

/// An example as the test types it.
fn typed(example: &str, needed: &Section, used: &mut BTreeSet<String>) -> String {
    let mut line = WRITTEN.iter().fold(example.to_owned(), |line, (shown, here)| line.replace(shown, here));
    if needed.note("Confirmed", example, used).is_some() {
        line.push_str(" --yes");
    }
    if needed.note("Repeated", example, used).is_some() {
        line = format!("until {line}; do :; done");
    }
    if let Some(code) = needed.note("Exits ", example, used) {
        line.push_str(&format!(" # exits {code}"));
    }
    line
}

/// A group as a page to play, and the number of its examples.
fn page_of(group: &str) -> (String, usize) {
    let shown = sections(&fs::read_to_string(repository(PAGE)).expect("a page"));
    let needed = sections(NEEDED);
    let of_group = |section: &&Section| section.group == group;
    let (mut page, mut count, nothing) = (String::new(), 0, Section::default());
    for section in shown.iter().filter(of_group) {
        let mut used = BTreeSet::new();
        let mut alike = needed.iter().filter(of_group).filter(|it| it.command == section.command);
        let needed = alike.next().unwrap_or(&nothing);
        page.push_str(&needed.first());
        for example in section.examples() {
            let before = needed.before(&example, &mut used);
            let line = typed(&example, needed, &mut used);
            page.extend([before, fenced("sh", &format!("{line}\n"))]);
            count += 1;
        }
        let unused: Vec<&String> = needed.rules().filter(|rule| !used.contains(*rule)).collect();
        assert!(unused.is_empty(), "cli-examples.md, {}: about no example: {unused:?}", section.command);
    }
    (page, count)
}

/// Plays the examples of a group, of which there are at least `least`.
#[track_caller]
fn run(group: &str, least: usize) {
    let (page, count) = page_of(group);
    assert!(count >= least, "only {count} examples of {group} are run:\n{page}");
    if let Err(failure) = play(&format!("examples of docs/cli.md, {group}"), &page) {
        panic!("{failure}");
    }
}

#[test]
fn of_definitions() {
    run("Definitions", 23);
}

#[test]
fn of_sessions() {
    run("Sessions", 36);
}

#[test]
fn of_people() {
    run("People", 9);
}

#[test]
fn of_delivery() {
    run("Delivery", 20);
}

#[test]
fn of_operating() {
    run("Operating", 55);
}

#[test]
fn of_development() {
    run("Development", 24);
}

#[test]
fn what_is_needed_is_for_commands_of_the_page() {
    let shown = sections(&fs::read_to_string(repository(PAGE)).expect("a page"));
    let name = |section: &Section| (section.group.clone(), section.command.clone());
    let known: BTreeSet<(String, String)> = shown.iter().map(name).collect();
    let listed: Vec<(String, String)> = sections(NEEDED).iter().map(name).collect();
    let unknown: Vec<&(String, String)> = listed.iter().filter(|it| !known.contains(*it)).collect();
    assert!(unknown.is_empty(), "no such commands: {unknown:?}");
    assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), listed.len(), "a command is there twice");
}

#[test]
fn an_example_is_typed_with_what_it_needs() {
    let page = "## A\n### b\n- `x`: option\n```sh manual\nb gat_... \\\n  c   # why\nb /etc/switchward/d\nb e\n```\n";
    let rules = "## A\n### b\n- Exits 4: `b gat_...`\n- Confirmed: `b /etc/`\n- Repeated: `b e`\n```sh before b gat_\nf\n```\n";
    let (shown, needed) = (sections(page), sections(rules));
    let (command, needed, mut used) = (&shown[1], &needed[1], BTreeSet::new());
    let lines: Vec<String> =
        command.examples().iter().map(|example| typed(example, needed, &mut used)).collect();
    assert_eq!(lines, ["b GATE c # exits 4", "b etc/d --yes", "until b e; do :; done"]);
    assert_eq!(needed.before("b gat_...", &mut used), "```sh\nf\n```\n");
    assert_eq!(needed.before("b e", &mut used), "");
    assert_eq!(used.len(), needed.rules().count());
}
