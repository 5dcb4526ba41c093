//! What the tests of several crates share. Only tests use it, so it may panic if it cannot go on.
//!
//! The unit tests of a crate that this one uses are built beside a second copy of that crate. They may use [`Rng`],
//! [`free_port`] and [`until`]; what has types of the crate itself is for the tests in its folder `tests`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod careful;
mod commands;
mod definitions;
mod deliveries;
mod faults;
mod kinds;
mod linear;
mod pages;
mod port;
mod process;
mod rng;
mod rows;
mod seeds;
mod start;
mod versions;
mod wait;
mod warnings;

pub use careful::{Careful, CarefulMemory, apart, careful, replayed};
pub use commands::{CommandGenerator, TENANTS};
pub use definitions::{CAPABILITIES, Compiled, NAMES, random};
pub use deliveries::{delivery_details, failure_codes};
pub use faults::{call_grounds, faults, result_problems};
pub use kinds::{Absent, kind, kinds, missing_facts, uncovered};
pub use linear::{OPERATIONS_MAX, Operation, linearizable};
pub use pages::{PAGES_MAX, Pages};
pub use port::free_port;
pub use process::{PROCESS_MAX, finished, within};
pub use rng::Rng;
pub use rows::Rows;
pub use seeds::{Counts, caught, cores, each_seed, named_seeds, none_failed};
pub use start::start_of;
pub use switchward_scenario::ring;
pub use versions::{Seen, Versioned, ordered_by_version};
pub use wait::{PATIENCE, until, until_blocking};
pub use warnings::session_warnings;
