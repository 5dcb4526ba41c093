//! What a group's state machine shares with its shard's loop and its tasks.

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::io;
use std::ops::ControlFlow;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
use switchward_state::seal::KeyRing;
use switchward_state::{Decision, IndexKey, Key, Level, Row, View as _};
use switchward_store::{Snapshots, State, StoreError};
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};

use crate::backup::Pause;
use crate::codec::{Applied, decode_json};
use crate::contact::Contact;
use crate::deletions;
use crate::failed::Failed;
use crate::level::{WriteLevel, check_rows};
use crate::marks::Marks;
use crate::may_lead::MayLead;
use crate::metrics::ShardMetrics;
use crate::outbox::Outbox;
use crate::record::{Puts, Stored};
use crate::routes::Routes;
use crate::snapshot::SnapshotSource;
use crate::tenancies::Tenancies;
use crate::timers::Timers;
use crate::types::LogId;
use crate::view::{StateView, Whole};
use crate::watch::Watchers;

pub(crate) struct Shared {
    pub(crate) state: State<Stored>,
    pub(crate) whole: Arc<Whole>,
    /// Opens the secrets in the rows.
    pub(crate) ring: RwLock<KeyRing>,
    pub(crate) snapshots: Snapshots,
    pub(crate) watchers: Watchers,
    pub(crate) metrics: ShardMetrics,
    /// Notified when the leader has effects to relay.
    pub(crate) leader_tasks: Arc<Notify>,
    pub(crate) timers: Timers,
    /// Notified when there may be data to remove.
    pub(crate) removals: Arc<Notify>,
    /// When the last erasure began whose bytes may still be in this server's files, milliseconds; 0 if there is none.
    pub(crate) erased: AtomicU64,
    /// Rows of sessions and tenants that were removed since disk space was last given back.
    pub(crate) removed: AtomicUsize,
    pub(crate) outbox: Outbox,
    /// What was taken at the marks in the log.
    pub(crate) marks: Arc<Marks>,
    /// Set if this replica has failed.
    pub(crate) failed: Failed,
    /// The feature level at which this server writes the group.
    pub(crate) level: WriteLevel,
    /// True while this server leads the group, as of its last look.
    pub(crate) leads: watch::Sender<bool>,
    /// True once the state store has failed to read a row.
    unreadable: Arc<AtomicBool>,
    pub(crate) tenancies: Tenancies,
    pub(crate) contact: Contact,
    /// Whether this server may lead the group.
    pub(crate) may_lead: MayLead,
    /// True once the shard takes no more commands.
    pub(crate) drains: AtomicBool,
    /// The last position that the state store has on disk.
    flushed: Mutex<Option<Applied>>,
    /// The decision of this server's own loop that is not yet applied.
    pending_decision: Mutex<Option<PendingDecision>>,
    /// The last entry that was applied.
    position: Mutex<Option<LogId>>,
    /// Its index, for those who wait for one; 0 before the first.
    applied: watch::Sender<u64>,
    /// Which shard of this server owns which bucket, once the group is one of its shards.
    pub(crate) routes: OnceLock<Arc<Routes>>,
    /// Held while a batch is decided and written, while leadership is handed over, and while a backup is taken.
    pub(crate) deciding: Arc<AsyncMutex<()>>,
    /// Set while this server decides nothing because a backup is taken.
    pub(crate) pause: Mutex<Option<Pause>>,
}

/// Later than all erasures of an earlier process, milliseconds.
const LONG_AFTER: u64 = 1 << 62;

/// The result of persisting the state.
pub(crate) enum Persisted {
    /// The rows are on disk as they were after this entry.
    To(Option<Applied>),
    /// The disk is full; try again.
    DiskFull,
}

/// A decision, with what it puts into the state store if nothing else is applied before it.
pub(crate) struct PendingDecision {
    pub(crate) entry: Bytes,
    pub(crate) base: Option<LogId>,
    pub(crate) decision: Decision,
    /// The changed rows, and their index entries.
    pub(crate) puts: Puts,
}

impl PendingDecision {
    /// Returns true if it is what this entry decides, and was made on the rows as of `base`.
    fn is_for(&self, entry: &[u8], base: Option<LogId>) -> bool {
        self.base == base && self.entry == entry
    }
}

pub(crate) fn broken(error: StoreError) -> io::Error {
    io::Error::other(error)
}

impl Shared {
    pub(crate) fn new(
        state: State<Stored>,
        snapshots: Snapshots,
        ring: KeyRing,
        failed: Failed,
        level: WriteLevel,
    ) -> Self {
        // What an earlier process left to be done covers everything that began before now.
        let erased = if state.is_marked() { LONG_AFTER } else { 0 };
        Self {
            state,
            whole: Arc::default(),
            ring: RwLock::new(ring),
            snapshots,
            watchers: Watchers::default(),
            metrics: ShardMetrics::default(),
            leader_tasks: Arc::default(),
            timers: Timers::default(),
            removals: Arc::default(),
            erased: AtomicU64::new(erased),
            removed: AtomicUsize::new(0),
            outbox: Outbox::default(),
            marks: Arc::default(),
            failed,
            level,
            leads: watch::Sender::default(),
            unreadable: Arc::default(),
            tenancies: Tenancies::default(),
            contact: Contact::default(),
            may_lead: MayLead::default(),
            drains: AtomicBool::default(),
            flushed: Mutex::default(),
            pending_decision: Mutex::default(),
            position: Mutex::default(),
            applied: watch::Sender::default(),
            routes: OnceLock::new(),
            deciding: Arc::default(),
            pause: Mutex::default(),
        }
    }

