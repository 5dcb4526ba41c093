//! A lint is only silenced with a reason.

use crate::finding::Finding;
use crate::scan;
use crate::tree::Tree;

const RULE: &str = "silenced-lint";
const ATTRIBUTES: &[&str] = &["# [ allow (", "# ! [ allow (", "# [ expect (", "# ! [ expect ("];

/// Looks for `allow` and `expect` attributes that give no reason.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for start in ATTRIBUTES.iter().flat_map(|row| scan::find(&source.tokens, row)) {
            let open =
                start + source.tokens[start..].iter().take_while(|it| !scan::is_sign(it, &["["])).count();
            let end = scan::closing(&source.tokens, open);
            if scan::find(&source.tokens[open..end], "reason =").next().is_none() {
                let message = "give the reason: #[expect(lint, reason = \"...\")]";
                findings.push(Finding::new(&source.path, source.tokens[start].line, RULE, message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lint_silenced_without_a_reason_is_reported() {
        let text = "#![allow(dead_code)]\n#[expect(dead_code, reason = \"read in tests only\")]\nfn a() {}\n#[expect(dead_code)]\nfn b() -> C { [allow(d)] }\n";
        let found = check(&Tree::of(&[("crates/x/src/lib.rs", text)]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [1, 4]);
        assert_eq!(
            found[0].to_string(),
            "crates/x/src/lib.rs:1: silenced-lint: give the reason: #[expect(lint, reason = \"...\")]"
        );
    }
}
