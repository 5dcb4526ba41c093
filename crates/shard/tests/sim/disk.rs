//! A server's log in memory. What was not synced is lost at a power cut.

use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use switchward_store::{Done, GroupId, GroupLog, LogRecord, Meta, StoreError};

use crate::timeline::{Timeline, hash_of};

/// What a record takes on disk beside its bytes.
const RECORD_OVERHEAD: u64 = 29;

/// The logs of all groups.
pub(crate) type Logs = BTreeMap<GroupId, Log>;

/// The log of one group.
#[derive(Clone, Default)]
pub(crate) struct Log {
    records: BTreeMap<u64, Bytes>,
    /// What the records take on disk.
    bytes: u64,
    metas: [Option<Bytes>; 3],
}

/// A change of a group's log.
#[derive(Clone)]
enum Change {
    Append(Vec<LogRecord>),
    Put(Meta, Bytes),
    Truncate(Option<u64>),
    Purge(u64, Bytes),
}

impl Change {
    /// Writes the change.
    fn make(self, log: &mut Log) {
        match self {
            Self::Append(records) => {
                log.bytes += records.iter().map(|record| size(&record.bytes)).sum::<u64>();
                log.records.extend(records.into_iter().map(|record| (record.index, record.bytes)));
            }
            Self::Put(slot, bytes) => log.metas[slot as usize] = Some(bytes),
            Self::Truncate(index) => {
                let gone = log.records.split_off(&index.map_or(0, |index| index + 1));
                log.bytes -= gone.values().map(size).sum::<u64>();
            }
            Self::Purge(index, bytes) => {
                let left = log.records.split_off(&(index + 1));
                let gone = std::mem::replace(&mut log.records, left);
                log.bytes -= gone.values().map(size).sum::<u64>();
                log.metas[Meta::Purged as usize] = Some(bytes);
            }
        }
    }

    /// A short name for the record of the run.
    fn name(&self) -> String {
        match self {
            Self::Append(records) => {
                let first = records.first().map_or(0, |record| record.index);
                let hash = records.last().map_or(0, |record| hash_of(&record.bytes));
                format!("append {first} {} {hash:x}", records.len())
            }
            Self::Put(slot, bytes) => format!("put {slot:?} {:x}", hash_of(bytes)),
            Self::Truncate(index) => format!("truncate {index:?}"),
            Self::Purge(index, _) => format!("purge {index}"),
        }
    }
}

struct Write {
    group: GroupId,
    change: Change,
    done: Done,
}

struct Batch {
    writes: Vec<Write>,
    /// When it is synced.
    at: u64,
}

/// How a power cut or the end of the process leaves the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The process ends: what it has handed to the system reaches the disk.
    Killed,
    /// The power is cut: what was not synced is on the disk, or not.
    Cut,
}

/// A log as long as its server runs.
pub(crate) struct MemoryLog {
    node: u64,
    timeline: Timeline,
    inner: Mutex<Inner>,
}

struct Inner {
    /// What readers see.
    visible: Logs,
    /// What is on disk.
    durable: Logs,
    queue: VecDeque<Write>,
    batch: Option<Batch>,
    /// Until when syncs do not end.
    stalled: u64,
    /// Whether the next sync fails.
    fails: bool,
    failed: bool,
}

impl MemoryLog {
    /// The log of a server that starts with this on its disk.
    pub(crate) fn open(node: u64, timeline: Timeline, durable: Logs) -> Arc<Self> {
        let inner = Inner {
            visible: durable.clone(),
            durable,
            queue: VecDeque::new(),
            batch: None,
            stalled: 0,
            fails: false,
            failed: false,
        };
        Arc::new(Self { node, timeline, inner: Mutex::new(inner) })
    }

    /// Lets syncs take until then.
    pub(crate) fn stall(&self, until: u64) {
        self.inner.lock().stalled = until;
    }

    /// Lets the next sync fail.
    pub(crate) fn fail(&self) {
        self.inner.lock().fails = true;
    }

    /// Returns true once a sync has failed: the process must end.
    pub(crate) fn failed(&self) -> bool {
        self.inner.lock().failed
    }

    /// Returns true if a vote was written that is not on disk yet.
    pub(crate) fn has_unsynced_vote(&self) -> bool {
        let inner = self.inner.lock();
        let batched = inner.batch.iter().flat_map(|batch| &batch.writes);
        let mut unsynced = batched.chain(&inner.queue);
        unsynced.any(|write| matches!(write.change, Change::Put(Meta::Vote, _)))
    }

    /// Does what the log's writer does in a millisecond.
    pub(crate) fn tick(&self) {
        let now = self.timeline.now();
        if let Some((writes, synced)) = self.synced(now) {
            self.timeline.note(format_args!("{} synced {} {}", self.node, writes.len(), synced.is_ok()));
            for write in writes {
                (write.done)(synced.clone());
            }
        }
        let mut inner = self.inner.lock();
        if inner.batch.is_none() && !inner.queue.is_empty() && !inner.failed {
            let took = self
                .timeline
                .draw(|rng| if rng.once_in(20) { rng.between(3, 12) } else { rng.between(1, 2) });
            let writes = inner.queue.drain(..).collect();
            inner.batch = Some(Batch { writes, at: now + took });
        }
    }

