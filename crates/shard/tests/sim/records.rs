//! What callers did and were answered, to compare it with what the servers hold in the end.

use std::collections::BTreeMap;
use switchward_machine::Time;
use switchward_testkit::Operation;

/// Events of an answer to a register, by which the sequence of its session rises.
pub(crate) const EVENTS_OF_ANSWER: u64 = 3;

/// A register: the sequence of its session, and what it holds.
pub(crate) type Register = (u64, u8);

/// What a caller did with a register, and was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    /// Set it; `None` if the answer is unknown, else the sequence after it.
    Wrote { to: u8, after: Option<u64> },
    /// Set it if it held `from`.
    Exchanged { from: u8, to: u8, after: Option<u64> },
    /// Set it if its session was at `at`.
    ExchangedAt { at: u64, to: u8, after: Option<u64> },
    /// Was refused because it did not hold this.
    NotFrom(u8),
    /// Was refused because its session was not at this sequence.
    NotAt(u64),
    /// Read it.
    Read(Register),
}

impl Did {
    /// The register after this; `None` if the answer is wrong.
    pub(crate) fn step(register: &Register, did: &Self) -> Option<Register> {
        let (sequence, value) = *register;
        let next = sequence + EVENTS_OF_ANSWER;
        let moved =
            |to: u8, after: Option<u64>| after.is_none_or(|after| after == next).then_some((next, to));
        match *did {
            Self::Wrote { to, after } => moved(to, after),
            Self::Exchanged { from, to, after } if from == value => moved(to, after),
            Self::ExchangedAt { at, to, after } if at == sequence => moved(to, after),
            Self::Exchanged { .. } | Self::ExchangedAt { .. } => None,
            Self::NotFrom(from) => (from != value).then_some(*register),
            Self::NotAt(at) => (at != sequence).then_some(*register),
            Self::Read(seen) => (seen == *register).then_some(*register),
        }
    }
}

/// A call that a caller wanted to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) capability: &'static str,
    /// Whether it was allowed; `None` if that is unknown.
    pub(crate) allowed: Option<bool>,
    /// Whether its report was answered; `None` if there was none.
    pub(crate) reported: Option<bool>,
}

/// A session that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nap {
    /// For how long, milliseconds.
    pub(crate) ms: u64,
    /// When it was asked for, by a right clock; `None` if servers did not know then how much time had passed.
    pub(crate) begun: Option<Time>,
    /// Whether its end was seen.
    pub(crate) is_over: bool,
}

/// Everything that callers did.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// What the registers held when they were made.
    pub(crate) made: BTreeMap<String, Register>,
    pub(crate) registers: BTreeMap<String, Vec<Operation<Did>>>,
    pub(crate) calls: Vec<Call>,
    /// Sessions that wait, by their keys.
    pub(crate) naps: BTreeMap<String, Nap>,
    /// Answered requests: session, request, sequence after it.
    pub(crate) answered: Vec<(String, String, u64)>,
    /// Operations that were begun.
    pub(crate) begun: u64,
    /// Operations whose outcome is known.
    pub(crate) known: u64,
    /// What must not have happened.
    pub(crate) wrong: Vec<String>,
}
