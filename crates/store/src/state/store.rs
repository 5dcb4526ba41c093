use super::{
    Record, State,
    exchange::fill,
    reopen::{Reopening, closed},
    rows::Tables,
};
use crate::{
    DataDir, GroupId, SnapshotFile, StoreError,
    data_dir::STATE_MARKS,
    database,
    disk::Refusals,
    files::{self, failed},
    forms,
    journal::{Follower, Synced},
    limits::{
        CLEAN_BYTES_DEFAULT, INGESTED_BYTES_MIN, SPACE_WAIT_MAX, SPACE_WAITS, STATE_CACHE_BYTES,
        STATE_JOURNAL_BYTES_MAX, STATE_MEMTABLE_BYTES,
    },
    mark::Mark,
    scrub,
};
use backon::BackoffBuilder as _;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode,
    config::{CompressionPolicy, PartitioningPolicy},
};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashSet,
    fs, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

/// How the tables of each level are compressed, the last of these for all further levels. The first level is written with each
/// flush and soon merged, so nothing is compressed there.
const COMPRESSION: [CompressionType; 2] = [CompressionType::None, CompressionType::Lz4];
/// A keyspace that exists while a scrub is under way.
const FILLER: &str = "filler";

/// The states of all groups of a server, in one database.
///
/// A group has one keyspace, `state-<group>-<generation>`. A snapshot is installed into a keyspace of the next
/// generation in one atomic step that includes the marker; the group's state is the highest generation that has one,
/// and the others are removed when it is opened.
#[derive(Clone)]
pub struct StateStore(Arc<StoreInner>);

pub(super) struct StoreInner {
    /// An error while it is opened again, behind the lock, and for good if that fails.
    database: RwLock<Result<Database, StoreError>>,
    journal: Mutex<Follower>,
    /// How much of the journal was synced.
    mark: Mark<STATE_MARKS>,
    open: Mutex<HashSet<GroupId>>,
    pub(super) reopening: Reopening,
    pub(super) dir: DataDir,
    /// The number of existing cuts, which hold data that was removed since.
    pub(super) cuts: AtomicUsize,
}

/// How to open a [`State`].
#[derive(Clone, Debug)]
pub struct StateOptions {
    /// The clean cache, in bytes.
    pub clean_bytes_max: usize,
    /// Size of the rows in memory from which a flush makes them into a table of its own, bytes.
    pub ingested_bytes_min: usize,
}

impl Default for StateOptions {
    fn default() -> Self {
        StateOptions { clean_bytes_max: CLEAN_BYTES_DEFAULT, ingested_bytes_min: INGESTED_BYTES_MIN }
    }
}

impl StateStore {
    /// Opens or creates the database in a data folder.
    ///
    /// Flushes that a power cut has broken and that were not synced are cut off, and the states are then those of an
    /// earlier entry. The caller must check whether the log still has all that follows.
    ///
    /// # Errors
    /// If it cannot be read or written, or if what was synced is damaged in a way that leaves no whole state.
    pub fn open(dir: &DataDir) -> Result<Self, StoreError> {
        let (mark, synced) = Mark::open(dir.state_synced())?;
        Ok(StateStore(Arc::new(StoreInner {
            database: RwLock::new(Ok(open(dir, synced)?)),
            journal: Mutex::new(Follower::new(dir.state())),
            mark,
            open: Mutex::default(),
            reopening: Reopening::default(),
            dir: dir.clone(),
            cuts: AtomicUsize::new(0),
        })))
    }

    /// Puts the rows of snapshots whose keys `keeps` accepts into the states of a data folder, which have none yet, durably.
    ///
    /// # Errors
    /// If a file cannot be read or the states cannot be written: the folder is then unusable.
    pub(crate) fn restore(
        dir: &DataDir,
        snapshots: impl IntoIterator<Item = Result<SnapshotFile, StoreError>>,
        keeps: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let store = Self::open(dir)?;
        for snapshot in snapshots {
            let snapshot = snapshot?;
            fill(&store.0.keyspace(snapshot.group(), 1)?, &snapshot, keeps)?;
        }
        store.0.sync()
    }

    /// Opens the state of a group as the last flush or installation left it, or an empty one.
    ///
    /// # Errors
    /// [`StoreError::AlreadyOpen`] while another handle to the group's state exists; if it cannot be read.
    pub fn group<R: Record>(&self, group: GroupId, options: &StateOptions) -> Result<State<R>, StoreError> {
        let _open = self.0.reopening.hold_off();
        let claim = Claim::new(self.0.clone(), group)?;
        let mut generations = self.0.generations(group)?;
        let mut last = 0;
        while let Some(generation) = generations.pop() {
            last = last.max(generation);
            let disk = self.0.keyspace(group, generation)?;
            let marker = disk.get(forms::MARKER_KEY).map_err(StoreError::database("read a state"))?;
            let Some(marker) = marker else {
                self.0.remove(disk)?;
                continue;
            };
            for older in generations {
                self.0.remove(self.0.keyspace(group, older)?)?;
            }
            let tables = Tables::new(disk, generation, forms::parse_marker(&marker)?);
            return Ok(State::new(claim, tables, options));
        }
        let tables = Tables::new(self.0.keyspace(group, last + 1)?, last + 1, None);
        Ok(State::new(claim, tables, options))
    }
}

