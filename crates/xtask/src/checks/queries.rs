//! Outside the core, rows are read through typed queries: only the crate of queries names rows, their keys and views of them.
//!
//! A gateway without the rows can then send a query to a server that has them, and a reader finds all that is read in one
//! folder. Test code is left out.

use crate::finding::Finding;
use crate::source::{Token, TokenKind};
use crate::tree::Tree;

const RULE: &str = "queries";
/// The sources outside the core that have rows at hand, and ask queries about them.
const OUTSIDE: &[&str] = &["crates/gateway/src/", "crates/outbound/src/", "crates/switchward/src/"];
/// The crates whose items these are: in a path through anything else, such as `Reply::Key`, a name is another item's.
const OWNERS: &[&str] = &["switchward_state", "switchward_shard"];
/// Types of rows, and the methods that give a view of them.
const NAMES: &[&str] = &["Row", "Key", "IndexKey", "StateView", "View", "read_stale"];

/// Looks at every name in the sources of these crates.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        if !OUTSIDE.iter().any(|sources| source.path.starts_with(sources)) {
            continue;
        }
        for (at, token) in source.tokens.iter().enumerate() {
            if names_rows(&source.tokens[..at], token) && !source.is_test(token.line) {
                let message =
                    format!("`{}` is named here: ask the core, or a query of crates/query", token.text);
                findings.push(Finding::new(&source.path, token.line, RULE, message));
            }
        }
    }
    findings
}

/// Returns true if a token names rows, after these tokens.
fn names_rows(before: &[Token], token: &Token) -> bool {
    if token.kind != TokenKind::Word || !NAMES.contains(&token.text.as_str()) {
        return false;
    }
    match before {
        [.., owner, first, second] if first.text == ":" && second.text == ":" => {
            OWNERS.contains(&owner.text.as_str()) || token.text == "read_stale"
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn rows_are_named_by_queries_and_by_nothing_else() {
        let text = "use switchward_state::{Body, Key};\nfn a(view: &dyn switchward_state::View) {\n    \
                    view.row(&Key::tenant(\"a\"));\n    shard.read_stale();\n    match b {\n        Reply::Key(_) => {}\n    }\n    \
                    // Key and Row\n    c(\"Row\");\n}\n#[cfg(test)]\nmod tests {\n    use switchward_state::Row;\n}\n";
        for path in [
            "crates/gateway/src/services/a.rs",
            "crates/gateway/src/query/a.rs",
            "crates/outbound/src/effects.rs",
            "crates/outbound/src/query/a.rs",
            "crates/switchward/src/node.rs",
        ] {
            assert_eq!(lines(path, text), [1, 2, 3, 4], "{path}");
        }
        for path in [
            "crates/query/src/a.rs",
            "crates/query/src/outgoing/a.rs",
            "crates/gateway/tests/api/a.rs",
            "crates/outbound/src/effects/tests.rs",
            "crates/shard/src/a.rs",
        ] {
            assert!(lines(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_finding_says_what_to_do() {
        let text = "use switchward_state::IndexKey;\n";
        let found = check(&Tree::of(&[("crates/outbound/src/a.rs", text)]));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/outbound/src/a.rs:1: queries: `IndexKey` is named here: ask the core, or a query of crates/query"
            ]
        );
    }
}
