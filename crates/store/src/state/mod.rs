//! State: an ordered table per group, written behind.
//!
//! A write goes to memory and is lost with the process: the log has it. [`State::apply`] puts an entry's rows;
//! [`State::begin_flush`] freezes them, and [`Flush::run`] writes them with the applied blob of the last entry in one
//! atomic step. So the table on disk is always the table after some entry, which the blob names, and replaying the
//! log from there restores the table that was lost.
//!
//! Rows pass through three maps, the first that has a key wins: `dirty`, `flushing` (frozen, being written), then the
//! clean cache or the disk.

mod clean;
mod cut;
#[cfg(test)]
mod empty;
mod exchange;
mod flush;
mod gate;
mod moment;
mod reopen;
mod rows;
mod scan;
mod store;

use crate::{
    GroupId, StoreError,
    files::{self, failed},
    forms,
    limits::{APPLIED_BYTES_MAX, SETTLED_BYTES_MIN},
};
use bytes::Bytes;
use clean::Clean;
pub use cut::Cut;
pub(crate) use cut::CutRows;
pub use exchange::StateExport;
use fjall::Keyspace;
pub use flush::Flush;
use gate::Gate;
pub use moment::Moment;
use parking_lot::{Mutex, RwLock};
use rows::Tables;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{fs, io};
use store::{Claim, StoreInner};
pub use store::{StateOptions, StateStore};

/// The key of a row. Short ones need no allocation.
pub type RowKey = SmallVec<[u8; 48]>;

/// A row: an immutable value, cheap to clone, that knows its own stored encoding.
pub trait Record: Clone + Send + Sync + 'static {
    /// Appends the stored bytes. The same value always gives the same bytes, or digests differ between replicas.
    fn encode(&self, out: &mut Vec<u8>);

    /// The value of stored bytes; the error completes the sentence "a stored row is damaged: ...".
    ///
    /// # Errors
    /// If the bytes are not what [`Record::encode`] of this or an earlier program gives.
    fn decode(bytes: &[u8]) -> Result<Self, String>;

    /// The approximate memory of the value, without its key, bytes.
    fn weight(&self) -> usize;

    /// Returns true if the value stays in the clean cache after it was flushed or read; false for parked ones.
    fn cache(&self) -> bool;
}

/// One group's table: a handle, cheap to clone.
///
/// One thread writes; any number read, and one flushes. A read sees every write that was made before it began.
pub struct State<R: Record>(Arc<Inner<R>>);

struct Inner<R> {
    store: Arc<StoreInner>,
    group: GroupId,
    tables: RwLock<Tables<R>>,
    clean: Mutex<Clean<R>>,
    gate: Arc<Gate>,
    /// The approximate size of the rows in the database's write buffer, bytes.
    buffered: AtomicUsize,
    ingested_bytes_min: usize,
    _claim: Claim,
}

impl<R: Record> Clone for State<R> {
    fn clone(&self) -> Self {
        State(self.0.clone())
    }
}

impl<R: Record> State<R> {
    fn new(claim: Claim, tables: Tables<R>, options: &StateOptions) -> Self {
        let inner = Arc::new(Inner {
            store: claim.store(),
            group: claim.group(),
            tables: RwLock::new(tables),
            clean: Mutex::new(Clean::new(options.clean_bytes_max)),
            gate: Arc::new(Gate::default()),
            buffered: AtomicUsize::new(0),
            ingested_bytes_min: options.ingested_bytes_min,
            _claim: claim,
        });
        inner.store.reopening.add(&inner);
        State(inner)
    }

    /// The group whose rows these are.
    pub fn group(&self) -> GroupId {
        self.0.group
    }

    /// The row of a key.
    ///
    /// # Errors
    /// If the disk cannot be read or the row cannot be decoded.
    pub fn get(&self, key: &[u8]) -> Result<Option<R>, StoreError> {
        let (disk, epoch) = {
            let tables = self.0.tables.read();
            if let Some(row) = tables.find(key) {
                return Ok(row);
            }
            let mut clean = self.0.clean.lock();
            if let Some(known) = clean.get(key) {
                return Ok(known);
            }
            (tables.disk()?.clone(), clean.epoch())
        };
        let stored = disk.get(forms::row_key(key)).map_err(StoreError::database("read a row"))?;
        let Some(stored) = stored else {
            self.0.clean.lock().offer_absent(epoch, key);
            return Ok(None);
        };
        let row = decode::<R>(&stored)?;
        if row.cache() {
            self.0.clean.lock().offer(epoch, key, &row);
        }
        Ok(Some(row))
    }

