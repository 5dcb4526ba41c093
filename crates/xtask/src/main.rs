//! Repository checks: what a reviewer would otherwise have to remember.
//!
//! `cargo xtask check` reads every file that git knows or would add, runs each check of [`checks`] over them
//! and prints one line a finding, `path:line: rule: message`. It ends with 0 when there is none, with 1 when
//! there is one, with 2 when it is called wrongly. `cargo xtask measure` prints numbers that checks bound.
//!
//! It must never know what the product does: it reads sources, manifests and tables, and links none of our crates.
//! A new check is a new file in `checks/`, one line in `checks.rs`, and a test that plants what it must find.

mod checks;
mod finding;
mod measure;
mod scan;
mod source;
mod tree;

use std::process::ExitCode;
use std::time::Instant;

use crate::tree::Tree;

const USAGE: &str = "usage: cargo xtask check|measure\n\n\
                     check    checks the repository; prints path:line: rule: message\n\
                     measure  prints p95 of the lengths of functions, and counts parameters that are tuples or bools";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["check"] => ended(check()),
        ["measure"] => ended(measure()),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The exit code of a command that ran, or that could not.
fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Prints numbers that the checks bound.
fn measure() -> anyhow::Result<ExitCode> {
    print!("{}", measure::functions(&Tree::of_repository(&std::env::current_dir()?)?));
    Ok(ExitCode::SUCCESS)
}

/// Runs every check over the working tree that holds the current folder.
fn check() -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let tree = Tree::of_repository(&std::env::current_dir()?)?;
    let findings = checks::run(&tree);
    for finding in &findings {
        println!("{finding}");
    }
    println!("{}", checks::summary(&tree, &findings, started.elapsed()));
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
