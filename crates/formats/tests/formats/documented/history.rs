//! The page of the API lists every type of event that a session's history can have, and no other one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{CRATES, page, text};

const PAGE: &str = "api.md";
const HEADING: &str = "## Event types of a history";
/// What a source file contains that makes events for readers.
const MAKING: [&str; 2] = ["PublicEvent::new(", "PublicEvent::of_gate("];
/// The crates that make them.
const FOLDERS: [&str; 2] = ["engine/src", "state/src"];
/// Types that there are at least: fewer means that they are not found any more.
const TYPES_MIN: usize = 60;
/// The types that endpoints receive.
const PUBLISHED: &str = "state/src/delivery/published_type.rs";
const PUBLISHED_MIN: usize = 28;
/// What types of events of the tenant itself begin with; they are in no history.
const OF_TENANT: [&str; 2] = ["definition.", "endpoint."];

/// All source files below a folder.
#[expect(clippy::disallowed_methods, reason = "a test that reads sources and pages")]
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Returns true for `approval.voted`.
fn is_type(word: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    word.split_once('.').is_some_and(|(subject, what)| part(subject) && part(what))
}

/// The types in the code of a source that makes events; none in any other source.
fn types(source: &str) -> BTreeSet<String> {
    let code: String = source.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    if !MAKING.iter().any(|making| code.contains(making)) {
        return BTreeSet::new();
    }
    literals(&code)
}

/// The literals of some code that have the form of a type.
fn literals(code: &str) -> BTreeSet<String> {
    code.split('"').skip(1).step_by(2).filter(|literal| is_type(literal)).map(str::to_owned).collect()
}

/// The types of all sources that make events.
fn known() -> BTreeSet<String> {
    let sources = FOLDERS.iter().flat_map(|folder| files(&Path::new(CRATES).join(folder)));
    sources.flat_map(|path| types(&text(&path))).collect()
}

#[test]
fn every_event_type_of_a_history_is_documented() {
    let known = known();
    assert!(known.len() >= TYPES_MIN, "only {} types: {known:?}", known.len());
    let page = page(PAGE);
    let section = page.split_once(HEADING).expect("the section").1.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let listed: Vec<String> =
        rows.flat_map(|cell| cell.split('`')).filter(|word| is_type(word)).map(str::to_owned).collect();
    let unique: BTreeSet<String> = listed.iter().cloned().collect();
    let missing: Vec<&String> = known.difference(&unique).collect();
    let other: Vec<&String> = unique.difference(&known).collect();
    assert!(
        missing.is_empty() && other.is_empty(),
        "docs/{PAGE}: missing {missing:?}; no such type {other:?}"
    );
    assert_eq!(unique.len(), listed.len(), "docs/{PAGE} lists a type twice: {listed:?}");
}

#[test]
fn endpoints_receive_types_of_a_history_or_of_the_tenant_itself() {
    let (published, known) = (literals(&text(&Path::new(CRATES).join(PUBLISHED))), known());
    assert!(published.len() >= PUBLISHED_MIN, "{published:?}");
    let of_tenant = |kind: &str| OF_TENANT.iter().any(|begin| kind.starts_with(begin));
    let lost: Vec<&String> = published.difference(&known).filter(|kind| !of_tenant(kind)).collect();
    assert!(lost.is_empty(), "no event has the type {lost:?}");
}

#[test]
fn a_type_is_a_literal_of_a_source_that_makes_events() {
    let source = "// \"not.this\"\nPublicEvent::new(\"a.b_c\").with(\"field\", \"It is. So\")";
    assert_eq!(types(source), BTreeSet::from(["a.b_c".to_owned()]));
    assert_eq!(types("const FILE: &str = \"a.rs\";"), BTreeSet::new());
}
