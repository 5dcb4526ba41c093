//! Formats: the sources of definitions, what is wrong with them, and the machines that they compile to.
//!
//! [`compile`] takes the files of one definition and gives every [`Finding`] at once, and a [`Definition`] when
//! none of them is an error. [`detect`] finds the format. [`document`] is the located reader of JSON and YAML
//! that all formats and scenarios share; [`shape`] reads its maps. [`cycles`] finds faults between definitions.
//!
//! This crate must never know: IO, a clock, threads, hash order, how a machine is run or stored. For any input bytes
//! it returns located findings or a machine, within the maxima of [`limits`].

mod call;
pub mod codes;
mod compile;
mod cycles;
mod definition;
mod detect;
pub mod document;
mod finding;
mod format;
pub mod limits;
mod naming;
mod quote;
mod recognised;
mod render;
mod report;
mod row;
pub mod shape;
mod suggest;

mod checkpoint;
mod conversation;
mod native;
mod policy;

pub use call::Call;
pub use compile::{compile, compile_file};
pub use cycles::{Calls, absent, archived_in_catalogue, cycles, not_in_catalogue};
pub use definition::{Compiled, Definition, SourceFile};
pub use detect::detect;
pub use finding::{Finding, Severity, has_errors};
pub use format::Format;
pub use naming::Naming;
pub use quote::quoted;
pub use render::{Segment, Style, render_json, render_segments};
pub use report::Report;
pub use row::UseAs;
