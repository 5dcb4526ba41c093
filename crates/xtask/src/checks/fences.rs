//! Every pure crate has its own `clippy.toml` with the fence in it.
//!
//! Clippy reads one file per crate: a crate's own replaces the root's, so the root's entries are repeated there.

use toml::{Table, Value};

use crate::checks::arrows::pure_crates;
use crate::finding::Finding;
use crate::tree::{Tree, line_where};

const RULE: &str = "fences";
const ROOT: &str = "clippy.toml";
const LISTS: &[&str] = &["disallowed-types", "disallowed-methods"];

/// Compares the pure crates' `clippy.toml` with the root's.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let root = tree.text(ROOT).and_then(|text| text.parse::<Table>().ok()).unwrap_or_default();
    let mut findings = Vec::new();
    for folder in pure_crates().filter(|folder| tree.text(&format!("crates/{folder}/Cargo.toml")).is_some()) {
        let path = format!("crates/{folder}/{ROOT}");
        let Some(text) = tree.text(&path) else {
            findings.push(Finding::new(&path, 1, RULE, format!("{folder} is pure and needs a clippy.toml")));
            continue;
        };
        let fence = match text.parse::<Table>() {
            Ok(fence) => fence,
            Err(error) => {
                findings.push(Finding::new(&path, 1, RULE, format!("cannot be read: {}", error.message())));
                continue;
            }
        };
        for (key, value) in root.iter().filter(|(key, value)| fence.get(*key) != Some(value)) {
            let line = line_where(text, |line| line.starts_with(key));
            findings.push(Finding::new(
                &path,
                line,
                RULE,
                format!("must have `{key} = {value}`, like the root's file"),
            ));
        }
        for list in LISTS.iter().filter(|list| !holds_entries(&fence, list)) {
            findings.push(Finding::new(&path, 1, RULE, format!("`{list}` is missing or empty")));
        }
    }
    findings
}

fn holds_entries(fence: &Table, list: &str) -> bool {
    fence.get(list).and_then(Value::as_array).is_some_and(|entries| !entries.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(fence: Option<&str>) -> Vec<String> {
        let mut files = vec![("clippy.toml", "limit = 70\n"), ("crates/engine/Cargo.toml", "")];
        files.extend(fence.map(|text| ("crates/engine/clippy.toml", text)));
        check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_full_fence_is_fine() {
        let fence = "limit = 70\ndisallowed-types = [\"a::B\"]\ndisallowed-methods = [\"a::b\"]\n";
        assert_eq!(findings(Some(fence)), Vec::<String>::new());
    }

    #[test]
    fn a_missing_fence_is_reported() {
        assert_eq!(
            findings(None),
            ["crates/engine/clippy.toml:1: fences: engine is pure and needs a clippy.toml"]
        );
    }

    #[test]
    fn a_fence_that_says_otherwise_is_reported() {
        assert_eq!(
            findings(Some("# ours\nlimit = 90\ndisallowed-types = []\ndisallowed-methods = [\"a::b\"]\n")),
            [
                "crates/engine/clippy.toml:2: fences: must have `limit = 70`, like the root's file",
                "crates/engine/clippy.toml:1: fences: `disallowed-types` is missing or empty",
            ]
        );
    }
}