    /// Applies an entry: sets the rows of its keys, or removes them with `None`. The rows and `applied` show together,
    /// and reach the disk together or not at all, by the first flush that begins afterwards.
    ///
    /// # Panics
    /// If a key is over [`KEY_BYTES_MAX`](crate::limits::KEY_BYTES_MAX) or the blob over [`APPLIED_BYTES_MAX`]: this
    /// program makes both.
    pub fn apply(&self, rows: impl IntoIterator<Item = (RowKey, Option<R>)>, applied: impl Into<Bytes>) {
        let applied = applied.into();
        assert!(applied.len() <= APPLIED_BYTES_MAX, "an applied blob has {} bytes", applied.len());
        self.0.tables.write().apply(rows, applied);
    }

    /// The last blob of [`State::apply`]; after opening, the one on disk.
    pub fn applied(&self) -> Option<Bytes> {
        self.0.tables.read().applied.clone()
    }

    /// Memory of the rows that wait for the next flush, in bytes: keys, weights and an overhead per row.
    pub fn dirty_bytes(&self) -> usize {
        self.0.tables.read().dirty.bytes()
    }

    /// Memory of the clean cache, in bytes; at most [`StateOptions::clean_bytes_max`].
    pub fn clean_bytes(&self) -> usize {
        self.0.clean.lock().bytes()
    }

    /// Returns true if the database's write buffer holds too few rows for [`State::settle`] to be worth it.
    pub fn is_settled(&self) -> bool {
        self.0.buffered.load(Relaxed) < SETTLED_BYTES_MIN
    }

    /// Starts making tables of the flushed rows, for a group that is at rest: the write buffer of the database, up to
    /// [`STATE_MEMTABLE_BYTES`](crate::limits::STATE_MEMTABLE_BYTES), is freed, and need not be read from the journal
    /// after a restart. The tables are written while the caller continues.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn settle(&self) -> Result<(), StoreError> {
        let disk = self.0.tables.read().disk()?.clone();
        self.0.buffered.store(0, Relaxed);
        disk.rotate_memtable().map(drop).map_err(StoreError::database("rotate the memory table"))
    }

    /// Removes deleted data from the files of the states of all groups. Returns true if it is gone. The deletions
    /// must have been flushed. Blocks for as long as it takes to write some 70 MB and all that the states hold.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn scrub(&self) -> Result<bool, StoreError> {
        self.0.store.scrub()
    }

    /// Returns the approximate number of rows in the tables; older versions and removals count as rows. 0 if the disk
    /// cannot be read.
    #[must_use]
    pub fn rows_on_disk(&self) -> usize {
        let disk = self.0.tables.read().disk().ok().cloned();
        // It may wait for a sync of the database, and writers would wait for the tables.
        disk.as_ref().map_or(0, Keyspace::approximate_len)
    }

    /// Records durably in the data folder that removed data has to leave the files.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn mark(&self) -> Result<(), StoreError> {
        self.0.store.mark()
    }

    /// Records that the removed data has left the files.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn unmark(&self) -> Result<(), StoreError> {
        self.0.store.unmark()
    }

    /// Returns true if the mark is set.
    #[must_use]
    pub fn is_marked(&self) -> bool {
        self.0.store.is_marked()
    }

    /// Records durably in the data folder that the rows are wrong, with the reason. Nothing removes it.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn set_wrong(&self, why: &str) -> Result<(), StoreError> {
        files::write_whole(&self.0.store.dir.wrong(self.0.group), why)
    }

    /// The reason that [`State::set_wrong`] has recorded; `None` if there is none.
    ///
    /// # Errors
    /// If the disk cannot be read.
    pub fn wrong(&self) -> Result<Option<String>, StoreError> {
        let path = self.0.store.dir.wrong(self.0.group);
        match fs::read_to_string(&path) {
            Ok(why) => Ok(Some(why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &path)(error)),
        }
    }

    /// Syncs what was flushed, and returns the applied blob that is now durable: the log may be purged up to it.
    ///
    /// # Errors
    /// If the sync fails. It must not be tried again: end the process.
    pub fn persist(&self) -> Result<Option<Bytes>, StoreError> {
        let flushed = self.0.tables.read().flushed.clone();
        self.0.store.sync()?;
        // The database may have been opened again since, without the rows of the last flush: this waits for the answer.
        self.0.tables.read().disk().map(|_| ())?;
        Ok(flushed)
    }
}

fn decode<R: Record>(stored: &[u8]) -> Result<R, StoreError> {
    let row = R::decode(forms::ROW.open(stored)?);
    row.map_err(|detail| StoreError::damaged("row", detail))
}
