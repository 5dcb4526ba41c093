//! Formats: the sources of definitions, what is wrong with them, and the machines that they compile to.
//!
//! [`compile`] takes the files of one definition and gives every [`Finding`] at once, and a [`Definition`] when
//! none of them is an error. [`detect`] tells the format. [`document`] is the located reader of JSON and YAML
//! that all formats share, and scenarios with them; [`shape`] is how its maps are taken apart. [`circles`] sees what is
//! wrong between definitions.
//!
//! This crate must never know: IO, a clock, threads, hash order, how a machine is run or stored. Whatever bytes
//! come in, it answers with located findings or a machine, within the maxima of [`limits`].

mod circles;
pub mod codes;
mod compile;
mod detect;
pub mod document;
mod finding;
mod format;
pub mod limits;
mod naming;
mod quote;
mod render;
mod report;
pub mod shape;
mod suggest;

mod checkpoint;
mod conversation;
mod policy;

pub use circles::{Calls, absent, circles, not_in_catalogue};
pub use compile::{Call, Compiled, Definition, SourceFile, compile, compile_file};
pub use detect::detect;
pub use finding::{Finding, Severity, has_errors};
pub use format::Format;
pub use quote::quoted;
pub use render::{Segment, Style, render_json, render_segments, render_text};
pub use report::Report;
