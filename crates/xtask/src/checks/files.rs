//! A file stays short enough to be read at one sitting.

use crate::finding::Finding;
use crate::source::is_test_path;
use crate::tree::Tree;

const RULE: &str = "file-length";
/// Lines of a file with product code, inline tests counted.
const CODE_LINES_MAX: usize = 500;
/// Lines of a file of tests.
const TEST_LINES_MAX: usize = 800;

/// Counts the lines of every Rust file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let limit = if is_test_path(&source.path) { TEST_LINES_MAX } else { CODE_LINES_MAX };
        if source.lines > limit {
            let message = format!("{} lines, {limit} are allowed; split the file", source.lines);
            findings.push(Finding::new(&source.path, limit + 1, RULE, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_kept_and_tests_have_their_own() {
        let full = "\n".repeat(500);
        let long = "\n".repeat(501);
        let long_test = "\n".repeat(801);
        let found = check(&Tree::of(&[
            ("crates/x/src/full.rs", &full),
            ("crates/x/src/long.rs", &long),
            ("crates/x/src/y/tests.rs", &long),
            ("crates/x/tests/it/main.rs", &long_test),
        ]));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/x/src/long.rs:501: file-length: 501 lines, 500 are allowed; split the file",
                "crates/x/tests/it/main.rs:801: file-length: 801 lines, 800 are allowed; split the file",
            ]
        );
    }
}
