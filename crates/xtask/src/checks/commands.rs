//! The two commands of the README exist, and a fresh clone runs the same `make test`.

use crate::finding::Finding;
use crate::tree::{Tree, line_where};

const RULE: &str = "commands";
const README: &str = "README.md";
const MAKEFILE: &str = "Makefile";
const CI: &str = ".ci/run";
const README_COMMANDS: &[&str] = &["make demo", "make test"];
const TARGETS: &[&str] = &["help", "test", "fix", "demo", "bench"];

/// Reads the README, the Makefile and `.ci/run`.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut missing = |path: &str, what: String| findings.push(Finding::new(path, 1, RULE, what));
    match tree.text(README) {
        None => missing(README, "the file is missing".to_owned()),
        Some(text) => {
            for command in README_COMMANDS.iter().filter(|command| !text.contains(**command)) {
                missing(README, format!("does not name the command `{command}`"));
            }
        }
    }
    match tree.text(MAKEFILE) {
        None => missing(MAKEFILE, "the file is missing".to_owned()),
        Some(text) => {
            for target in TARGETS.iter().filter(|target| !has_target(text, target)) {
                missing(MAKEFILE, format!("has no target `{target}`"));
            }
        }
    }
    match tree.text(CI) {
        None => missing(CI, "the file is missing".to_owned()),
        Some(text) if !text.contains("make test") => missing(CI, "does not run `make test`".to_owned()),
        Some(text) if text.contains("||") => {
            let line = line_where(text, |line| line.contains("||"));
            findings.push(Finding::new(CI, line, RULE, "`||` hides a failure"));
        }
        Some(_) => {}
    }
    findings
}

fn has_target(makefile: &str, target: &str) -> bool {
    makefile
        .lines()
        .any(|line| line.strip_prefix(target).is_some_and(|rest| rest.trim_start().starts_with(':')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[(&str, &str)] = &[
        (README, "    make demo\n    make test\n"),
        (MAKEFILE, "help: ## x\ntest:\nfix :\ndemo: build\nbench:\n"),
        (CI, "exec make test\n"),
    ];

    #[test]
    fn what_is_there_is_not_missed() {
        assert_eq!(check(&Tree::of(GOOD)), []);
    }

    #[test]
    fn what_is_missing_is_named() {
        let files = [
            (README, "make test"),
            (MAKEFILE, "help:\ntesting:\nfix:\ndemo:\nbench:\n"),
            (CI, "\nmake test || true\n"),
        ];
        let found: Vec<String> = check(&Tree::of(&files)).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "README.md:1: commands: does not name the command `make demo`",
                "Makefile:1: commands: has no target `test`",
                ".ci/run:2: commands: `||` hides a failure",
            ]
        );
    }

    #[test]
    fn an_empty_repository_lacks_all_three() {
        assert_eq!(check(&Tree::of(&[])).len(), 3);
    }
}
