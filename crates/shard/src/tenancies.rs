//! Whether a shard's copies of the tenants' records are up to date. Its leader compares them with the catalogue every second,
//! brings those up to date that are behind, and notes when it asked. While it cannot reach the catalogue, somebody who was
//! removed there may still be an approver here: then the shard takes no decisions about gates.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::TENANCIES_STALE_AFTER;

/// What a server knows of the tenants' records in the rows of one group.
#[derive(Default)]
pub(crate) struct Tenancies {
    /// Counts the changes of records, each after it is visible in the rows and before those are notified who wait for its
    /// entry. Means something in this process only.
    changes: AtomicU64,
    confirmed: Mutex<Confirmed>,
    /// Notified when the cluster ends.
    pub(crate) notify: Notify,
}

/// How far the copies of a shard are known to be those of the catalogue.
#[derive(Default)]
struct Confirmed {
    /// The catalogue's count of changes that they include.
    included: Option<u64>,
    /// They include what the catalogue had acknowledged at this time.
    at: Option<Instant>,
}

impl Tenancies {
    /// Counts a change that is visible now.
    pub(crate) fn changed(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of changes so far.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Returns true if the copies include as many changes of the catalogue.
    pub(crate) fn include(&self, changes: u64) -> bool {
        self.confirmed.lock().included.is_some_and(|included| included >= changes)
    }

    /// Notes that the copies include this many changes of the catalogue, which had no others that were acknowledged at `at`.
    pub(crate) fn confirm(&self, changes: u64, at: Instant) {
        let mut confirmed = self.confirmed.lock();
        confirmed.included = confirmed.included.max(Some(changes));
        confirmed.at = confirmed.at.max(Some(at));
    }

    /// Returns true if the copies were those of the catalogue within the last [`TENANCIES_STALE_AFTER`].
    pub(crate) fn are_confirmed(&self) -> bool {
        self.confirmed.lock().at.is_some_and(|at| at.elapsed() < TENANCIES_STALE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::TENANCIES_CONFIRM_INTERVAL;

    #[tokio::test(start_paused = true)]
    async fn a_confirmation_lasts_for_five_seconds_from_the_question() {
        let tenancies = Tenancies::default();
        assert!(!tenancies.are_confirmed() && !tenancies.include(0));
        let asked = Instant::now();
        tokio::time::advance(TENANCIES_CONFIRM_INTERVAL).await;
        tenancies.confirm(3, asked);
        assert!(tenancies.are_confirmed() && tenancies.include(3) && !tenancies.include(4));
        // An answer that comes late takes nothing back.
        tenancies.confirm(2, asked.checked_sub(TENANCIES_CONFIRM_INTERVAL).unwrap_or(asked));
        assert!(tenancies.include(3));
        tokio::time::advance(TENANCIES_STALE_AFTER - TENANCIES_CONFIRM_INTERVAL).await;
        assert!(!tenancies.are_confirmed());
    }
}