fn open(dir: &DataDir, synced: [u64; STATE_MARKS]) -> Result<Database, StoreError> {
    let [journal, bytes, digest] = synced;
    let settings = database::Settings {
        cache_bytes: STATE_CACHE_BYTES,
        journal_bytes_max: STATE_JOURNAL_BYTES_MAX,
        synced: Synced { journal, bytes, digest },
    };
    database::open(&dir.state(), &settings)
}

impl StoreInner {
    /// The open database; not to be held for long.
    ///
    /// # Errors
    /// It was to be opened again, and that has failed: the process must end.
    pub(super) fn database(&self) -> Result<Database, StoreError> {
        self.database.read().clone()
    }

    /// Closes the database and opens it again. The caller must hold all keyspaces meanwhile. Nobody finds the database closed:
    /// the locks are held until it is open.
    ///
    /// # Errors
    /// If it cannot be opened: the process must end.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        // Locked in the order of a sync.
        let mut journal = self.journal.lock();
        let mut database = self.database.write();
        *database = Err(closed());
        // What was written and not synced may be cut off.
        *journal = Follower::new(self.dir.state());
        let (_, synced) = Mark::open(self.dir.state_synced())?;
        let opened = self.open_again(synced);
        let result = opened.as_ref().map(|_| ()).map_err(Clone::clone);
        *database = opened;
        result
    }

    /// Closes the database for good: who needs it gets this error.
    pub(super) fn lose(&self, error: &StoreError) {
        *self.database.write() = Err(error.clone());
    }

    fn open_again(&self, synced: [u64; STATE_MARKS]) -> Result<Database, StoreError> {
        let (mut waits, mut refusals) = (SPACE_WAITS.build(), Refusals::default());
        loop {
            match open(&self.dir, synced) {
                Ok(opened) => return Ok(opened),
                // Readers that began before still hold the old database for a moment, and so its lock.
                Err(error) => {
                    let (disk, wait) = (self.dir.disk(), waits.next().unwrap_or(SPACE_WAIT_MAX));
                    if refusals.end(disk, &error, 0) || (wait >= SPACE_WAIT_MAX && !disk.caused(&error)) {
                        return Err(error);
                    }
                    thread::sleep(wait);
                }
            }
        }
    }

    /// Opens or creates a keyspace. The options apply to a new one; fjall stores them with it.
    pub(super) fn keyspace(&self, group: GroupId, generation: u64) -> Result<Keyspace, StoreError> {
        // Below the first level an unpartitioned filter or index has a megabyte, which each read of a cold row would
        // load.
        let parts = PartitioningPolicy::new([false, true]);
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(STATE_MEMTABLE_BYTES)
                .data_block_compression_policy(CompressionPolicy::new(COMPRESSION))
                .filter_block_partitioning_policy(parts.clone())
                .index_block_partitioning_policy(parts.clone())
        };
        let name = format!("{}{generation:016x}", prefix(group));
        let database = self.database()?;
        let is_new = !database.keyspace_exists(&name);
        let keyspace = database.keyspace(&name, options).map_err(StoreError::database("open a state"))?;
        if is_new {
            database::sync_keyspaces(&self.dir.state())?;
        }
        Ok(keyspace)
    }

    pub(super) fn remove(&self, keyspace: Keyspace) -> Result<(), StoreError> {
        self.database()?.delete_keyspace(keyspace).map_err(StoreError::database("remove a state"))
    }

    /// Removes deleted data from the files of all states, see `scrub.rs`. Returns true if it is gone.
    pub(super) fn scrub(&self) -> Result<bool, StoreError> {
        if self.cuts.load(SeqCst) > 0 {
            return Ok(false);
        }
        let whole = scrub::run(&mut |bytes| self.fill(bytes), &mut |step| {
            let database = self.database()?;
            let names = database.list_keyspace_names();
            let all = names.iter().map(|name| database.keyspace(name, KeyspaceCreateOptions::default));
            let all = all.collect::<Result<Vec<_>, _>>().map_err(StoreError::database("open a state"))?;
            scrub::step(step, &database, &all)
        })?;
        let database = self.database()?;
        let removed = database.delete_keyspace(filler(&database)?);
        drop(database);
        removed.map_err(StoreError::database("remove a state"))?;
        // The journal that was followed is removed, and takes space while it is open.
        self.journal.lock().look();
        Ok(self.dir.free_removed() && whole)
    }

    fn fill(&self, bytes: usize) -> Result<(), StoreError> {
        let filler = filler(&self.database()?)?;
        filler.insert("zeros", vec![0; bytes]).map_err(StoreError::database("fill a journal"))
    }

    pub(super) fn mark(&self) -> Result<(), StoreError> {
        files::write_whole(&self.dir.owed(), "what was erased is not yet out of the files\n")
    }

    pub(super) fn unmark(&self) -> Result<(), StoreError> {
        match fs::remove_file(self.dir.owed()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &self.dir.owed())(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(super) fn is_marked(&self) -> bool {
        self.dir.owed().exists()
    }

    pub(super) fn sync(&self) -> Result<(), StoreError> {
        // One at a time, so that an older mark never replaces a newer one.
        let mut journal = self.journal.lock();
        let written = journal.look();
        self.database()?.persist(PersistMode::SyncAll).map_err(StoreError::database("sync the state"))?;
        // A sync of the database's own thread may have failed before, see `follower.rs`.
        journal.sync()?;
        if let Some(Synced { journal, bytes, digest }) = written {
            self.mark.put([journal, bytes, digest]);
        }
        Ok(())
    }

    /// The group's generations, ascending.
    fn generations(&self, group: GroupId) -> Result<Vec<u64>, StoreError> {
        let prefix = prefix(group);
        let names = self.database()?.list_keyspace_names();
        let numbers = names.iter().filter_map(|name| name.strip_prefix(&prefix));
        let mut all: Vec<u64> = numbers.filter_map(|number| u64::from_str_radix(number, 16).ok()).collect();
        all.sort_unstable();
        Ok(all)
    }
}

fn filler(database: &Database) -> Result<Keyspace, StoreError> {
    let filler = database.keyspace(FILLER, KeyspaceCreateOptions::default);
    filler.map_err(StoreError::database("open a state"))
}

fn prefix(group: GroupId) -> String {
    format!("state-{:016x}-", group.0)
}

/// The exclusive right to a group's state, until dropped.
pub(super) struct Claim {
    store: Arc<StoreInner>,
    group: GroupId,
}

impl Claim {
    fn new(store: Arc<StoreInner>, group: GroupId) -> Result<Self, StoreError> {
        if !store.open.lock().insert(group) {
            return Err(StoreError::AlreadyOpen(group));
        }
        Ok(Claim { store, group })
    }

    pub(super) fn store(&self) -> Arc<StoreInner> {
        self.store.clone()
    }

    pub(super) fn group(&self) -> GroupId {
        self.group
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.store.reopening.remove(self.group);
        self.store.open.lock().remove(&self.group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_needs_the_database_while_it_is_opened_again_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let StateStore(store) = StateStore::open(&DataDir::open(folder.path()).unwrap()).unwrap();
        drop(store.keyspace(GroupId(1), 1).unwrap());
        // A reader that holds the old database, and so its lock.
        let old = store.database().unwrap();
        let is_open = || store.database.try_read().is_some_and(|database| database.is_ok());
        thread::scope(|scope| {
            let reopened = scope.spawn(|| store.reopen());
            while is_open() && !reopened.is_finished() {
                thread::yield_now();
            }
            let synced = scope.spawn(|| store.sync());
            drop(old);
            reopened.join().unwrap().unwrap();
            synced.join().unwrap().unwrap();
        });
        assert_eq!(store.generations(GroupId(1)).unwrap(), [1]);
    }

    /// The thread of the database may have been told before that a journal could not be written.
    #[test]
    fn a_sync_that_fails_beside_the_database_marks_nothing_and_no_later_one_succeeds() {
        let folder = tempfile::tempdir().unwrap();
        let dir = DataDir::open(folder.path()).unwrap();
        let StateStore(store) = StateStore::open(&dir).unwrap();
        let synced = || Mark::<STATE_MARKS>::open(dir.state_synced()).unwrap().1;
        let rows = store.keyspace(GroupId(1), 1).unwrap();
        rows.insert("a", "1").unwrap();
        store.sync().unwrap();
        let before = synced();
        assert_ne!(before, [0; STATE_MARKS]);
        rows.insert("b", "2").unwrap();
        store.journal.lock().break_handle().unwrap();
        for expected in ["failed to sync", "failed to sync the journal"] {
            let error = store.sync().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert_eq!(synced(), before);
        drop(rows);
        store.reopen().unwrap();
        store.sync().unwrap();
        assert_ne!(synced(), before, "what was written is written and synced again");
    }
}
