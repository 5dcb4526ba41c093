//! The pages of the formats are complete: every name that a reader of a format lists is in one of its pages, between
//! backticks, and in an example of a page that runs.
//!
//! The readers list the keys of their maps and the words of their values as literals in arrays and constants. The names
//! come from these sources, so that a key without a line in its page or without an example fails here. The pages of
//! scenarios are checked the same way, because scenarios are read with the same functions.

mod examples;
mod fragments;
mod history;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use examples::{Kind, played, shown};
use switchward_formats::{Format, codes};
use switchward_machine::{FieldType, reserved_keys};

const CRATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

const CHECKPOINT: &str = "formats-checkpoint.md";
const CONVERSATION: [&str; 2] = ["formats-conversation.md", "formats-conversation-operations.md"];
const NATIVE: &str = "formats-native.md";
const POLICIES: &str = "policies.md";
const SCENARIOS: &str = "scenarios.md";
const FINDINGS: &str = "findings.md";
/// The page that plays a conversation on a server.
const CONVERSATIONS: &str = "conversations.md";
/// Where the codes of scenarios are, which are not in the table of the formats.
const SCENARIO_CODES: &str = "scenario/src/codes.rs";
/// Codes of scenarios that there are at least.
const SCENARIO_CODES_MIN: usize = 3;

/// Names of the checkpoint format that are no fields of a definition: the scenarios of the page have them.
const CHECKPOINT_CALLS: [(&str, &str); 2] =
    [("cost_usd", "the name of a cap, which an operator raises"), ("task", "a tool, which an agent calls")];
/// The same of the conversation format.
const CONVERSATION_CALLS: [(&str, &str); 4] = [
    ("record_data", "a tool, which an agent calls"),
    ("retry_state", "a tool, which an agent calls"),
    ("signal_completion", "a tool, which an agent calls"),
    ("switch_workflow", "a tool, which an agent calls"),
];
/// Names of the conversation format that only a server shows: the outputs of its page have them.
const CONVERSATION_OUTPUTS: [(&str, &str); 2] =
    [("active", "the status of a run"), ("terminal", "what ends a run, in a history")];
/// Names that no policy document has.
const POLICY_HINTS: [(&str, &str); 2] = [
    ("name", "a key of definitions: a finding says so"),
    ("states", "a key of definitions: a finding says so"),
];
/// Names that no scenario can show.
const SCENARIO_UNPLAYED: [(&str, &str); 1] = [("bypass", "no format of this version decides a call so")];

#[expect(clippy::disallowed_methods, reason = "a test that reads sources and pages")]
fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The sources of a folder of `crates`, one after the other, without unit tests.
#[expect(clippy::disallowed_methods, reason = "a test that reads sources and pages")]
fn sources(folder: &str) -> String {
    let entries = std::fs::read_dir(Path::new(CRATES).join(folder)).expect("the folder is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs"));
    paths.sort();
    let code = |path: &PathBuf| text(path).split("#[cfg(test)]").next().unwrap_or_default().to_owned();
    paths.iter().map(code).collect::<Vec<_>>().join("\n")
}

/// The string literals of a source that are names and are in brackets or in a constant.
fn names(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(next) = source[at..].chars().next() {
        let rest = &source[at..];
        let length = token_length(rest);
        match next {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '"' => {
                let literal = rest[..length].trim_matches('"');
                let constant = source[..at].trim_end().ends_with(": &str =");
                if (depth > 0 || constant) && is_name(literal) {
                    found.insert(literal.to_owned());
                }
            }
            _ => {}
        }
        at += length;
    }
    found
}

/// The bytes of the comment, literal or character at the beginning of a source.
fn token_length(rest: &str) -> usize {
    let first = rest.chars().next().map_or(0, char::len_utf8);
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if let Some(raw) = rest.strip_prefix("r#\"") {
        return raw.find("\"#").map_or(rest.len(), |end| "r#\"".len() + end + "\"#".len());
    }
    if let Some(quoted) = rest.strip_prefix('"') {
        let mut escaped = false;
        let end = quoted.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        return end.map_or(rest.len(), |end| end + 2);
    }
    let Some(after) = rest.strip_prefix('\'') else { return first };
    if let Some(escape) = after.strip_prefix('\\') {
        // The character after the backslash may be the quote itself.
        return escape[1..].find('\'').map_or(first, |end| end + "'\\x'".len());
    }
    let mut chars = after.chars();
    let character = chars.next().map_or(0, char::len_utf8);
    // Otherwise it is a lifetime.
    if chars.next() == Some('\'') { character + 2 } else { first }
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(in_name)
}

