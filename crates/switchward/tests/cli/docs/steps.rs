//! Blocks of the pages whose commands other steps of `make test` run, and those of make.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use super::page::{Block, Kind, blocks, typed};
use crate::support::{Ended, folder, program, repository};

/// The step of the targets of the Makefile.
const MAKE: &str = "make";
/// What sets up another run of make than the one that may run this test.
const MAKE_VARIABLES: [&str; 5] = ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES", "RELEASE"];
/// The commands of make that are run; the others take long, or run this very test.
const RUN: [&str; 2] = ["make", "make demo"];
/// Makes a target folder that has the program `$1` already, so that its `cargo` has nothing to build.
const BUILT: &str = "mkdir bin debug && ln -s \"$1\" debug/switchward && \
                     printf '#!/bin/sh\\n' > bin/cargo && chmod +x bin/cargo";
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
        return typed(block).iter().try_for_each(|line| makes(&line.text));
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

/// Has make do what a command says, with the program that is built. Of what is not run, each target must exist.
fn makes(line: &str) -> Result<(), String> {
    let mut words = line.split_whitespace();
    if words.next() != Some(MAKE) {
        return Err(format!("this is no command of make: {line}"));
    }
    let mut make = Command::new(MAKE);
    for name in MAKE_VARIABLES {
        make.env_remove(name);
    }
    make.args(words).current_dir(repository(".")).stdin(Stdio::null());
    let built = folder(&[]);
    if RUN.contains(&line) {
        let this = program();
        for (name, value) in this.get_envs() {
            match value {
                Some(value) => make.env(name, value),
                None => make.env_remove(name),
            };
        }
        let mut script = Command::new("sh");
        script.args(["-c", BUILT, "sh"]).arg(this.get_program()).current_dir(built.path());
        Ended::of(&mut script).with_code(0);
        let path = std::env::var("PATH").unwrap_or_default();
        make.env("PATH", format!("{}:{path}", built.path().join("bin").display()));
        make.env("CARGO_TARGET_DIR", built.path()).env("SWITCHWARD_CONTEXTS", built.path().join("contexts"));
    } else {
        make.arg("--dry-run");
    }
    let done = Ended::of(&mut make);
    if done.code == 0 { Ok(()) } else { Err(format!("{}{}", done.out, done.err)) }
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
