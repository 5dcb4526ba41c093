//! The latest inbound mails, and how many had which outcome.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use switchward_machine::{Digest, Time};

use super::Outcome;
use crate::limits::{MAIL_SEEN_MAX, MAIL_WAIT_MS, MAIL_WAITING_MAX};

/// A message that came.
#[derive(Debug, Clone)]
pub struct Seen {
    /// When it came.
    pub at: Time,
    /// The sender, if known; not proved.
    pub from: String,
    /// Its subject, if a person wrote it.
    pub subject: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// The last messages, and counts of all.
#[derive(Default)]
pub(super) struct Ledger(Mutex<LedgerState>);

#[derive(Default)]
struct LedgerState {
    seen: VecDeque<Seen>,
    counts: BTreeMap<(&'static str, &'static str), u64>,
    /// Messages whose sender could not be looked up yet, and when each came first.
    waiting: BTreeMap<[u8; 32], Time>,
}

impl Ledger {
    pub(super) fn note(&self, seen: Seen) {
        let mut kept = self.0.lock();
        *kept.counts.entry(seen.outcome.words()).or_default() += 1;
        kept.seen.push_front(seen);
        kept.seen.truncate(MAIL_SEEN_MAX);
    }

    /// Returns true if a message whose sender could not be looked up must be delivered again. After [`MAIL_WAIT_MS`] it is
    /// treated as one that proves nothing.
    pub(super) fn waits(&self, digest: Digest, now: Time) -> bool {
        let mut kept = self.0.lock();
        let first = kept.waiting.get(&digest.0).copied();
        if first.is_none() && kept.waiting.len() >= MAIL_WAITING_MAX {
            // Those that never came again, or came to another server, must not keep others from waiting.
            kept.waiting.retain(|_, first| now.since_ms(*first) < MAIL_WAIT_MS);
            if kept.waiting.len() >= MAIL_WAITING_MAX {
                return false;
            }
        }
        // Until the clock is compared with the other servers' it may be far ahead, and goes back then.
        let first = first.map_or(now, |first| first.min(now));
        let waits = now.since_ms(first) < MAIL_WAIT_MS;
        if waits {
            kept.waiting.insert(digest.0, first);
        } else {
            kept.waiting.remove(&digest.0);
        }
        waits
    }

    /// Records that a message need not wait any more.
    pub(super) fn settled(&self, digest: Digest) {
        self.0.lock().waiting.remove(&digest.0);
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.0.lock().seen.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> Vec<((&'static str, &'static str), u64)> {
        self.0.lock().counts.iter().map(|(of, count)| (*of, *count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_for_the_dns_so_long_and_no_longer() {
        let (ledger, digest) = (Ledger::default(), Digest([7; 32]));
        assert!(ledger.waits(digest, Time(5)));
        assert!(ledger.waits(digest, Time(4 + MAIL_WAIT_MS)));
        assert!(!ledger.waits(digest, Time(5 + MAIL_WAIT_MS)));
        // A message that comes again much later starts a new wait.
        assert!(ledger.waits(digest, Time(6 + MAIL_WAIT_MS)));
        ledger.settled(digest);
        assert!(ledger.waits(digest, Time(5 + 2 * MAIL_WAIT_MS)));
    }

    #[test]
    fn a_message_waits_no_longer_because_the_clock_has_gone_back() {
        let (ledger, digest) = (Ledger::default(), Digest([7; 32]));
        assert!(ledger.waits(digest, Time(9 * MAIL_WAIT_MS)));
        assert!(ledger.waits(digest, Time(5)));
        assert!(!ledger.waits(digest, Time(5 + MAIL_WAIT_MS)));
    }

    #[test]
    fn so_many_wait_and_no_more() {
        let ledger = Ledger::default();
        for number in 0..u64::try_from(MAIL_WAITING_MAX).unwrap() {
            assert!(ledger.waits(Digest::of(&number.to_be_bytes()), Time(1)));
        }
        assert!(!ledger.waits(Digest::of(b"one more"), Time(1)));
        assert!(ledger.waits(Digest::of(&0_u64.to_be_bytes()), Time(1)));
        // None of them has come again.
        assert!(!ledger.waits(Digest::of(b"one more"), Time(MAIL_WAIT_MS)));
        assert!(ledger.waits(Digest::of(b"one more"), Time(1 + MAIL_WAIT_MS)));
    }
}
