//! Timers: what falls due in a shard happens once, soon, and never early.
//!
//! The record is the index of what is due, on disk with the rows that it is about. A leader keeps the first entries of it
//! in memory ([`head`](self)), is told of every entry that an applied decision adds or takes away there, sleeps until the
//! first of them is due, and hands out what is due in batches. What definitions wait for travels by the cluster's
//! [`TimerRoad`] and comes back by [`Cluster::fire`](crate::Cluster::fire); what is only the server's own housekeeping, and
//! all that the road refuses or loses, the leader fires itself. Firing is a command that does nothing where the timer is
//! gone or not due, so an attempt too many costs time and nothing else.
//!
//! Each attempt is fenced by its shard, its term and its number there: a batch that comes when its leader has given it up,
//! or to another leader, fires nothing. A timer is in one attempt at a time.

mod batch;
mod duty;
mod head;
mod road;

use parking_lot::Mutex;
use std::sync::Arc;
use switchward_engine::{Due, IndexKey, Key, Kind};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::failure::Failure;
pub use batch::TimerBatch;
pub(crate) use duty::{fire, work};
use head::Head;
pub use head::TimerCounts;
pub use road::{Fired, NotAccepted, TimerRoad};

/// The timers of one shard, as the applied decisions and the leader's duty share them.
#[derive(Default)]
pub(crate) struct Timers {
    head: Mutex<Head>,
    /// Told when there may be something to do for the duty.
    pub(crate) told: Arc<Notify>,
}

impl Timers {
    /// A decision was applied that changed these entries of the index; true for those that now stand there.
    pub(crate) fn changed(&self, entries: Vec<(Key, bool)>) {
        if entries.is_empty() {
            return;
        }
        let mut head = self.head.lock();
        let mut wake = false;
        for (entry, stands) in entries {
            wake |= head.changed(entry, stands);
        }
        drop(head);
        if wake {
            self.told.notify_one();
        }
    }

    /// What is left to fire of a batch that has come; nothing where it has come before, or nobody waits for it.
    pub(crate) fn came(&self, batch: &TimerBatch, until: Instant) -> Option<Vec<Key>> {
        self.head.lock().came(batch, until)
    }

    /// Takes note of what became of an attempt's timers.
    ///
    /// # Errors
    /// The shard has stopped.
    pub(crate) fn settle(
        &self,
        number: u64,
        results: Vec<(Key, Result<(), Failure>)>,
    ) -> Result<(), Failure> {
        let now = Instant::now();
        let mut head = self.head.lock();
        let mut stopped = Ok(());
        for (entry, result) in results {
            if result == Err(Failure::Stopped) {
                stopped = Err(Failure::Stopped);
            }
            head.settle(number, entry, result, now);
        }
        drop(head);
        self.told.notify_one();
        stopped
    }

    /// How many there are of each.
    pub(crate) fn counts(&self) -> TimerCounts {
        self.head.lock().counts()
    }
}

/// What an entry of the index is about. Only entries that were read as such are ever handed here.
fn due_of(entry: &Key) -> Option<Due> {
    IndexKey::due_of(entry)
}

/// Whether somebody waits for this time: it goes by the road. The rest is the server's own housekeeping.
fn travels(row: &Key) -> bool {
    row.is(Kind::Thing) || row.is(Kind::Open)
}
