//! Product code says why it cannot fail: `expect("reason")`, never a bare unwrap.

use crate::finding::Finding;
use crate::scan;
use crate::tree::Tree;

const RULE: &str = "unwrap";

/// Looks for unwraps outside test code.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let lines = scan::lines_of(source, ". unwrap ( )").filter(|line| !source.is_test(*line));
        let message = "return the error, or say why it cannot fail with expect(\"...\")";
        findings.extend(lines.map(|line| Finding::new(&source.path, line, RULE, message)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_product_code_is_reported() {
        // Put together here, so that a search of this tree for it does not find this.
        let bare = [".unwr", "ap()"].concat();
        let text = format!("fn a() {{\n    b(){bare};\n}}\n#[test]\nfn c() {{\n    d(){bare};\n}}\n");
        let found = check(&Tree::of(&[("crates/x/src/lib.rs", &text), ("crates/x/tests/it/main.rs", &text)]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), ("crates/x/src/lib.rs", 2));
    }
}
