//! A log that returns entries which cannot be decoded, as another version or a defect could write them.

use bytes::Bytes;
use std::ops::Range;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use switchward_store::{Done, GroupId, GroupLog, LogRecord, Meta, SegmentLog, StoreError};

/// No group.
const NONE: u64 = u64::MAX;
/// Bytes before the decision of an entry; the last of them is its tag.
const HEADER_BYTES: usize = 10;
const DECISION: u8 = 1;

/// The group whose decisions are spoiled when they are read; cheap to clone.
#[derive(Clone)]
pub(crate) struct Spoiled(Arc<AtomicU64>);

impl Default for Spoiled {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(NONE)))
    }
}

impl Spoiled {
    pub(crate) fn begin(&self, group: u64) {
        self.0.store(group, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        self.begin(NONE);
    }

    /// The log, as it is read.
    pub(crate) fn over(&self, log: Arc<SegmentLog>) -> Arc<dyn GroupLog> {
        Arc::new(SpoiledLog { log, spoiled: self.clone() })
    }

    fn spoils(&self, group: GroupId, record: &LogRecord) -> bool {
        self.0.load(Ordering::SeqCst) == group.0 && record.bytes.get(HEADER_BYTES - 1) == Some(&DECISION)
    }
}

struct SpoiledLog {
    log: Arc<SegmentLog>,
    spoiled: Spoiled,
}

impl GroupLog for SpoiledLog {
    fn append(&self, group: GroupId, records: Vec<LogRecord>, done: Done) {
        self.log.append(group, records, done);
    }

    fn put_meta(&self, group: GroupId, slot: Meta, bytes: Bytes, done: Done) {
        self.log.put_meta(group, slot, bytes, done);
    }

    fn meta(&self, group: GroupId, slot: Meta) -> Result<Option<Bytes>, StoreError> {
        self.log.meta(group, slot)
    }

    fn read(
        &self,
        group: GroupId,
        range: Range<u64>,
        max_bytes: usize,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let mut records = self.log.read(group, range, max_bytes)?;
        for record in records.iter_mut().filter(|record| self.spoiled.spoils(group, record)) {
            let mut bytes = record.bytes.slice(..HEADER_BYTES).to_vec();
            bytes.extend_from_slice(b"no decision");
            record.bytes = bytes.into();
        }
        Ok(records)
    }

    fn first_last(&self, group: GroupId) -> Result<Option<(u64, u64)>, StoreError> {
        self.log.first_last(group)
    }

    fn is_in_memory(&self, group: GroupId, from: u64) -> bool {
        self.log.is_in_memory(group, from)
    }

    fn last(&self, group: GroupId) -> Result<Option<LogRecord>, StoreError> {
        self.log.last(group)
    }

    fn truncate_after(&self, group: GroupId, index: Option<u64>, done: Done) {
        self.log.truncate_after(group, index, done);
    }

    fn purge_to(&self, group: GroupId, index: u64, meta: Bytes, done: Done) {
        self.log.purge_to(group, index, meta, done);
    }

    fn bytes(&self, group: GroupId) -> u64 {
        self.log.bytes(group)
    }

    fn stretch(&self, group: GroupId, range: Range<u64>) -> (u64, u64) {
        self.log.stretch(group, range)
    }

    fn tail_within(&self, group: GroupId, records_max: u64, bytes_max: u64) -> u64 {
        self.log.tail_within(group, records_max, bytes_max)
    }
}
