//! A typo is reported at its position, with the name that was meant.
//!
//! 1,000 typos are drawn with a fixed seed: one character lost, doubled, swapped or changed, in a name of at least three
//! characters. The names are drawn in equal parts from the keys of the format, from references (words of closed lists,
//! states, ports, keys of the data), and from templates (roots, keys of the data, filters, tags) of every definition of
//! the gallery and of the corpora. Names that a definition gives itself, and those that only another file or a server
//! knows, cannot be recognised as typos and are not drawn.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use switchward_formats::document::{Node, Span, Syntax, Value, read};
use switchward_formats::{Finding, Report, SourceFile, compile_file, detect, has_errors};
use switchward_testkit::Rng;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests");
const FOLDERS: [&str; 3] = ["gallery", "corpus/checkpoint/definitions", "corpus/conversation/definitions"];
/// Definitions of the corpora that are wrong on purpose.
const BROKEN: [&str; 1] = ["release-broken.yaml"];
const TYPOS: usize = 1000;
const FOUND_MIN: usize = 950;
const NAME_CHARS_MIN: usize = 3;

/// Keys whose values are words of closed lists, or names that the same file gives.
const REFERRING: [&str; 19] = [
    "type",
    "from",
    "to",
    "initial",
    "target_state",
    "next",
    "port",
    "channel",
    "target",
    "content_type",
    "wait_for",
    "on_error",
    "method",
    "reducer",
    "transform",
    "operator",
    "execution_mode",
    "action",
    "over",
];
/// Keys whose values are maps with keys that the author chooses, whose values are the format's again.
const NAMING: [&str; 3] = ["states", "answers", "state_schema"];
/// Keys whose values the author chooses.
const FREE: [&str; 6] = ["input_mapping", "output_mapping", "headers", "value", "values", "body"];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    file: usize,
    /// Bytes before the name.
    at: usize,
    name: String,
    /// The position at which the text that holds the name may be reported.
    scalar: Option<(u32, u32)>,
}

struct Source {
    path: String,
    text: String,
    findings: Vec<Finding>,
}

#[expect(clippy::disallowed_methods, reason = "a test that reads the corpus")]
fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            walk(&path, found);
        } else if path.extension().is_some_and(|it| it == "yaml" || it == "json") {
            found.push(path);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that reads the corpus")]
fn sources() -> Vec<Source> {
    let mut paths = Vec::new();
    FOLDERS.iter().for_each(|folder| walk(&Path::new(ROOT).join(folder), &mut paths));
    let source = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let path = path.to_string_lossy().into_owned();
        detect(&[SourceFile { path: &path, bytes: text.as_bytes() }]).ok()?;
        let findings = compile_file(&path, text.as_bytes(), None).findings;
        Some(Source { path, text, findings })
    };
    paths.into_iter().filter_map(source).collect()
}

fn tree(path: &str, text: &str) -> Option<Node> {
    read(text.as_bytes(), Syntax::of(path, text.as_bytes()), &mut Report::new(path))
}

/// The byte offset of a span.
fn offset(text: &str, span: Span) -> usize {
    let line = usize::try_from(span.line).expect("it fits") - 1;
    let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
    let chars = text[start..].chars().take(usize::try_from(span.column).expect("it fits") - 1);
    start + chars.map(char::len_utf8).sum::<usize>()
}

struct Gather<'a> {
    file: usize,
    text: &'a str,
    keys: BTreeSet<Site>,
    references: BTreeSet<Site>,
}

