//! What a test may observe of a [`Memory`] while it works.

use switchward_machine::Time;
use switchward_state::{Command, Due};

use super::hops::LimitAnswer;
use super::{Memory, ShardIx};
use crate::system::{Answer, Broken};

/// Observes a [`Memory`], and may check it: a violation ends the play. `()` observes nothing.
pub trait Observer: Clone {
    /// Called at each [`Moment`]. What it changes in the memory takes effect.
    ///
    /// # Errors
    /// An invariant of the system is broken.
    fn observe(memory: &mut Memory<Self>, moment: Moment<'_>) -> Result<(), Broken>;
}

impl Observer for () {
    fn observe(_: &mut Memory<Self>, _: Moment<'_>) -> Result<(), Broken> {
        Ok(())
    }
}

/// A point in the work of a [`Memory`].
#[derive(Debug, Clone, Copy)]
pub enum Moment<'m> {
    /// A caller's command has arrived.
    Submitting(&'m Command),
    /// A caller's command is answered, and its effects are relayed.
    Submitted(&'m Command, &'m Answer),
    /// The ledgers were asked about a command.
    LimitsChecked(&'m Asking<'m>),
    /// The home shard is about to decide; the command carries the answers of its ledgers.
    Deciding(&'m Command),
    /// The home shard has answered.
    Decided(&'m Command, &'m Answer),
    /// A shard has decided, and this is the entry of its log.
    Logged(ShardIx, &'m [u8]),
    /// An effect is about to reach the shard of its ledger.
    Relaying(ShardIx, &'m Command),
    /// An effect has reached it.
    Relayed(ShardIx, &'m Command),
    /// The clock is a millisecond before the time at which a row falls due; the command is its sweep.
    AlmostDue(ShardIx, &'m Command),
    /// A row is due, and not swept yet.
    Due(ShardIx, &'m Due),
    /// The row is swept.
    Swept(ShardIx, &'m Due),
    /// What followed from a sweep is relayed; the command is the sweep.
    Settled(ShardIx, &'m Command),
    /// The clock is about to move to this time.
    Advancing(Time),
    /// The clock has moved.
    Advanced,
}

/// A question to the ledgers of a command.
#[derive(Debug)]
pub struct Asking<'m> {
    /// The command that they are asked about.
    pub command: &'m Command,
    /// How many times they were asked about it before.
    pub round: usize,
    /// [`Memory::decisions`] before they were asked.
    pub decisions: u64,
    /// A rejection, or the check that the command takes along.
    pub answer: &'m LimitAnswer,
}