    /// Wakes the leader tasks.
    pub(crate) fn wake(&self) {
        self.leader_tasks.notify_one();
        self.timers.notify.notify_one();
        self.removals.notify_one();
        self.tenancies.notify.notify_one();
    }

    /// The last entry that was applied.
    pub(crate) fn position(&self) -> Option<LogId> {
        *self.position.lock()
    }

    /// Records the last entry that was applied.
    pub(crate) fn at(&self, position: Option<LogId>) {
        *self.position.lock() = position;
        self.applied.send_replace(position.map_or(0, |position| position.index));
    }

    /// The index of the last entry that was applied, to wait for a later one.
    pub(crate) fn applied(&self) -> watch::Receiver<u64> {
        self.applied.subscribe()
    }

    /// Checks that this server can read the rows: it has not written all of them itself.
    ///
    /// # Errors
    /// They are of a feature level that it does not know, or cannot be read.
    pub(crate) fn check_level(&self) -> io::Result<()> {
        let row = self.view().row(&Key::level()).map_err(io::Error::other)?;
        let level = if let Some(Row::Level(level)) = row.as_deref() { *level } else { Level::FIRST };
        let failed = |why| io::Error::new(io::ErrorKind::InvalidData, why);
        check_rows(self.level.levels(), level).map_err(failed)
    }

    /// Has this server route by the map of the cluster that the rows hold, if they hold one.
    ///
    /// # Errors
    /// The row cannot be read.
    pub(crate) fn follow_map(&self) -> io::Result<()> {
        let Some(routes) = self.routes.get() else { return Ok(()) };
        let row = self.view().row(&Key::cluster_map()).map_err(io::Error::other)?;
        if let Some(Row::ClusterMap(map)) = row.as_deref() {
            routes.follow(map);
        }
        Ok(())
    }

    /// Stores a decision until it is applied.
    pub(crate) fn set_pending_decision(&self, pending: PendingDecision) {
        *self.pending_decision.lock() = Some(pending);
    }

    /// Takes the pending decision if it is for this entry and was made on the current rows.
    pub(crate) fn take_pending_decision(&self, entry: &[u8], base: Option<LogId>) -> Option<PendingDecision> {
        let pending = self.pending_decision.lock().take();
        pending.filter(|pending| pending.is_for(entry, base))
    }

    /// Returns true if the pending decision is for this entry and was made on the current rows.
    pub(crate) fn has_pending_decision(&self, entry: &[u8], base: Option<LogId>) -> bool {
        self.pending_decision.lock().as_ref().is_some_and(|pending| pending.is_for(entry, base))
    }

    /// The rows, to read.
    pub(crate) fn view(&self) -> StateView {
        let (whole, unreadable) = (Arc::clone(&self.whole), Arc::clone(&self.unreadable));
        StateView::new(self.state.clone(), whole, self.ring.read().clone(), unreadable)
    }

    /// Records that the state store has failed to read a row.
    pub(crate) fn store_failed(&self, error: StoreError) -> io::Error {
        self.unreadable.store(true, Ordering::Release);
        broken(error)
    }

