//! What comes from outside, read by what reads it: one function for each way in. Whatever the bytes, none of them
//! panics, takes long, or reads the same thing in two ways. For developers only.
//!
//! `make test` calls them with every file of `tests/fuzz/corpus`, and `make fuzz` with what libFuzzer makes of those
//! files. A function returns true if the bytes were accepted, so that a test can see that the corpus reaches further than
//! the first refusal.
//!
//! This crate must never know how it is called: libFuzzer is a library of `tests/fuzz`, a workspace of its own, as it
//! needs a nightly compiler.

mod definitions;
mod frames;
mod mail;
mod transcoding;
mod webhooks;

/// Reads bytes from outside; returns true if they were accepted.
///
/// # Panics
/// If what reads them has a fault.
pub type Target = fn(&[u8]) -> bool;

/// Every target by its name, which is also that of its folder in `tests/fuzz/corpus` and of its file in
/// `tests/fuzz/targets`.
pub const TARGETS: &[(&str, Target)] = &[
    ("definitions", definitions::read),
    ("frames", frames::read),
    ("mail", mail::read),
    ("transcoding", transcoding::read),
    ("webhooks", webhooks::read),
];

/// Calls the target of this name.
///
/// # Panics
/// If there is none, and if what reads the bytes has a fault.
pub fn run(name: &str, bytes: &[u8]) -> bool {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("the target has a row in TARGETS");
    target(bytes)
}
