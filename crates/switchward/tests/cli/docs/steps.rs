//! Blocks of the pages whose commands other steps of `make test` run, and those of the Makefile's targets.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use super::page::{Block, Kind, blocks, typed};
use crate::support::repository;

/// The step of the targets of the Makefile.
const MAKE: &str = "make";
/// What sets up another run of make than the one that may run this test.
const MAKE_VARIABLES: [&str; 4] = ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES"];
/// The steps that run blocks of the pages, each with the test that does it.
const STEPS: [(&str, &str); 1] = [("python-client", "tests/python/test_worker.py")];
/// The page that lists what no test runs.
const CONTRIBUTING: &str = "docs/contributing.md";
/// The page whose blocks the test of its examples plays.
const GENERATED: &str = "docs/cli.md";

/// Makes sure that a step of `make test` runs a block.
///
/// # Errors
/// Nothing runs it.
pub(super) fn is_run(page: &str, step: &str, block: &Block) -> Result<(), String> {
    if step == MAKE {
        return typed(block).iter().try_for_each(|line| is_target(&line.text));
    }
    let known = STEPS.iter().find(|(name, _)| *name == step);
    let (_, test) = known.ok_or_else(|| format!("no step of this name runs blocks: {step}"))?;
    let read = |path: &str| fs::read_to_string(repository(path)).map_err(|error| error.to_string());
    let script = format!("sh tests/scripts/{step}.sh");
    if !read("tests/scripts/test.sh")?.contains(&script) {
        return Err(format!("make test does not run {script}"));
    }
    let name = page.rsplit('/').next().unwrap_or(page);
    let runs = format!("start_commands(\"{name}\"");
    if read(test)?.contains(&runs) {
        Ok(())
    } else {
        Err(format!("{test} does not run the blocks of {page}"))
    }
}

/// Makes sure that the Makefile has what a command calls, without doing it: `make test` runs this very test.
fn is_target(line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    if words.next() != Some(MAKE) {
        return Err(format!("this is no command of make: {line}"));
    }
    let mut make = Command::new(MAKE);
    for name in MAKE_VARIABLES {
        make.env_remove(name);
    }
    let done = make.arg("--dry-run").args(words).current_dir(repository(".")).output();
    let done = done.map_err(|error| format!("make: {error}"))?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

/// The rows of the list of what no test runs: the page, and the first command of the block.
fn listed(page: &str) -> BTreeSet<(String, String)> {
    let rows = page.lines().skip_while(|line| !line.starts_with("| Page | Begins with |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let [_, page, command, why, _] = cells[..] else { panic!("a row has three cells: {line}") };
        assert!(!why.is_empty(), "a row gives the reason: {line}");
        (page.to_owned(), command.to_owned())
    };
    rows.map(row).collect()
}

#[test]
fn what_no_test_runs_is_listed_with_its_reason() {
    let mut found = BTreeSet::new();
    for page in super::PAGES.iter().filter(|page| **page != GENERATED) {
        let text = fs::read_to_string(repository(page)).expect("a page");
        let blocks = blocks(&text).expect("blocks");
        for block in blocks.iter().filter(|block| block.kind == Kind::Manual) {
            let first = typed(block).into_iter().next().map(|line| line.text).unwrap_or_default();
            found.insert(((*page).to_owned(), first));
        }
    }
    let text = fs::read_to_string(repository(CONTRIBUTING)).expect("a page");
    assert_eq!(listed(&text), found, "the list of {CONTRIBUTING}, and the `sh manual` blocks of the pages");
}

#[test]
fn a_step_runs_the_blocks_that_name_it() {
    let block = |text: &str| Block { kind: Kind::Manual, at: 1, text: text.to_owned() };
    assert_eq!(is_run("README.md", MAKE, &block("make test   # all\nmake\n")), Ok(()));
    for (step, text) in [(MAKE, "make none-such\n"), (MAKE, "cargo build\n"), ("none-such", "make\n")] {
        assert!(is_run("README.md", step, &block(text)).is_err(), "{step}: {text}");
    }
    assert_eq!(is_run("docs/workers.md", "python-client", &block("")), Ok(()));
    assert!(is_run("docs/limits.md", "python-client", &block("")).is_err());
}
