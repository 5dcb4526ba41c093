//! Fuzz targets for input from outside: one function for each entry point. Whatever the bytes, none of them panics, takes
//! long, or reads the same bytes in two ways. For developers only.
//!
//! `make test` calls them with every file of `tests/fuzz/corpus`, and `make fuzz` with mutations of those files by
//! libFuzzer. A function returns true if the bytes were accepted, so that a test can see that the corpus reaches further
//! than the first refusal.
//!
//! This crate must never know how it is called: libFuzzer is a library of `tests/fuzz`, a workspace of its own, as it
//! needs a nightly compiler.

mod commands;
mod definitions;
mod frames;
mod mail;
mod schemas;
mod transcoding;
mod webhooks;

/// Reads input from outside; returns true if it was accepted.
///
/// # Panics
/// If the tested code has a fault.
pub type Target = fn(&[u8]) -> bool;

/// Every target by its name, which is also that of its folder in `tests/fuzz/corpus` and of its file in
/// `tests/fuzz/targets`.
pub const TARGETS: &[(&str, Target)] = &[
    ("commands", commands::read),
    ("definitions", definitions::read),
    ("frames", frames::read),
    ("mail", mail::read),
    ("schemas", schemas::read),
    ("transcoding", transcoding::read),
    ("webhooks", webhooks::read),
];

/// Calls the target of this name.
///
/// # Panics
/// If there is none, and if the tested code has a fault.
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("the target has a row in TARGETS");
    target(bytes)
}
