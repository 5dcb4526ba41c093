use super::{
    Done, GroupId, GroupLog, LogOptions, LogRecord, LogStats, Meta,
    queue::{Operation, Queue, Write},
    view::{Budget, View},
    writer::{Base, Shared},
};
use crate::{
    DataDir, Disk, StoreError,
    files::failed,
    forms::{KIND_RECORD, LOG_KEY_BYTES, LOG_META, LOG_RECORD, log_key, parse_log_key},
    scrub,
};
use bytes::Bytes;
use fjall::{Keyspace, Readable, Slice, Snapshot};
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashMap,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
};

/// A group that there is not; what fills a journal up is its.
const FILLER: GroupId = GroupId(u64::MAX - 1);

/// The log in one fjall database, with one thread that does all writing.
///
/// What is put back into order at opening, and kept in memory: four bytes per record, and the last
/// [`crate::limits::LOG_TAIL_BYTES_MAX`] of each group's records. Opening reads the whole log.
pub struct FjallLog {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl FjallLog {
    /// Opens or creates the log of a data folder.
    ///
    /// # Errors
    /// If a file cannot be read or written, or if a stored record is damaged, of another version, or missing
    /// between its neighbours.
    pub fn open(dir: &DataDir, options: LogOptions) -> Result<Self, StoreError> {
        let base = Base::open(dir)?;
        let views = Mutex::new(restore(&base.keyspace)?);
        let (queue, stats) = (Queue::default(), LogStats::default());
        let (base, dir) = (RwLock::new(Some(base)), dir.clone());
        let shared = Arc::new(Shared { base, dir, queue, views, stats, options });
        let writer = thread::Builder::new().name("log-writer".to_owned()).spawn({
            let shared = shared.clone();
            move || {
                if catch_unwind(AssertUnwindSafe(|| shared.run())).is_err() {
                    (shared.options.on_fatal)(&StoreError::Panicked);
                }
            }
        });
        let writer = Some(writer.map_err(failed("start the writer of", &shared.dir.log()))?);
        Ok(FjallLog { shared, writer })
    }

    /// Has what was purged and replaced leave the files, as `scrub.rs` says; true where it has. Blocks for as long as it
    /// takes to write some 70 MB and all that the log holds; appends go on between.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn scrub(&self) -> Result<bool, StoreError> {
        let whole = scrub::run(&mut |bytes| self.fill(bytes), &mut |step| {
            // Held for one step: whoever opens the database anew waits for no write.
            let base = self.shared.base();
            scrub::step(step, &base.database, std::slice::from_ref(&base.keyspace))
        })?;
        Ok(self.shared.dir.free_removed() && whole)
    }

    /// Writes zeros, as a blob of a group that there is not: it goes the way of all writes, each synced before the next.
    fn fill(&self, bytes: usize) -> Result<(), StoreError> {
        let (done, wait) = std::sync::mpsc::channel();
        let done: Done = Box::new(move |result| drop(done.send(result)));
        self.put_meta(FILLER, Meta::Committed, Bytes::from(vec![0; bytes]), done);
        wait.recv().unwrap_or(Err(StoreError::Panicked))
    }

    /// Counters since opening.
    pub fn stats(&self) -> &LogStats {
        &self.shared.stats
    }

    /// The disk that it lies on.
    pub fn disk(&self) -> &Arc<Disk> {
        self.shared.dir.disk()
    }

    /// Changes the view and queues the writes under one lock, so that both have the same order.
    fn submit(
        &self,
        group: GroupId,
        bytes: usize,
        done: Done,
        change: impl FnOnce(&mut View, u64) -> Result<Vec<Write>, StoreError>,
    ) {
        self.shared.queue.reserve(bytes);
        let view = self.shared.view(group);
        let mut view = view.lock();
        let number = view.next_operation();
        let writes = change(&mut view, number);
        self.shared.queue.push(Operation { group, number, writes, done, bytes });
    }