/// The text of a page of `docs/`.
fn page(name: &str) -> String {
    text(&Path::new(DOCS).join(name))
}

/// The words between the backticks of a page, without those of its examples.
fn words(name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_example = false;
    for line in page(name).lines() {
        if line.starts_with("```") {
            in_example = !in_example;
        } else if !in_example {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.flat_map(|span| span.split(|c: char| !in_name(c))).map(str::to_owned));
        }
    }
    found
}

/// Asserts that the pages have these names; there are at least `least` of them.
fn assert_documented(names: &BTreeSet<String>, least: usize, pages: &[&str]) {
    assert!(names.len() >= least, "only {} names were found for {pages:?}: {names:?}", names.len());
    let words: BTreeSet<String> = pages.iter().flat_map(|page| words(page)).collect();
    let missing: Vec<&String> = names.difference(&words).collect();
    assert!(missing.is_empty(), "not between backticks in docs/, {pages:?}: {missing:?}");
}

/// Asserts that each name is in one of these words of examples that run.
fn assert_played(names: &BTreeSet<String>, words: &BTreeSet<String>) {
    let missing: Vec<&String> = names.difference(words).collect();
    assert!(missing.is_empty(), "in no example of docs/ that runs: {missing:?}");
}

/// The names without these exceptions, each of which must be needed: it is one of the names, and in no example.
fn without(
    names: &BTreeSet<String>,
    exceptions: &[(&str, &str)],
    words: &BTreeSet<String>,
) -> BTreeSet<String> {
    let mut names = names.clone();
    for (name, reason) in exceptions {
        assert!(names.remove(*name), "no exception is needed for {name} ({reason}): it is no name");
        assert!(!words.contains(*name), "no exception is needed for {name} ({reason}): an example has it");
    }
    names
}

/// These exceptions as names.
fn excepted(exceptions: &[(&str, &str)]) -> BTreeSet<String> {
    exceptions.iter().map(|(name, _)| (*name).to_owned()).collect()
}

#[test]
fn every_name_of_checkpoint_processes_is_documented_and_played() {
    let names = names(&sources("formats/src/checkpoint"));
    assert_documented(&names, 35, &[CHECKPOINT]);
    let words = played(&[CHECKPOINT], Kind::Definition(Format::Checkpoint));
    assert_played(&without(&names, &CHECKPOINT_CALLS, &words), &words);
    assert_played(&excepted(&CHECKPOINT_CALLS), &played(&[CHECKPOINT], Kind::Scenario));
}

#[test]
fn every_name_of_policy_documents_is_documented_and_played() {
    let names = names(&sources("formats/src/policy"));
    assert_documented(&names, 10, &[CHECKPOINT]);
    let words = played(&[CHECKPOINT], Kind::Definition(Format::Policy));
    assert_played(&without(&names, &POLICY_HINTS, &words), &words);
}

#[test]
fn every_name_of_native_processes_is_documented() {
    assert_documented(&names(&sources("formats/src/native")), 110, &[NATIVE]);
}

/// All names of the conversation format.
fn names_of_conversations() -> BTreeSet<String> {
    let mut found = names(&sources("formats/src/conversation"));
    // Words that come from other crates.
    found.extend(FieldType::ALL.map(|holds| holds.word().to_owned()));
    let reserved = [
        reserved_keys::APPROVAL,
        reserved_keys::EVENT_KEY,
        reserved_keys::REPLY_TOKEN,
        reserved_keys::TASKS,
        reserved_keys::WAIT,
    ];
    found.extend(reserved.map(str::to_owned));
    found
}

