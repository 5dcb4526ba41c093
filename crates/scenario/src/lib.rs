//! Scenarios: a definition played against a virtual clock. The format is in `docs/scenarios.md`.
//!
//! [`parse`] reads a file; [`play`] plays it in a [`Memory`], which is the engine over rows in a map; [`play_on`]
//! plays it in any other [`System`], such as a replicated shard. A [`Report`] shows for every step what was expected
//! and what was seen; [`Report::json`] and [`Report::text`] are its two forms. A text that is not a scenario is
//! [`Unplayed::Unreadable`], with every finding at once.
//!
//! A [`Memory`] calls its [`Observer`] at each [`Moment`] of its work; tests check the invariants of the engine with one.
//!
//! This crate must never know: IO, a clock, threads, hash order, a server. The files that a scenario names come from
//! the caller's [`Loader`].

mod codes;
pub mod limits;
mod memory;
mod parse;
mod play;
mod report;
mod script;
mod system;

pub use memory::{Asking, LimitAnswer, Memory, Moment, Observer, Shard, ShardIx};
pub use parse::parse;
pub use play::gates::{Decide, Form, GateVerb, Kind, PlayedAnswer};
pub use play::{Loader, Unplayed, play, play_on, simulate};
pub use report::{Miss, Report, StepReport};
pub use script::{
    Authorize, Expectation, Expected, Named, Scenario, Start, StartAgain, Step, Until, Verb, Wanted,
};
pub use system::{Answer, Broken, System, ring};
