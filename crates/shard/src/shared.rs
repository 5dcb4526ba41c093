//! What a group's state machine shares with its shard's loop and its duties.

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use switchward_engine::{Changes, Decision, KeyRing};
use switchward_store::{Snapshots, State, StoreError};
use tokio::sync::Notify;

use crate::codec::{Applied, decode_json};
use crate::metrics::ShardMetrics;
use crate::outbox::Outbox;
use crate::record::Stored;
use crate::timers::Timers;
use crate::types::LogId;
use crate::view::{StateView, Whole};
use crate::watch::Watchers;

pub(crate) struct Shared {
    pub(crate) state: State<Stored>,
    pub(crate) whole: Arc<Whole>,
    /// What opens the secrets in the rows.
    pub(crate) ring: RwLock<KeyRing>,
    pub(crate) snapshots: Snapshots,
    pub(crate) watchers: Watchers,
    pub(crate) metrics: ShardMetrics,
    /// Told when something is there for the leader to carry.
    pub(crate) duties: Arc<Notify>,
    pub(crate) timers: Timers,
    /// Told when there may be data to remove.
    pub(crate) removals: Arc<Notify>,
    /// When the last erasure began whose bytes may still be in this server's files, milliseconds; 0 where there is none.
    pub(crate) erased: AtomicU64,
    /// Rows of sessions and tenants that were removed since the disk was last given back.
    pub(crate) removed: AtomicUsize,
    pub(crate) outbox: Outbox,
    /// The last position that the state store has on disk.
    flushed: Mutex<Option<Applied>>,
    /// What this server's own loop has decided and not yet seen applied.
    foreseen: Mutex<Option<Foreseen>>,
    /// The last entry that was applied.
    position: Mutex<Option<LogId>>,
}

/// After all erasures of an earlier process, milliseconds.
const LONG_AFTER: u64 = 1 << 62;

/// What came of writing everything down.
pub(crate) enum Persisted {
    /// The rows are on disk as they were after this entry.
    To(Option<Applied>),
    /// The disk is full; it is worth another try.
    NoRoom,
}

/// A decision, with the rows that it changes where nothing is applied before it.
pub(crate) struct Foreseen {
    pub(crate) entry: Bytes,
    pub(crate) base: Option<LogId>,
    pub(crate) decision: Decision,
    pub(crate) changes: Changes,
}

pub(crate) fn broken(error: StoreError) -> io::Error {
    io::Error::other(error)
}

impl Shared {
    pub(crate) fn new(state: State<Stored>, snapshots: Snapshots, ring: KeyRing) -> Self {
        // What an earlier process has left to be done is done for all that began before now.
        let erased = if state.is_marked() { LONG_AFTER } else { 0 };
        Self {
            state,
            whole: Arc::default(),
            ring: RwLock::new(ring),
            snapshots,
            watchers: Watchers::default(),
            metrics: ShardMetrics::default(),
            duties: Arc::default(),
            timers: Timers::default(),
            removals: Arc::default(),
            erased: AtomicU64::new(erased),
            removed: AtomicUsize::new(0),
            outbox: Outbox::default(),
            flushed: Mutex::default(),
            foreseen: Mutex::default(),
            position: Mutex::default(),
        }
    }

    /// Makes the leader's duties look up from their sleep.
    pub(crate) fn wake(&self) {
        self.duties.notify_one();
        self.timers.told.notify_one();
        self.removals.notify_one();
    }

    /// The last entry that was applied.
    pub(crate) fn position(&self) -> Option<LogId> {
        *self.position.lock()
    }

    /// An entry was applied.
    pub(crate) fn at(&self, position: Option<LogId>) {
        *self.position.lock() = position;
    }

    /// Keeps what a decision comes to until it is applied.
    pub(crate) fn foresee(&self, foreseen: Foreseen) {
        *self.foreseen.lock() = Some(foreseen);
    }

    /// What this very entry comes to, where it was decided here on the very rows that stand now.
    pub(crate) fn foreseen(&self, entry: &[u8], base: Option<LogId>) -> Option<Foreseen> {
        let foreseen = self.foreseen.lock().take();
        foreseen.filter(|foreseen| foreseen.base == base && foreseen.entry == entry)
    }

    /// The rows, to read.
    pub(crate) fn view(&self) -> StateView {
        StateView::new(self.state.clone(), Arc::clone(&self.whole), self.ring.read().clone())
    }

    /// Writes what has changed to the state store. Blocks.
    ///
    /// With several voters the rows may come to be ahead of this server's own log, when a majority of others has
    /// committed an entry that is not yet on disk here. A restart then finds the log shorter than the rows and
    /// goes on from the rows: a truncation is on disk before the entries that take the place of what it removed,
    /// so nothing in that log can contradict them.
    pub(crate) fn checkpoint(&self) -> io::Result<()> {
        if !self.state.recover().map_err(broken)? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if let Some(flush) = self.state.begin_flush() {
            flush.run().map_err(broken)?;
        }
        Ok(())
    }

    /// Gives back the memory of rows that were written to the state store. Blocks.
    pub(crate) fn settle(&self) -> io::Result<()> {
        self.state.settle().map_err(broken)
    }

    /// Makes sure that what was written stays written, and says up to where. Blocks.
    pub(crate) fn persist(&self) -> io::Result<Option<Applied>> {
        // One at a time, so that an older position never takes the place of a newer one.
        let mut flushed = self.flushed.lock();
        *flushed = self.state.persist().map_err(broken)?.map(|bytes| decode_json(&bytes)).transpose()?;
        Ok(flushed.clone())
    }

    /// Writes what has changed and makes sure that it stays written. Blocks.
    pub(crate) fn persisted(&self) -> io::Result<Persisted> {
        if let Err(error) = self.checkpoint() {
            return if self.state.waits_for_room(&error) { Ok(Persisted::NoRoom) } else { Err(error) };
        }
        match self.persist() {
            Ok(applied) => Ok(Persisted::To(applied)),
            Err(error) if self.state.gave_up_for_room(&error) => Ok(Persisted::NoRoom),
            Err(error) => Err(error),
        }
    }

    /// The last position that the state store has on disk.
    pub(crate) fn flushed(&self) -> Option<Applied> {
        self.flushed.lock().clone()
    }
}
