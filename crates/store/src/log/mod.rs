//! The write-ahead log: one for all Raft groups of a server.

mod frame;
mod ledger;
mod maker;
mod queue;
mod replay;
mod segment;
mod segment_log;
mod view;
mod writer;

use crate::StoreError;
use bytes::Bytes;
pub use segment_log::SegmentLog;
use std::{
    io,
    ops::Range,
    sync::{Arc, atomic::AtomicU64},
};

/// A Raft group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// One record of a group's log: an entry, as the caller encoded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its position in the log; the next record has the next index.
    pub index: u64,
    /// At most [`crate::limits::LOG_RECORD_BYTES_MAX`].
    pub bytes: Bytes,
}

/// The kinds of blob beside a group's records, one blob each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meta {
    /// The term and the candidate voted for.
    Vote,
    /// The last position known to be committed.
    Committed,
    /// The last position that was purged; set by [`GroupLog::purge_to`].
    Purged,
}

/// Called once, on the log's own thread, when a write is durable or has failed. It must not block.
pub type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The log as the Raft adapter sees it.
///
/// Writes return at once and are readable on return; `done` is called after `fdatasync`, or with the error.
/// Writes to one group take effect in the order of the calls. A caller waits only while
/// [`crate::limits::LOG_QUEUE_OPS_MAX`] or [`crate::limits::LOG_QUEUE_BYTES_MAX`] are queued.
/// After a failed write or sync the log is poisoned: every `done` from then on gets that error.
pub trait GroupLog: Send + Sync + 'static {
    /// Appends records that follow the last one without a gap; any index may start an empty log.
    /// `done` gets [`StoreError::OutOfOrder`] or [`StoreError::TooLarge`], and nothing changes, otherwise.
    fn append(&self, group: GroupId, records: Vec<LogRecord>, done: Done);

    /// Replaces a blob.
    fn put_meta(&self, group: GroupId, slot: Meta, bytes: Bytes, done: Done);

    /// The blob last put, or `None`. Never fails for an implementation that keeps them in memory.
    fn meta(&self, group: GroupId, slot: Meta) -> Result<Option<Bytes>, StoreError>;

    /// The records with an index in `range`, in order, from the first that exists. Stops before `max_bytes` are
    /// exceeded, but returns at least one record if there is any.
    fn read(&self, group: GroupId, range: Range<u64>, max_bytes: usize)
    -> Result<Vec<LogRecord>, StoreError>;

    /// Returns true if [`read`](Self::read) of the records from this index on needs no disk.
    fn is_in_memory(&self, group: GroupId, from: u64) -> bool;

    /// The indexes of the first and last record; `None` if there is no record.
    fn first_last(&self, group: GroupId) -> Result<Option<(u64, u64)>, StoreError>;

    /// The record with the highest index; `None` if the log is empty.
    fn last(&self, group: GroupId) -> Result<Option<LogRecord>, StoreError>;

    /// Removes the records after `index`; all with `None`.
    fn truncate_after(&self, group: GroupId, index: Option<u64>, done: Done);

    /// Removes the records up to and including `index` and sets [`Meta::Purged`] to `meta`, in one batch.
    fn purge_to(&self, group: GroupId, index: u64, meta: Bytes, done: Done);

    /// Bytes of the records that exist, with their heads on disk.
    fn bytes(&self, group: GroupId) -> u64;

    /// Records with an index in `range`, and their bytes, with their heads on disk.
    fn stretch(&self, group: GroupId, range: Range<u64>) -> (u64, u64);

    /// The number of the last records, at most `records_max`, that have together at most `bytes_max` bytes, with
    /// their heads on disk. 0 if the last one alone has more.
    fn tail_within(&self, group: GroupId, records_max: u64, bytes_max: u64) -> u64;
}

/// Called once with the error that poisons the log, before any callback gets it. A server prints one line and
/// ends the process.
pub type OnFatal = Box<dyn Fn(&StoreError) + Send + Sync>;

/// Called before the nth sync (from 1), and with 0 before the sync of the last batch at opening: an error fails it. For
/// tests.
pub type SyncFault = Arc<dyn Fn(u64) -> Option<io::Error> + Send + Sync>;

/// How to open a [`SegmentLog`].
pub struct LogOptions {
    /// Called when the log is lost.
    pub on_fatal: OnFatal,
    /// A fault to inject.
    pub sync_fault: Option<SyncFault>,
}

/// Counters since the log was opened.
#[derive(Debug, Default)]
pub struct LogStats {
    /// Syncs, a failed one included.
    pub syncs: AtomicU64,
    /// Records appended durably.
    pub records: AtomicU64,
    /// Bytes of the batches written durably.
    pub bytes: AtomicU64,
}
