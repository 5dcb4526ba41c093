//! The gateway reads through queries: only its folder of queries names rows, their keys and views of them.
//!
//! A server without the rows can then send a query to one that has them. Test code is left out.

use crate::finding::Finding;
use crate::source::{Token, TokenKind};
use crate::tree::{Tree, inner_path};

const RULE: &str = "queries";
const CRATE: &str = "crates/gateway/src";
const HOME: &str = "query";
/// The crates whose items these are: in a path through anything else, such as `Reply::Key`, a name is another item's.
const OWNERS: &[&str] = &["switchward_state", "switchward_shard"];
/// Types of rows, and the methods that give a view of them.
const NAMES: &[&str] = &["Row", "Key", "IndexKey", "StateView", "View", "read_stale"];

/// Looks at every name in the gateway's sources outside the folder of queries.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let outside = inner_path(&source.path, CRATE).is_some_and(|path| !is_home(path));
        if !outside {
            continue;
        }
        for (at, token) in source.tokens.iter().enumerate() {
            if names_rows(&source.tokens[..at], token) && !source.is_test(token.line) {
                let message = format!("`{}` is named here: ask a query of {CRATE}/{HOME}", token.text);
                findings.push(Finding::new(&source.path, token.line, RULE, message));
            }
        }
    }
    findings
}

/// Returns true if a path below the crate's sources is in the folder of queries.
fn is_home(path: &str) -> bool {
    path.strip_prefix(HOME).is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
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
        assert_eq!(lines("crates/gateway/src/queryable.rs", "use switchward_shard::StateView;\n"), [1]);
        for path in
            ["crates/gateway/src/query/a.rs", "crates/gateway/tests/api/a.rs", "crates/shard/src/a.rs"]
        {
            assert!(lines(path, text).is_empty(), "{path}");
        }
    }

    #[test]
    fn a_finding_says_what_to_do() {
        let found = check(&Tree::of(&[("crates/gateway/src/a.rs", "use switchward_state::IndexKey;\n")]));
        assert_eq!(
            found.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "crates/gateway/src/a.rs:1: queries: `IndexKey` is named here: ask a query of crates/gateway/src/query"
            ]
        );
    }
}
