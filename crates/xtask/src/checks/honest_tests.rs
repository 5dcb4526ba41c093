//! A test runs and does not wait for a clock. Clippy refuses assertions that cannot fail.

use crate::finding::Finding;
use crate::scan;
use crate::source::is_end_to_end_path;
use crate::tree::Tree;

const RULE: &str = "honest-tests";

const IGNORED: &str = "# [ ignore";

/// Checks every source; for `sleep` only test code outside `tests/it/`, where real servers are started.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let message = "do not ignore a test: assert today's result and add a note";
        let ignored = scan::lines_of(source, IGNORED);
        findings.extend(ignored.map(|line| Finding::new(&source.path, line, RULE, message)));
        if is_end_to_end_path(&source.path) {
            continue;
        }
        let sleeps = scan::lines_of(source, "sleep (").filter(|line| source.is_test(*line));
        let message = "a test must not sleep: move a clock by hand, or wait for the event itself";
        findings.extend(sleeps.map(|line| Finding::new(&source.path, line, RULE, message)));
    }
    findings
}

#[cfg(test)]
mod tests;