    /// Returns true if the state store has failed to read a row: the server must end.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.unreadable.load(Ordering::Acquire)
    }

    /// Flushes all rows that were changed before the call to the state store, also if a flush is under way. Blocks.
    ///
    /// With several voters the rows may be ahead of this server's own log, when a majority of others has committed an
    /// entry that is not yet on disk here. A restart then finds the log shorter than the rows and continues from the
    /// rows: a truncation is on disk before the entries that replace what it removed, so nothing in that log can
    /// contradict them.
    pub(crate) fn checkpoint(&self) -> io::Result<()> {
        if !self.state.recover().map_err(broken)? {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.state.flush().map_err(broken)
    }

    /// Frees the memory of rows that were written to the state store. Blocks.
    pub(crate) fn settle(&self) -> io::Result<()> {
        self.state.settle().map_err(broken)
    }

    /// Syncs what was written, and returns its position. Blocks.
    pub(crate) fn persist(&self) -> io::Result<Option<Applied>> {
        // One at a time, so that an older position never replaces a newer one.
        let mut flushed = self.flushed.lock();
        *flushed = self.state.persist().map_err(broken)?.map(|bytes| decode_json(&bytes)).transpose()?;
        Ok(flushed.clone())
    }

    /// Records that erased bytes may be in this server's files: the rows of a snapshot are those after erasures whose
    /// entries this replica never saw, and what it had before is still in its log and its tables.
    ///
    /// # Errors
    /// A row cannot be read.
    pub(crate) fn owe_after_snapshot(&self) -> io::Result<()> {
        if let Err(error) = self.state.mark() {
            tracing::warn!(%error, "failed to record that the files still hold erased data; a restart forgets it");
        }
        // The removals that the snapshot shows under way have to end first.
        let mut began = 1;
        let view = self.view();
        let read = view.scan(&IndexKey::removals(), None, &mut |entry, _| {
            began = began.max(IndexKey::due_of(entry).map_or(0, |due| due.at.0));
            ControlFlow::Continue(())
        });
        let tenants = read.and_then(|()| deletions::under_way(&view)).map_err(io::Error::other)?;
        let began = tenants.into_iter().fold(began, |began, (_, at)| began.max(at.0));
        let later = |known: u64| Some(began.max(known.saturating_add(1)));
        let _known = self.erased.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
        Ok(())
    }

    /// Flushes changed rows and syncs them. Blocks.
    pub(crate) fn persisted(&self) -> io::Result<Persisted> {
        if let Err(error) = self.checkpoint() {
            return if self.state.waits_for_space(&error) { Ok(Persisted::DiskFull) } else { Err(error) };
        }
        self.synced()
    }

    /// Replaces all rows by those of a snapshot, durably. Blocks.
    ///
    /// # Errors
    /// The snapshot cannot be read, or the disk refuses for another reason than that it is full.
    pub(crate) fn install(&self, snapshot: &SnapshotSource) -> io::Result<Persisted> {
        if !self.state.recover().map_err(broken)? {
            return Ok(Persisted::DiskFull);
        }
        if let Err(error) = self.state.install(&snapshot.file()?) {
            let waits = self.state.waits_for_space(&error);
            return if waits { Ok(Persisted::DiskFull) } else { Err(broken(error)) };
        }
        #[cfg(feature = "planted")]
        if planted!(SnapshotWithoutRequests) {
            crate::planted::forget_requests(&self.state)?;
        }
        self.synced()
    }

    /// Syncs what was written. Blocks.
    fn synced(&self) -> io::Result<Persisted> {
        match self.persist() {
            Ok(applied) => Ok(Persisted::To(applied)),
            Err(error) if self.state.gave_up_for_space(&error) => Ok(Persisted::DiskFull),
            Err(error) => Err(error),
        }
    }

    /// The last position that the state store has on disk.
    pub(crate) fn flushed(&self) -> Option<Applied> {
        self.flushed.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use openraft::vote::leader_id_std::CommittedLeaderId;
    use std::thread;
    use switchward_state::Levels;
    use switchward_store::{DataDir, DiskOptions, GroupId, RowKey, StateOptions, StateStore};

    use super::*;
    use crate::codec::encode_json;

    const GROUP: GroupId = GroupId(1);

    fn shared(data: &DataDir) -> Shared {
        let state = StateStore::open(data).unwrap().group(GROUP, &StateOptions::default()).unwrap();
        let (snapshots, ring) = (Snapshots::open(data).unwrap(), switchward_scenario::ring().clone());
        let level = WriteLevel::of_server_alone(Levels::OF_PROGRAM);
        Shared::new(state, snapshots, ring, Failed::of(GROUP), level)
    }

    /// Ends an entry that changes no rows.
    fn apply(shared: &Shared, index: u64) {
        let last = Some(LogId { leader_id: CommittedLeaderId::new(1), index });
        let applied = encode_json(&Applied { last, ..Applied::default() }).unwrap();
        let none: [(RowKey, Option<Stored>); 0] = [];
        shared.state.apply(none, applied);
    }

    #[test]
    fn a_checkpoint_writes_what_came_after_the_flush_that_is_under_way() {
        let folder = tempfile::tempdir().unwrap();
        let shared = shared(&DataDir::open(folder.path()).unwrap());
        apply(&shared, 1);
        let first = shared.state.begin_flush().unwrap();
        apply(&shared, 2);
        thread::scope(|scope| {
            let checkpoint = scope.spawn(|| shared.checkpoint());
            // It would end now if it did not wait.
            for _ in 0..1_000 {
                thread::yield_now();
            }
            first.run().unwrap();
            checkpoint.join().unwrap().unwrap();
        });
        let written = shared.persist().unwrap().and_then(|applied| applied.last);
        assert_eq!(written.map(|last| last.index), Some(2));
    }

    #[test]
    fn an_installation_waits_for_a_disk_that_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let full = DiskOptions { min_free_bytes: u64::MAX / 2, reserve_bytes: u64::MAX / 2 };
        let shared = shared(&DataDir::open(folder.path()).unwrap().watched(full).unwrap());
        apply(&shared, 1);
        let snapshot = SnapshotSource::File(shared.state.export(&shared.snapshots).unwrap());
        apply(&shared, 2);
        // Another write has found no space.
        assert!(shared.state.waits_for_space(&io::Error::from(io::ErrorKind::StorageFull)));
        assert!(matches!(shared.install(&snapshot), Ok(Persisted::DiskFull)));
        let applied: Applied = decode_json(&shared.state.applied().unwrap()).unwrap();
        assert_eq!(applied.last.map(|last| last.index), Some(2), "nothing has changed");
    }
}
