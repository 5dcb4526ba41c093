//! The examples of a page that run. `docs/contributing.md` says how a page is played; an example counts here only if its
//! page plays it: a scenario that a command of the page plays, and a definition that such a scenario names.

use std::collections::BTreeSet;

use switchward_formats::document::{Node, Syntax, Value, read};
use switchward_formats::{Format, Report, SourceFile, detect};

use super::{in_name, page};

const FENCE: &str = "```";
/// The commands that play scenarios.
const PLAYING: [&str; 2] = ["switchward test ", "switchward simulate "];
/// The argument that stands for all files of a page.
const ALL_FILES: &str = ".";
/// A command that must fail plays a wrong file.
const FAILING: &str = "# exits ";

/// What an example is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A definition or a policy of this format.
    Definition(Format),
    /// A scenario.
    Scenario,
}

/// A file of a page, with the words that occur in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Example {
    name: String,
    kind: Kind,
    words: BTreeSet<String>,
}

/// The words of the examples of this kind that run on these pages.
pub(super) fn played(pages: &[&str], kind: Kind) -> BTreeSet<String> {
    let run = pages.iter().flat_map(|name| running(&page(name)));
    run.filter(|example| example.kind == kind).flat_map(|example| example.words).collect()
}

/// The words of the blocks that a page's test compares with what a server prints or answers.
pub(super) fn shown(name: &str) -> BTreeSet<String> {
    let blocks = blocks(&page(name)).into_iter();
    let compared = blocks.filter(|(info, _)| ["text output", "json answer"].contains(&info.as_str()));
    let words = |(_, text): (String, String)| -> Vec<String> {
        text.split(|c| !in_name(c)).map(str::to_owned).collect()
    };
    compared.flat_map(words).collect()
}

/// The examples of a page that run.
pub(super) fn running(page: &str) -> Vec<Example> {
    let blocks = blocks(page);
    let commands = blocks.iter().filter(|(info, _)| info == "sh").flat_map(|(_, text)| text.lines());
    let playing: Vec<&str> = commands
        .filter(|line| PLAYING.iter().any(|command| line.starts_with(command)) && !line.contains(FAILING))
        .flat_map(str::split_whitespace)
        .collect();
    let (scenarios, definitions): (Vec<Example>, Vec<Example>) =
        blocks.iter().filter_map(example).partition(|example| example.kind == Kind::Scenario);
    let is_played = |example: &Example| playing.iter().any(|it| *it == example.name || *it == ALL_FILES);
    let scenarios: Vec<Example> = scenarios.into_iter().filter(is_played).collect();
    let is_named =
        |example: &Example| scenarios.iter().any(|scenario| scenario.words.contains(&example.name));
    let definitions: Vec<Example> = definitions.into_iter().filter(is_named).collect();
    scenarios.into_iter().chain(definitions).collect()
}

/// The fenced blocks of a page: what follows the backticks of the fence, and the text.
fn blocks(page: &str) -> Vec<(String, String)> {
    let (mut all, mut open) = (Vec::new(), None::<(String, String)>);
    for line in page.lines() {
        match (line.strip_prefix(FENCE), &mut open) {
            (Some(info), None) => open = Some((info.to_owned(), String::new())),
            (Some(_), Some(_)) => all.extend(open.take()),
            (None, Some((_, text))) => text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    all
}

/// The definition, policy or scenario of a block; `None` if it is something else.
fn example((info, text): &(String, String)) -> Option<Example> {
    let (language, name) = info.split_once(' ')?;
    if !["yaml", "json"].contains(&language) || !name.contains('.') {
        return None;
    }
    let root = read(text.as_bytes(), Syntax::of(name, text.as_bytes()), &mut Report::new(name))?;
    let kind = match detect(&[SourceFile { path: name, bytes: text.as_bytes() }]) {
        Ok(format) => Kind::Definition(format),
        Err(_) => root.get("definition").map(|_| Kind::Scenario)?,
    };
    let mut words = BTreeSet::new();
    collect(&root, &mut words);
    Some(Example { name: name.to_owned(), kind, words })
}

/// Adds the keys of a tree, and the words of its values: of a text with white space, which is prose, only those of its
/// references in braces.
fn collect(node: &Node, words: &mut BTreeSet<String>) {
    match &node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                words.insert(key.text.clone());
                collect(value, words);
            }
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, words)),
        Value::String(text) => {
            let is_prose = text.contains(char::is_whitespace);
            let inside = |part: &str| part.split('}').next().unwrap_or_default().to_owned();
            let parts: Vec<String> =
                if is_prose { text.split('{').skip(1).map(inside).collect() } else { vec![text.clone()] };
            words.extend(parts.iter().flat_map(|part| part.split(|c| !in_name(c))).map(str::to_owned));
            words.extend((!is_prose).then(|| text.clone()));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Unread => {}
    }
}

#[test]
fn only_what_a_page_plays_runs() {
    let conversation =
        "states: [{name: a, type: conversation, instructions: 'any {gathered.who}'}]\ntransitions: []\n";
    let page = format!(
        "`shown`\n```yaml a.yaml\nname: a\n{conversation}```\n```yaml b.yaml\nname: b\n{conversation}```\n\
         ```yaml fragment\nfragment: 1\n```\n\
         ```yaml a.scenario.yaml\ndefinition: a.yaml\nsteps: [{{turn: {{}}}}]\n```\n\
         ```yaml b.scenario.yaml\ndefinition: b.yaml\nsteps: [{{signal: {{}}}}]\n```\n\
         ```sh\nswitchward test a.scenario.yaml\nswitchward test b.scenario.yaml # exits 5\n```\n\
         ```sh manual\nswitchward test .\n```\n"
    );
    let run = running(&page);
    let names: Vec<(&str, Kind)> = run.iter().map(|example| (example.name.as_str(), example.kind)).collect();
    let definition = Kind::Definition(Format::Conversation);
    assert_eq!(names, [("a.scenario.yaml", Kind::Scenario), ("a.yaml", definition)]);
    let words = run.iter().flat_map(|example| &example.words).map(String::as_str);
    let words: BTreeSet<&str> = words.filter(|word| !word.is_empty()).collect();
    for (word, occurs) in
        [("turn", true), ("gathered", true), ("who", true), ("any", false), ("signal", false)]
    {
        assert_eq!(words.contains(word), occurs, "{word}: {words:?}");
    }
}
