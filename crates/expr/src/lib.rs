//! Everything that computes on JSON values: paths into data, templates, comparisons, JSON Logic, phrases and
//! replies, reducers, transforms, markdown.
//!
//! Three kinds of template: [`Braces`] for short texts, [`Strict`] for texts that must not lack a value,
//! [`render`] for the bodies of messages. [`compare`] compares values, and [`Logic`] computes over all of the
//! data; [`reduce`] merges a recorded value into the data. [`Fuel`] counts the work of several of them.
//!
//! This crate must never know: what a machine is, a format's source text, a clock, IO, randomness, where a value comes
//! from. Every function is a function of its arguments; no input makes one panic, and each bound is in [`limits`].

mod brace;
mod compare;
mod fuel;
mod jinja;
pub mod limits;
mod logic;
mod markdown;
mod mention;
mod path;
mod phrase;
mod reduce;
mod reply;
mod strict;
mod transform;
mod value;

pub use brace::{Braces, TooLong, braces_mentions};
pub use compare::{CmpOp, CompareError, Patterns, compare};
pub use fuel::{Fuel, weight};
pub use jinja::{
    Escape, JinjaError, JinjaLimits, Reads, RenderError, check, mentions, reads, render, render_within,
};
pub use logic::{Logic, LogicArity, LogicError, LogicFault, LogicProblem, LogicRead, LogicReads};
pub use markdown::to_html;
pub use mention::{Mention, Name, NameKind};
pub use path::{Path, PathError};
pub use phrase::{CONFIRMATIONS, classify, confirmed, hints};
pub use reduce::{Clash, DataType, Reducer, never, reduce};
pub use reply::{APPROVALS, COURTESIES, REJECTIONS, ReplyDecision, decision_line, own_text};
pub use strict::{Strict, StrictError, strict_mentions};
pub use transform::{SEPARATOR, Transform, TransformError};
