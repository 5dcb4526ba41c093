//! Outside the core, rows are read through typed queries: only a folder of queries names rows, their keys and views of them.
//!
//! A gateway without the rows can then send a query to a server that has them, and a reader finds all that a crate reads in
//! one folder. The program itself has none: it asks the core and the gateway's queries. Test code is left out.

use crate::finding::Finding;
use crate::source::{Token, TokenKind};
use crate::tree::{Tree, inner_path};

const RULE: &str = "queries";
/// The crates outside the core that have rows at hand, each with its folder of queries, if it has one.
const CRATES: &[(&str, Option<&str>)] = &[
    ("crates/gateway/src", Some("query")),
    ("crates/outbound/src", Some("query")),
    ("crates/switchward/src", None),
];
/// The crates whose items these are: in a path through anything else, such as `Reply::Key`, a name is another item's.
const OWNERS: &[&str] = &["switchward_state", "switchward_shard"];
/// Types of rows, and the methods that give a view of them.
const NAMES: &[&str] = &["Row", "Key", "IndexKey", "StateView", "View", "read_stale"];

/// Looks at every name in the sources of these crates outside their folders of queries.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let outside = CRATES.iter().find(|(sources, home)| {
            inner_path(&source.path, sources).is_some_and(|path| !home.is_some_and(|home| is_in(home, path)))
        });
        let Some((sources, home)) = outside else { continue };
        let remedy = match home {
            Some(home) => format!("ask a query of {sources}/{home}"),
            None => "ask the core, or a query of the gateway".to_owned(),
        };
        for (at, token) in source.tokens.iter().enumerate() {
            if names_rows(&source.tokens[..at], token) && !source.is_test(token.line) {
                let message = format!("`{}` is named here: {remedy}", token.text);
                findings.push(Finding::new(&source.path, token.line, RULE, message));
            }
        }
    }
    findings
}

/// Returns true if a path below a crate's sources is in this folder.
fn is_in(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
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
        assert_eq!(lines("crates/gateway/src/services/a.rs", text), [1, 2, 3, 4]);
        for path in [
            "crates/outbound/src/effects.rs",
            "crates/outbound/src/effects/out.rs",
            "crates/switchward/src/node.rs",
            "crates/switchward/src/query/a.rs",
        ] {
            assert_eq!(lines(path, text), [1, 2, 3, 4], "{path}");
        }
        assert_eq!(lines("crates/gateway/src/queryable.rs", "use switchward_shard::StateView;\n"), [1]);
        for path in [
            "crates/gateway/src/query/a.rs",
            "crates/outbound/src/query/a.rs",
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
        let found =
            check(&Tree::of(&[("crates/outbound/src/a.rs", text), ("crates/switchward/src/a.rs", text)]));
        let mut found: Vec<_> = found.iter().map(ToString::to_string).collect();
        found.sort();
        assert_eq!(
            found,
            [
                "crates/outbound/src/a.rs:1: queries: `IndexKey` is named here: ask a query of crates/outbound/src/query",
                "crates/switchward/src/a.rs:1: queries: `IndexKey` is named here: ask the core, or a query of the gateway",
            ]
        );
    }
}
