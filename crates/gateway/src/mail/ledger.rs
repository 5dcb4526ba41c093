//! What came by mail lately, and how much of it came to what.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use switchward_machine::Time;

use super::Outcome;
use crate::limits::MAIL_SEEN_MAX;

/// A message that came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When.
    pub at: Time,
    /// From whom, as far as it is known; not proved.
    pub from: String,
    /// Its subject, where a person wrote it.
    pub subject: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// The last messages, and counts of all.
#[derive(Default)]
pub(super) struct Ledger(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    seen: VecDeque<Seen>,
    counts: BTreeMap<(&'static str, &'static str), u64>,
}

impl Ledger {
    pub(super) fn note(&self, seen: Seen) {
        let mut kept = self.0.lock();
        *kept.counts.entry(seen.outcome.words()).or_default() += 1;
        kept.seen.push_front(seen);
        kept.seen.truncate(MAIL_SEEN_MAX);
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.0.lock().seen.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> Vec<((&'static str, &'static str), u64)> {
        self.0.lock().counts.iter().map(|(of, count)| (*of, *count)).collect()
    }
}