impl Gather<'_> {
    /// The site of a name that is the whole value, in quotes or not.
    fn site(&self, name: &str, span: Span) -> Option<Site> {
        let start = offset(self.text, span);
        let at = if self.text[start..].starts_with(['"', '\'']) { start + 1 } else { start };
        let here = self.text[at..].starts_with(name) && name.chars().count() >= NAME_CHARS_MIN;
        let scalar = Some((span.line, span.column));
        here.then(|| Site { file: self.file, at, name: name.to_owned(), scalar })
    }

    fn node(&mut self, node: &Node, above: &str, guarded: bool) {
        match &node.value {
            Value::List(items) => items.iter().for_each(|item| self.node(item, above, guarded)),
            Value::Map(entries) => {
                for (key, value) in entries {
                    let named = NAMING.contains(&above) && value.as_map().is_some();
                    if !named {
                        self.keys.extend(self.site(&key.text, key.span));
                    }
                    if FREE.contains(&key.text.as_str()) {
                        continue;
                    }
                    let inside = guarded || ["guards", "conditions"].contains(&key.text.as_str());
                    let refers = REFERRING.contains(&key.text.as_str()) || (guarded && key.text == "key");
                    if let Some(text) = value.as_text().filter(|text| refers && !text.contains(['.', '{'])) {
                        self.references.extend(self.site(text, value.span));
                    }
                    let above = if named { "" } else { key.text.as_str() };
                    self.node(value, above, inside);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unread => {}
        }
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Names of templates, found in the text of the file as it is written.
fn in_templates(file: usize, text: &str) -> BTreeSet<Site> {
    let mut found = BTreeSet::new();
    let word = |at: usize| {
        let rest = &text[at..];
        &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]
    };
    let mut add = |at: usize, name: &str| {
        if name.chars().count() >= NAME_CHARS_MIN {
            found.insert(Site { file, at, name: name.to_owned(), scalar: None });
        }
    };
    for root in ["gathered_data.", "gathered."] {
        for (at, _) in text.match_indices(root) {
            if text[..at].ends_with(|c| is_part(c) || c == '.') {
                continue;
            }
            add(at, root.trim_end_matches('.'));
            add(at + root.len(), word(at + root.len()));
        }
    }
    for (open, close) in [("{{", "}}"), ("{%", "%}")] {
        for (at, _) in text.match_indices(open) {
            let Some(end) = text[at..].find(close) else { continue };
            let tag = &text[at..at + end];
            for (pipe, _) in tag.match_indices('|') {
                let gap = tag[pipe + 1..].len() - tag[pipe + 1..].trim_start().len();
                add(at + pipe + 1 + gap, word(at + pipe + 1 + gap));
            }
            if open == "{%" {
                let gap = tag[2..].len() - tag[2..].trim_start_matches(['-', ' ']).len();
                add(at + 2 + gap, word(at + 2 + gap));
            }
        }
    }
    found
}

/// Returns true if a key of the data occurs only once in its file and a warning says that nothing sets it: then only the
/// caller that starts a session knows its spelling.
fn is_given_from_outside(site: &Site, source: &Source) -> bool {
    let words = source.text.split(|c| !is_part(c)).filter(|word| *word == site.name);
    let warned = format!("the key `{}` is read, but nothing in the workflow sets it", site.name);
    words.count() == 1 && source.findings.iter().any(|finding| finding.message == warned)
}

/// The name with one character lost, doubled, swapped with the next, or changed.
fn mistyped(name: &str, rng: &mut Rng) -> String {
    let chars: Vec<char> = name.chars().collect();
    loop {
        let mut typed = chars.clone();
        let at = rng.below(typed.len());
        match rng.below(4) {
            0 => {
                typed.remove(at);
            }
            1 => typed.insert(at, typed[at]),
            2 if at + 1 < typed.len() => typed.swap(at, at + 1),
            _ => typed[at] = char::from(b'a' + u8::try_from(rng.below(26)).expect("it is a letter")),
        }
        if typed != chars {
            return typed.into_iter().collect();
        }
    }
}

/// Returns true if a new finding is at the typo and names what was meant, alone or inside the text that holds it.
fn is_found(site: &Site, source: &Source, findings: &[Finding]) -> bool {
    let before = &source.text[..site.at];
    let line = u32::try_from(before.matches('\n').count() + 1).expect("it fits");
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let column = u32::try_from(column).expect("it fits");
    let own_line = source.text.lines().nth(before.matches('\n').count()).unwrap_or_default();
    findings.iter().filter(|finding| !source.findings.contains(finding)).any(|finding| {
        let exact = (finding.line, finding.column) == (line, column);
        let whole = site.scalar == Some((finding.line, finding.column));
        // A path whose root is mistyped is reported as a whole, at its beginning, with the whole path that was meant.
        let meant = finding.nearest.as_ref().is_some_and(|near| {
            *near == site.name || (near.contains(&site.name) && own_line.contains(near.as_str()))
        });
        (exact || whole) && meant
    })
}

#[test]
fn of_a_thousand_typos_nearly_all_are_reported_at_their_position_with_what_was_meant() {
    let sources = sources();
    assert!(sources.len() > 200, "only {} definitions were read", sources.len());
    let mut classes: [BTreeSet<Site>; 3] = Default::default();
    let wrong: Vec<&str> = sources
        .iter()
        .filter(|source| has_errors(&source.findings))
        .filter_map(|source| source.path.rsplit('/').next())
        .collect();
    assert_eq!(wrong, BROKEN, "no error is found in the others");
    for (file, source) in sources.iter().enumerate().filter(|(_, source)| !has_errors(&source.findings)) {
        let root = tree(&source.path, &source.text).expect("it compiles");
        let (keys, references) = Default::default();
        let mut gather = Gather { file, text: &source.text, keys, references };
        gather.node(&root, "", false);
        let known = |site: &Site| !is_given_from_outside(site, source);
        classes[0].extend(gather.keys);
        classes[1].extend(gather.references.into_iter().filter(known));
        classes[2].extend(in_templates(file, &source.text).into_iter().filter(known));
    }
    let classes = classes.map(|sites| sites.into_iter().collect::<Vec<_>>());
    assert!(classes.iter().all(|sites| sites.len() > 100), "{:?}", classes.each_ref().map(Vec::len));
    let mut rng = Rng::new(17);
    let (mut typos, mut missed) = (0, Vec::new());
    while typos < TYPOS {
        let class = typos % classes.len();
        let site = &classes[class][rng.below(classes[class].len())];
        let source = &sources[site.file];
        let typed = mistyped(&site.name, &mut rng);
        let mut text = source.text.clone();
        text.replace_range(site.at..site.at + site.name.len(), &typed);
        // Names in a comment are not checked.
        if tree(&source.path, &text) == tree(&source.path, &source.text) {
            continue;
        }
        typos += 1;
        let findings = compile_file(&source.path, text.as_bytes(), None).findings;
        if !is_found(site, source, &findings) {
            let new: Vec<String> = findings
                .iter()
                .filter(|finding| !source.findings.contains(finding))
                .map(|it| format!("{} {}:{} ~{:?}", it.code, it.line, it.column, it.nearest))
                .collect();
            let line = source.text[..site.at].matches('\n').count() + 1;
            missed.push(format!("{}:{line}: {} as {typed}: {new:?}", source.path, site.name));
        }
    }
    let found = TYPOS - missed.len();
    assert!(found >= FOUND_MIN, "{found} of {TYPOS} were found; not these:\n{}", missed.join("\n"));
}
