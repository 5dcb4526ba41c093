//! Timers: what falls due in a shard fires once, soon, and never early.
//!
//! The record is the index of what is due, on disk with the rows that it is about. A leader keeps its first entries
//! in memory ([`head`](self)), is notified of every entry that an applied decision adds or removes, sleeps until the
//! first of them is due, and hands out what is due in batches. What definitions wait for is sent by the cluster's
//! [`TimerTransport`] and comes back by [`Cluster::fire`](crate::Cluster::fire); the leader itself fires the server's
//! own housekeeping, and all that the transport refuses or loses. Firing is a command that does nothing if the timer
//! is gone or not due, so a surplus attempt costs only time.
//!
//! Each attempt is fenced by its shard, its term and its number there: a batch that comes back after its leader has
//! given it up, or to another leader, fires nothing. A timer is in one attempt at a time.

mod batch;
mod dispatch;
mod head;
mod transport;

use parking_lot::Mutex;
use std::sync::Arc;
use switchward_state::{Due, IndexKey, Key, Kind};
use tokio::{sync::Notify, time::Instant};

use crate::failure::Failure;
pub use batch::TimerBatch;
pub(crate) use dispatch::{fire, work};
pub(crate) use head::EntryChange;
use head::Head;
pub use head::TimerCounts;
pub use transport::{Fired, NotAccepted, TimerTransport};

/// The timers of one shard, shared by the applied decisions and the dispatcher.
#[derive(Default)]
pub(crate) struct Timers {
    head: Mutex<Head>,
    /// Notified when the dispatcher may have something to do.
    pub(crate) notify: Arc<Notify>,
}

impl Timers {
    /// An applied decision made these changes of the index.
    pub(crate) fn changed(&self, changes: Vec<EntryChange>) {
        if changes.is_empty() {
            return;
        }
        let mut head = self.head.lock();
        let mut wake = false;
        for change in changes {
            wake |= head.changed(change);
        }
        drop(head);
        if wake {
            self.notify.notify_one();
        }
    }

    /// The timers of a returned batch that are still to be fired; `None` if it came back before, or no leader waits
    /// for it.
    pub(crate) fn came(&self, batch: &TimerBatch, until: Instant) -> Option<Vec<Key>> {
        self.head.lock().came(batch, until)
    }

    /// Records the results of an attempt's timers.
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
        self.notify.notify_one();
        stopped
    }

    /// The number of timers in each state.
    pub(crate) fn counts(&self) -> TimerCounts {
        self.head.lock().counts()
    }
}

/// The row that an index entry is about. Only entries that were read as such are passed here.
fn due_of(entry: &Key) -> Option<Due> {
    IndexKey::due_of(entry)
}

/// Returns true if a definition waits for this time: it is sent by the transport. The rest is the server's own
/// housekeeping.
fn travels(row: &Key) -> bool {
    row.is(Kind::OpenItem)
}
