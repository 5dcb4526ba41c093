//! A `Memory` of scenarios whose every step is checked.
//!
//! After every command all rows are encoded and decoded again, the indices are rebuilt from them, rows that must agree
//! are compared, and the command is sent again: under its request id it must get the same answer, and for a past
//! sequence it must be refused; neither may change anything. A ledger is asked twice, its answer is first given in wrong
//! forms, and a reservation is made in it for a call that is lost. Every call is explained before it is decided, and the
//! two must agree. A relayed effect must change something, and an early or repeated sweep must change nothing. A lease of
//! no length is refused, and a given one is extended; an assistant has a valid name, and is created once; a result is
//! accepted if it fits the schema that its worker was given. The rows that are attached to a reply are sent and read again.

mod assistants;
mod attached;
mod explained;
mod leases;
mod ledgers;
mod log;
mod lost;
mod observer;
mod results;
mod rows;

use switchward_scenario::Memory;

pub use log::replayed;
pub use observer::{Careful, apart, careful};

/// A system with several shards that is checked at every step.
pub type CarefulMemory = Memory<Careful>;
