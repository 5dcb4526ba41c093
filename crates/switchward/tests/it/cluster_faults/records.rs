//! What callers of a round did and were answered.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use switchward_testkit::{Counts, Operation, Seen};

use super::endings::Endings;

/// The most operations of a register. The checker takes [`switchward_testkit::OPERATIONS_MAX`]; the last ones read it.
pub(crate) const REGISTER_OPERATIONS_MAX: usize = 100;

/// A register: the sequence of its session, and what it holds.
pub(crate) type Register = (u64, u8);

/// What a caller did with a register, and was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Did {
    /// Set it; `None` if the answer is unknown, else the sequence after it.
    Wrote { to: u8, after: Option<u64> },
    /// Set it if its session was at `at`.
    Exchanged { at: u64, to: u8, after: Option<u64> },
    /// Was refused because its session was at this sequence no longer.
    NotAt(u64),
    /// Read it.
    Read(Register),
}

impl Did {
    /// The register after this; `None` if the answer is wrong. Each change raises the sequence by `step`.
    pub(crate) fn apply(self, (sequence, value): Register, step: u64) -> Option<Register> {
        let next = sequence + step;
        let moved = |to, after: Option<u64>| after.is_none_or(|after| after == next).then_some((next, to));
        match self {
            Self::Wrote { to, after } => moved(to, after),
            Self::Exchanged { at, to, after } if at == sequence => moved(to, after),
            Self::Exchanged { .. } => None,
            Self::NotAt(at) => (at < sequence).then_some((sequence, value)),
            Self::Read(seen) => (seen == (sequence, value)).then_some(seen),
        }
    }

    /// The same for the checker that goes by versions.
    pub(crate) fn seen(self, step: u64) -> Seen<u8> {
        match self {
            Self::Wrote { to, after: None } => Seen::Perhaps { version: None, value: to },
            Self::Exchanged { at, to, after: None } => Seen::Perhaps { version: Some(at + step), value: to },
            Self::Wrote { to, after: Some(version) } | Self::Exchanged { to, after: Some(version), .. } => {
                Seen::Made { version, value: to }
            }
            Self::NotAt(version) => Seen::Past { version },
            Self::Read((version, value)) => Seen::Read { version, value },
        }
    }
}

/// A call that a caller wanted to make: whether it was allowed; `None` if that is not known yet.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) session: String,
    pub(crate) name: String,
    pub(crate) allowed: Option<bool>,
}

/// A session that waits for a timer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nap {
    /// How long it waits, milliseconds.
    pub(crate) ms: u64,
    /// When its caller asked for it.
    pub(crate) asked: Instant,
}

/// Everything that callers of a round did.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// What the registers held when they were made.
    pub(crate) made: BTreeMap<String, Register>,
    pub(crate) registers: BTreeMap<String, Vec<Operation<Did>>>,
    /// Operations of each register that were begun.
    pub(crate) used: BTreeMap<String, usize>,
    pub(crate) calls: Vec<Call>,
    pub(crate) naps: BTreeMap<String, Nap>,
    /// Sessions whose messages must arrive.
    pub(crate) notified: Vec<String>,
    /// Operations that have ended, by their kinds.
    pub(crate) operations: BTreeMap<&'static str, u64>,
    /// How they have ended.
    pub(crate) endings: Endings,
    /// What else was looked at.
    pub(crate) seen: Counts,
    /// What must not have happened.
    pub(crate) wrong: Vec<String>,
}

impl Records {
    /// Returns true if one more operation of this register can be checked, and counts it.
    pub(crate) fn reserve(&mut self, key: &str) -> bool {
        let used = self.used.entry(key.to_owned()).or_default();
        let free = *used < REGISTER_OPERATIONS_MAX;
        *used += usize::from(free);
        free
    }
}

/// Numbers moments: the number of each is higher than those of all earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Moments(AtomicU64);

impl Moments {
    /// The number of this moment, from 1.
    pub(crate) fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }
}
