//! A test runs, can fail, and does not wait for a clock.

use crate::finding::Finding;
use crate::scan;
use crate::source::is_end_to_end_path;
use crate::tree::Tree;

const RULE: &str = "honest-tests";

/// What a test may not hold, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("# [ ignore", "no test is left out: assert today's result with a note"),
    ("assert ! ( true )", "this cannot fail"),
];

/// Looks into every source; for `sleep` only into test code outside `tests/it/`, where real servers are started.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for (row, told) in REFUSED {
            findings.extend(
                scan::lines_of(source, row).map(|line| Finding::new(&source.path, line, RULE, *told)),
            );
        }
        if is_end_to_end_path(&source.path) {
            continue;
        }
        let sleeps = scan::lines_of(source, "sleep (").filter(|line| source.is_test(*line));
        let told = "a test does not sleep: move a clock by hand, or wait for the event itself";
        findings.extend(sleeps.map(|line| Finding::new(&source.path, line, RULE, told)));
    }
    findings
}

#[cfg(test)]
mod tests;
