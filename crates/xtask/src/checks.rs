//! The checks, one file each. Their rules are listed for readers in `crates/README.md`.
//!
//! What clippy or cargo-deny can hold is in `Cargo.toml`, `clippy.toml` or `.cargo/deny.toml`, and not here.

mod arrows;
mod citations;
mod commands;
mod cycles;
mod fences;
mod files;
mod formats;
pub(crate) mod function_p95;
mod functions;
mod golden;
mod honest_tests;
mod http_client;
mod leftovers;
mod map;
pub(crate) mod parameters;
mod paths;
mod person_text;
mod purity;
mod queries;
mod restating;
mod sentences;
mod supply;
mod words;

use std::time::Duration;

use crate::finding::Finding;
use crate::tree::Tree;

type Check = fn(&Tree) -> Vec<Finding>;

const CHECKS: &[Check] = &[
    arrows::check,
    citations::check,
    commands::check,
    cycles::check,
    fences::check,
    files::check,
    formats::check,
    function_p95::check,
    functions::check,
    golden::check,
    honest_tests::check,
    http_client::check,
    leftovers::check,
    map::check,
    parameters::check,
    paths::check,
    person_text::check,
    purity::check,
    queries::check,
    restating::check,
    sentences::check,
    supply::check,
    words::check,
];

/// Every finding of every check, in order of path and line.
pub(crate) fn run(tree: &Tree) -> Vec<Finding> {
    let mut findings = tree.unreadable.clone();
    findings.extend(CHECKS.iter().flat_map(|check| check(tree)));
    findings.sort();
    findings.dedup();
    findings
}

/// The line that is printed below the findings.
pub(crate) fn summary(tree: &Tree, findings: &[Finding], took: Duration) -> String {
    let result = match findings.len() {
        0 => "no findings".to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    let files = tree.files().count();
    format!("{result} ({} checks, {files} files, {} ms)", CHECKS.len(), took.as_millis())
}
