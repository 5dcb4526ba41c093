//! What is sent to shards, and what comes back.

use switchward_state::delivery::Attempt;
use switchward_state::{Command, Key, Rejection, Reply};

/// The index of a shard.
pub(crate) type ShardIx = usize;

/// A command on its way to a shard.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// When it was sent: messages of one shard that arrive in another order were reordered.
    pub(crate) sent: u64,
    pub(crate) to: ShardIx,
    pub(crate) origin: Origin,
    pub(crate) command: Command,
}

/// Who waits for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A caller, in this attempt.
    Caller { caller: usize, attempt: u64 },
    /// A caller that repeats a request id with another body, which must be refused.
    OtherBody,
    /// The leader of this term, which relays the effect of this row.
    Relay(Task),
    /// The same leader, which acknowledges it.
    Relayed(Task),
    /// A delivery worker, for which the leader of this term has published the effect.
    Outcome(Task),
    /// The leader of this term, which fires the timer of this index entry.
    Timer(Task),
    /// Nobody.
    Nobody,
}

/// Something that a leader has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) shard: ShardIx,
    pub(crate) term: u64,
    pub(crate) key: Key,
}

/// An attempt to deliver an effect.
#[derive(Debug, Clone)]
pub(crate) struct Attempted {
    pub(crate) task: Task,
    pub(crate) number: u64,
    pub(crate) attempt: Attempt,
}

/// The reason for which a command has no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The command was refused, and changes nothing.
    Refused(Rejection),
    /// Nobody leads the shard: the command was not decided.
    NoLeader,
    /// The leader has changed before the entry was committed.
    Unknown,
}

/// An answer.
pub(crate) type Answer = Result<Reply, Failure>;