    fn read_disk(
        &self,
        (snapshot, keyspace): (&Snapshot, &Keyspace),
        group: GroupId,
        range: Range<u64>,
        budget: &mut Budget,
    ) -> Result<bool, StoreError> {
        let keys = log_key(group, KIND_RECORD, range.start)..log_key(group, KIND_RECORD, range.end);
        let mut rows = snapshot.range(keyspace, keys);
        for expected in range {
            let Some(row) = rows.next() else {
                return Err(StoreError::damaged("log", format!("record {expected} is missing")));
            };
            let (key, value) = row.into_inner().map_err(StoreError::database("read the log"))?;
            let (_, _, index) = parse_log_key(&key)?;
            if index != expected {
                return Err(StoreError::damaged("log", format!("record {expected} is missing")));
            }
            if !budget.take(LogRecord { index, bytes: body(&value)? }) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl GroupLog for FjallLog {
    fn append(&self, group: GroupId, records: Vec<LogRecord>, done: Done) {
        let bytes = records.iter().map(|record| LOG_KEY_BYTES + record.bytes.len()).sum();
        self.submit(group, bytes, done, |view, number| {
            view.append(group, number, &records)?;
            Ok(records.into_iter().map(Write::Record).collect())
        });
    }

    fn put_meta(&self, group: GroupId, slot: Meta, bytes: Bytes, done: Done) {
        self.submit(group, LOG_KEY_BYTES + bytes.len(), done, |view, _| {
            view.set_meta(slot, bytes.clone());
            Ok(vec![Write::Meta(slot, bytes)])
        });
    }

    fn meta(&self, group: GroupId, slot: Meta) -> Result<Option<Bytes>, StoreError> {
        Ok(self.shared.view(group).lock().meta(slot))
    }

    fn read(
        &self,
        group: GroupId,
        range: Range<u64>,
        max_bytes: usize,
    ) -> Result<Vec<LogRecord>, StoreError> {
        let view = self.shared.view(group);
        let view = view.lock();
        let Some((first, last)) = view.first_last() else { return Ok(Vec::new()) };
        let range = range.start.max(first)..range.end.min(last + 1);
        let disk = range.start..range.end.min(view.tail_start());
        let mut budget = Budget::new(max_bytes);
        if disk.is_empty() {
            view.read_tail(range, &mut budget);
            return Ok(budget.records);
        }
        let base = self.shared.base();
        let snapshot = base.database.snapshot();
        let mut tail = Budget::new(max_bytes);
        view.read_tail(disk.end..range.end, &mut tail);
        drop(view);
        if self.read_disk((&snapshot, &base.keyspace), group, disk, &mut budget)? {
            let _all_fitted = tail.records.into_iter().all(|record| budget.take(record));
        }
        Ok(budget.records)
    }

    fn first_last(&self, group: GroupId) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(self.shared.view(group).lock().first_last())
    }

    fn last(&self, group: GroupId) -> Result<Option<LogRecord>, StoreError> {
        match self.first_last(group)? {
            Some((_, last)) => Ok(self.read(group, last..last + 1, 0)?.pop()),
            None => Ok(None),
        }
    }

    fn truncate_after(&self, group: GroupId, index: Option<u64>, done: Done) {
        self.submit(group, LOG_KEY_BYTES, done, |view, _| {
            Ok(view.truncate_after(index).map(Write::Remove).into_iter().collect())
        });
    }

    fn purge_to(&self, group: GroupId, index: u64, meta: Bytes, done: Done) {
        self.submit(group, LOG_KEY_BYTES + meta.len(), done, |view, _| {
            view.set_meta(Meta::Purged, meta.clone());
            let removed = view.purge_to(index).map(Write::Remove);
            Ok(removed.into_iter().chain([Write::Meta(Meta::Purged, meta)]).collect())
        });
    }

    fn bytes(&self, group: GroupId) -> u64 {
        self.shared.view(group).lock().bytes()
    }

    fn stretch(&self, group: GroupId, range: Range<u64>) -> (u64, u64) {
        self.shared.view(group).lock().stretch(range)
    }

    fn tail_within(&self, group: GroupId, records_max: u64, bytes_max: u64) -> u64 {
        self.shared.view(group).lock().tail_within(records_max, bytes_max)
    }
}

impl Drop for FjallLog {
    /// Writes what is queued and calls its callbacks. If one of them owns the last handle, this runs on the
    /// writer's own thread, which then ends by itself.
    fn drop(&mut self) {
        self.shared.queue.close();
        if let Some(writer) = self.writer.take()
            && writer.thread().id() != thread::current().id()
            && writer.join().is_err()
        {
            tracing::error!("the handler of a lost log panicked");
        }
    }
}

fn restore(keyspace: &Keyspace) -> Result<HashMap<GroupId, Arc<Mutex<View>>>, StoreError> {
    let mut views: HashMap<GroupId, View> = HashMap::new();
    for row in keyspace.iter() {
        let (key, value) = row.into_inner().map_err(StoreError::database("read the log"))?;
        let (group, kind, index) = parse_log_key(&key)?;
        let view = views.entry(group).or_default();
        if kind == KIND_RECORD {
            view.append(group, 0, &[LogRecord { index, bytes: body(&value)? }])?;
            view.evict(0);
        } else {
            let slot = Meta::ALL.into_iter().find(|slot| slot.kind() == kind);
            let slot = slot.ok_or_else(|| StoreError::damaged("log key", format!("its kind is {kind}")))?;
            view.set_meta(slot, Bytes::copy_from_slice(LOG_META.open(&value)?));
        }
    }
    Ok(views.into_iter().map(|(group, view)| (group, Arc::new(Mutex::new(view)))).collect())
}

fn body(stored: &Slice) -> Result<Bytes, StoreError> {
    Ok(Bytes::copy_from_slice(LOG_RECORD.open(stored)?))
}