/// Each field of a format has its errors beside it, and each text that a guard takes its limit.
#[test]
fn fields_have_their_errors_and_texts_their_limits() {
    for name in [CHECKPOINT, NATIVE, POLICIES].into_iter().chain(CONVERSATION) {
        let page = page(name);
        let heads: Vec<&str> = page.lines().filter(|line| line.starts_with("| Field | Type |")).collect();
        let short: Vec<&&str> = heads.iter().filter(|line| !line.ends_with("| Errors |")).collect();
        assert!(short.is_empty(), "docs/{name}: {short:?}");
    }
    for name in CONVERSATION {
        let open = page(name).matches("`: text").count() - page(name).matches("`: text of at most ").count();
        assert_eq!(open, 0, "docs/{name} has a text without a limit");
    }
}

#[test]
fn every_name_of_conversation_workflows_is_documented_and_played() {
    let names = names_of_conversations();
    assert_documented(&names, 170, &CONVERSATION);
    let words = played(&CONVERSATION, Kind::Definition(Format::Conversation));
    let fields = without(&names, &CONVERSATION_CALLS, &words);
    assert_played(&without(&fields, &CONVERSATION_OUTPUTS, &words), &words);
    assert_played(&excepted(&CONVERSATION_CALLS), &played(&CONVERSATION, Kind::Scenario));
    assert_played(&excepted(&CONVERSATION_OUTPUTS), &shown(CONVERSATIONS));
}

#[test]
fn every_name_of_scenarios_is_documented_and_played() {
    let mut found = names(&sources("scenario/src/parse"));
    found.extend(names(&text(&Path::new(CRATES).join("scenario/src/play/gates.rs"))));
    let script = text(&Path::new(CRATES).join("scenario/src/script.rs"));
    // The keys of `expect`, each in a line like `Status = "status",`.
    let keys = script.lines().filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" = \""));
    let keys: BTreeSet<String> = keys.map(|(_, key)| key.to_owned()).collect();
    assert!(keys.contains("status") && keys.contains("shows"), "{keys:?}");
    found.extend(keys);
    assert_documented(&found, 140, &[SCENARIOS]);
    let words = played(&[SCENARIOS], Kind::Scenario);
    assert_played(&without(&found, &SCENARIO_UNPLAYED, &words), &words);
}

/// Returns true for `SW1901`.
fn is_code(word: &str) -> bool {
    word.strip_prefix("SW")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The codes of scenarios, which only their crate knows.
fn codes_of_scenarios() -> BTreeSet<String> {
    let source = text(&Path::new(CRATES).join(SCENARIO_CODES));
    let codes: BTreeSet<String> = source.split('"').filter(|part| is_code(part)).map(str::to_owned).collect();
    assert!(codes.len() >= SCENARIO_CODES_MIN, "{codes:?}");
    codes
}

#[test]
fn every_code_is_documented_and_pages_name_no_other_codes() {
    let mut known: BTreeSet<String> = codes::ALL.iter().map(|code| code.id.to_owned()).collect();
    known.extend(codes_of_scenarios());
    assert_documented(&known, 60, &[FINDINGS]);
    for page in [CHECKPOINT, NATIVE, SCENARIOS, FINDINGS].into_iter().chain(CONVERSATION) {
        let named = words(page).into_iter().filter(|word| is_code(word));
        let other: Vec<String> = named.filter(|code| !known.contains(code)).collect();
        assert!(other.is_empty(), "docs/{page} names codes that do not exist: {other:?}");
    }
}

#[test]
fn names_are_literals_in_arrays_and_constants() {
    let source = r##"
// ["comment"]
const KEYS: &[&str] = &["one", "two_words", "not a name", "" /* , "#" */];
const ONE: &str = "constant"; const C: [char; 3] = ['"', '\'', '['];
fn f<'a>(x: &'a str) { call("argument"); list(&["escaped\"", "last"]); r#"{"raw":["x"]}"#; g("\\"); }
const NESTED: [(&str, u8); 1] = [("first-half", 1)];
"##;
    let found: Vec<String> = names(source).into_iter().collect();
    assert_eq!(found, ["constant", "first-half", "last", "one", "two_words"]);
}
