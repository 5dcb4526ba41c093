use super::{
    LogOptions, LogStats, Meta,
    queue::{Operation, Queue, Write},
    view::View,
};
use crate::{
    DataDir, GroupId, StoreError, database,
    forms::{KIND_RECORD, LOG_KEY_BYTES, LOG_META, LOG_RECORD, log_key},
    journal::Spare,
    limits::{LOG_CACHE_BYTES, LOG_JOURNAL_BYTES_MAX, LOG_MEMTABLE_BYTES, REOPEN_WAIT, REOPEN_WAIT_MAX},
};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Slice};
use parking_lot::{MappedRwLockReadGuard, Mutex, RwLock, RwLockReadGuard};
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
};

/// What the log's callers and its one writer share.
pub(super) struct Shared {
    /// `None` only while the writer opens it anew, behind the lock.
    pub(super) base: RwLock<Option<Base>>,
    pub(super) dir: DataDir,
    pub(super) queue: Queue,
    pub(super) views: Mutex<HashMap<GroupId, Arc<Mutex<View>>>>,
    pub(super) stats: LogStats,
    pub(super) options: LogOptions,
}

/// The open database of the log.
pub(super) struct Base {
    pub(super) database: Database,
    pub(super) keyspace: Keyspace,
}

impl Base {
    pub(super) fn open(dir: &DataDir) -> Result<Self, StoreError> {
        let settings = database::Settings {
            cache_bytes: LOG_CACHE_BYTES,
            journal_bytes_max: LOG_JOURNAL_BYTES_MAX,
            spare: Spare::LastBatch,
        };
        let database = database::open(&dir.log(), &settings)?;
        let create = || KeyspaceCreateOptions::default().max_memtable_size(LOG_MEMTABLE_BYTES);
        let keyspace = database.keyspace("log", create).map_err(StoreError::database("open the log"))?;
        Ok(Self { database, keyspace })
    }
}

/// Why a batch is not on disk.
enum Unwritten {
    /// It was not written; the sync of what came before it is not in doubt.
    Write(StoreError),
    /// It was written, and the sync failed.
    Sync(StoreError),
}

impl Shared {
    /// The open database.
    pub(super) fn base(&self) -> MappedRwLockReadGuard<'_, Base> {
        RwLockReadGuard::map(self.base.read(), |base| base.as_ref().expect("it is open outside of the lock"))
    }

    pub(super) fn view(&self, group: GroupId) -> Arc<Mutex<View>> {
        self.views.lock().entry(group).or_default().clone()
    }

    /// The writer's loop: all that is queued, one batch, one sync, all callbacks. Batches grow by themselves
    /// while a sync runs; there is no timer.
    pub(super) fn run(&self) {
        let mut lost = None;
        loop {
            let mut operations = self.queue.take();
            if operations.is_empty() {
                return;
            }
            if lost.is_none()
                && let Err(error) = self.write(&mut operations)
            {
                (self.options.on_fatal)(&error);
                lost = Some(error);
            }
            for Operation { group, number, writes, done, .. } in operations {
                if lost.is_none() {
                    self.view(group).lock().evict(number);
                }
                done(lost.clone().map_or(writes.map(drop), Err));
            }
        }
    }

    fn write(&self, operations: &mut [Operation]) -> Result<(), StoreError> {
        let mut rows = Rows::default();
        for Operation { group, writes, .. } in operations {
            for write in writes.iter_mut().flat_map(std::mem::take) {
                rows.add(*group, write);
            }
        }
        if rows.rows.is_empty() {
            return Ok(());
        }
        let bytes: usize =
            rows.rows.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, |it| it.len())).sum();
        loop {
            match self.put(&rows) {
                Ok(()) => break,
                Err(Unwritten::Write(error)) if self.dir.disk().caused(&error) => self.reopen(error)?,
                Err(Unwritten::Sync(error)) if self.dir.disk().gave_up(&error) => self.reopen(error)?,
                Err(Unwritten::Write(error) | Unwritten::Sync(error)) => return Err(error),
            }
        }
        self.stats.records.fetch_add(rows.records, Relaxed);
        self.stats.bytes.fetch_add(bytes as u64, Relaxed);
        Ok(())
    }

    fn put(&self, rows: &Rows) -> Result<(), Unwritten> {
        let base = self.base();
        // The buffer is emptied with the batch, so that a sync has nothing left to write that could find no room.
        let mut batch = base.database.batch().durability(Some(PersistMode::Buffer));
        for (key, value) in &rows.rows {
            match value {
                Some(value) => batch.insert(&base.keyspace, *key, value.clone()),
                None => batch.remove(&base.keyspace, *key),
            }
        }
        let written = batch.commit().map_err(StoreError::database("write to the log"));
        written.map_err(Unwritten::Write)?;
        self.sync(&base).map_err(Unwritten::Sync)
    }

    fn sync(&self, base: &Base) -> Result<(), StoreError> {
        let nth = self.stats.syncs.fetch_add(1, Relaxed) + 1;
        let fault = self.options.sync_fault.as_ref().and_then(|fault| fault(nth));
        let synced = match fault {
            Some(error) => Err(error.into()),
            None => base.database.persist(PersistMode::SyncData),
        };
        // Never tried again: after a failed sync the kernel may have dropped the pages, and the next one lies.
        synced.map_err(StoreError::database("sync the log"))
    }

    /// Opens the database anew after a write found no room: fjall refuses all further writes. What was synced is in the
    /// journal; what was not is cut off, and written again by the caller. Waits for room if there is none in the reserve
    /// either.
    fn reopen(&self, cause: StoreError) -> Result<(), StoreError> {
        let mut base = self.base.write();
        let mut wait = REOPEN_WAIT;
        loop {
            *base = None;
            self.dir.disk().make_room();
            match Base::open(&self.dir) {
                Ok(fresh) => {
                    *base = Some(fresh);
                    tracing::warn!("the log found no room and was opened anew");
                    return Ok(());
                }
                Err(_) if self.queue.is_closed() => return Err(cause),
                Err(error) if self.dir.disk().caused(&error) => thread::sleep(wait),
                Err(error) => return Err(error),
            }
            wait = (wait * 2).min(REOPEN_WAIT_MAX);
        }
    }
}

/// The rows of one batch. All rows of a fjall batch have the same sequence number, so a key may be in it only
/// once: what a truncation removes and an append rewrites is settled here.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<[u8; LOG_KEY_BYTES], Option<Slice>>,
    records: u64,
}

impl Rows {
    fn add(&mut self, group: GroupId, write: Write) {
        match write {
            Write::Record(record) => {
                self.records += 1;
                let key = log_key(group, KIND_RECORD, record.index);
                self.rows.insert(key, Some(LOG_RECORD.wrap(&record.bytes).into()));
            }
            Write::Meta(slot, bytes) => {
                self.rows.insert(log_key(group, slot.kind(), 0), Some(LOG_META.wrap(&bytes).into()));
            }
            Write::Remove(indexes) => {
                self.rows.extend(indexes.map(|index| (log_key(group, KIND_RECORD, index), None)));
            }
        }
    }
}

impl Meta {
    pub(super) const ALL: [Meta; 3] = [Meta::Vote, Meta::Committed, Meta::Purged];

    /// Its kind in a key of the log; stored, so never to be changed.
    pub(super) fn kind(self) -> u8 {
        match self {
            Meta::Vote => 0,
            Meta::Committed => 1,
            Meta::Purged => 2,
        }
    }
}