    fn synced(&self, now: u64) -> Option<(Vec<Write>, Result<(), StoreError>)> {
        let mut inner = self.inner.lock();
        if inner.failed {
            let writes: Vec<Write> = inner.queue.drain(..).collect();
            return (!writes.is_empty()).then_some((writes, Err(StoreError::Panicked)));
        }
        inner.batch.as_ref().filter(|batch| batch.at <= now)?;
        if inner.stalled > now {
            self.timeline.count("syncs stalled");
            return None;
        }
        let writes = inner.batch.take()?.writes;
        if inner.fails {
            inner.failed = true;
            self.timeline.count("syncs failed");
            if self.timeline.draw(|rng| rng.once_in(2)) {
                inner.persist(&writes);
            }
            return Some((writes, Err(StoreError::Panicked)));
        }
        inner.persist(&writes);
        Some((writes, Ok(())))
    }

    /// What is on the disk after the end of the server.
    pub(crate) fn end(&self, end: End) -> Logs {
        let mut inner = self.inner.lock();
        let batch = inner.batch.take();
        let written = match end {
            End::Killed => true,
            End::Cut => self.timeline.draw(|rng| rng.once_in(2)),
        };
        let lost = if written { 0 } else { batch.as_ref().map_or(0, |batch| batch.writes.len()) }
            + inner.queue.len();
        if lost > 0 {
            self.timeline.count("cuts that lost writes");
        }
        self.timeline.note(format_args!("{} ends {end:?} and loses {lost}", self.node));
        if let Some(batch) = batch.filter(|_| written) {
            inner.persist(&batch.writes);
        }
        std::mem::take(&mut inner.durable)
    }

    fn write(&self, group: GroupId, change: Change, done: Done) {
        let mut inner = self.inner.lock();
        self.timeline.note(format_args!("{}/{} {}", self.node, group.0, change.name()));
        change.clone().make(inner.visible.entry(group).or_default());
        inner.queue.push_back(Write { group, change, done });
    }

    fn log<T>(&self, group: GroupId, read: impl FnOnce(&Log) -> T) -> T {
        let inner = self.inner.lock();
        let none = Log::default();
        read(inner.visible.get(&group).unwrap_or(&none))
    }
}

impl Inner {
    fn persist(&mut self, writes: &[Write]) {
        for write in writes {
            write.change.clone().make(self.durable.entry(write.group).or_default());
        }
    }
}

fn size(bytes: &Bytes) -> u64 {
    bytes.len() as u64 + RECORD_OVERHEAD
}

impl GroupLog for MemoryLog {
    fn append(&self, group: GroupId, records: Vec<LogRecord>, done: Done) {
        let mut last = self.log(group, |log| log.records.last_key_value().map(|(index, _)| *index));
        for record in &records {
            if let Some(last) = last.filter(|last| last + 1 != record.index) {
                done(Err(StoreError::OutOfOrder { group, last, found: record.index }));
                return;
            }
            last = Some(record.index);
        }
        self.write(group, Change::Append(records), done);
    }

    fn put_meta(&self, group: GroupId, slot: Meta, bytes: Bytes, done: Done) {
        self.write(group, Change::Put(slot, bytes), done);
    }

    fn meta(&self, group: GroupId, slot: Meta) -> Result<Option<Bytes>, StoreError> {
        Ok(self.log(group, |log| log.metas[slot as usize].clone()))
    }

    fn read(
        &self,
        group: GroupId,
        range: Range<u64>,
        max_bytes: usize,
    ) -> Result<Vec<LogRecord>, StoreError> {
        Ok(self.log(group, |log| {
            let (mut found, mut bytes) = (Vec::new(), 0);
            for (index, record) in log.records.range(range) {
                bytes += record.len();
                if bytes > max_bytes && !found.is_empty() {
                    break;
                }
                found.push(LogRecord { index: *index, bytes: record.clone() });
            }
            found
        }))
    }

    fn first_last(&self, group: GroupId) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(self.log(group, |log| {
            let first = log.records.first_key_value()?.0;
            Some((*first, *log.records.last_key_value()?.0))
        }))
    }

    fn last(&self, group: GroupId) -> Result<Option<LogRecord>, StoreError> {
        Ok(self.log(group, |log| {
            let (index, bytes) = log.records.last_key_value()?;
            Some(LogRecord { index: *index, bytes: bytes.clone() })
        }))
    }

    fn truncate_after(&self, group: GroupId, index: Option<u64>, done: Done) {
        self.write(group, Change::Truncate(index), done);
    }

    fn purge_to(&self, group: GroupId, index: u64, meta: Bytes, done: Done) {
        self.write(group, Change::Purge(index, meta), done);
    }

    fn is_in_memory(&self, _: GroupId, _: u64) -> bool {
        true
    }

    fn bytes(&self, group: GroupId) -> u64 {
        self.log(group, |log| log.bytes)
    }

    fn stretch(&self, group: GroupId, range: Range<u64>) -> (u64, u64) {
        if range.is_empty() {
            return (0, 0);
        }
        self.log(group, |log| {
            let records = log.records.range(range);
            records.fold((0, 0), |(count, bytes), (_, record)| (count + 1, bytes + size(record)))
        })
    }

    fn tail_within(&self, group: GroupId, records_max: u64, bytes_max: u64) -> u64 {
        self.log(group, |log| {
            let (mut records, mut bytes) = (0, 0);
            for record in log.records.values().rev() {
                bytes += size(record);
                if records == records_max || bytes > bytes_max {
                    break;
                }
                records += 1;
            }
            records
        })
    }
}
