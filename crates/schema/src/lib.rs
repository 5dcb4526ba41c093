//! JSON Schema 2020-12: [`Schema`] is a checked schema; it says of a value what breaks it, in bounded time
//! and in the same words on every machine.
//!
//! A schema refers to itself alone: nothing is fetched. `format`, `contentEncoding` and `contentMediaType`
//! are notes for readers, as 2020-12 has them, and check nothing.
//!
//! This crate must never know: what a machine is, a format's source text, a clock, IO, randomness. Every
//! function is a function of its arguments; no input makes one panic, and each bound is in [`limits`].

mod chain;
mod derive;
mod flaw;
mod flaws;
mod graph;
mod keyword;
mod library;
pub mod limits;
mod marks;
mod meter;
mod pattern;
mod read;
mod reference;
mod schema;
mod sentence;
mod text;
mod violation;

pub use flaw::{Flaw, FlawKind};
pub use schema::{NEXT_NODE, Schema};
pub use violation::{Violation, Violations};
