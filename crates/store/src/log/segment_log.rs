use super::{
    Done, GroupId, GroupLog, LogOptions, LogRecord, LogStats, Meta,
    frame::OPERATION_HEAD_BYTES,
    maker::Maker,
    queue::{Operation, Queue, Write},
    replay::{Known, Replayed, replay},
    view::{Budget, View},
    writer::{Shared, Writer},
};
use crate::{DataDir, Disk, StoreError, files::failed, mark::Mark};
use bytes::Bytes;
use parking_lot::Mutex;
use std::{
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle},
};

/// The group of operations that concern the segments and no real group.
const NO_GROUP: GroupId = GroupId(u64::MAX - 1);

/// The log in segment files, with one thread that does all writing.
///
/// Batches of all groups are appended to one segment, whose length is fixed when it is made. The oldest segment is
/// removed once none of its records is live. Live records of the oldest ones are written again to the newest one when
/// the segments take more than twice the live bytes and [`crate::limits::LOG_GARBAGE_BYTES`].
///
/// Kept in memory: the size and the location of each record, and the last [`crate::limits::LOG_TAIL_BYTES_MAX`] of
/// each group's records. Opening reads the whole log.
pub struct SegmentLog {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl SegmentLog {
    /// Opens or creates the log of a data folder.
    ///
    /// # Errors
    /// If a file cannot be read or written; [`StoreError::Damaged`], with the file and the byte, if something is not
    /// as it was written, or is missing, except for the end of a last batch that was never synced.
    pub fn open(dir: &DataDir, options: LogOptions) -> Result<Self, StoreError> {
        let folder = dir.log();
        let (mark, [synced]) = Mark::open(dir.log_synced())?;
        let (begin_mark, [begin]) = Mark::open(dir.log_begin())?;
        let replayed = replay(&folder, Known { begin, synced }, options.sync_fault.as_ref())?;
        let Replayed { mut ledger, views, number, sequence, .. } = replayed;
        mark.put([sequence]);
        let maker = Maker::start(folder, begin_mark)?;
        ledger.release().into_iter().for_each(|free| maker.remove(free));
        let views = views.into_iter().map(|(group, view)| (group, Arc::new(Mutex::new(view)))).collect();
        let shared = Arc::new(Shared {
            queue: Queue::default(),
            views: Mutex::new(views),
            ledger: Mutex::new(ledger),
            maker,
            stats: LogStats::default(),
            mark,
            options,
            dir: dir.clone(),
        });
        let writer = thread::Builder::new().name("log-writer".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                let writer = Writer::new(Arc::clone(&shared), number, sequence);
                if catch_unwind(AssertUnwindSafe(|| writer.run())).is_err() {
                    (shared.options.on_fatal)(&StoreError::Panicked);
                }
            }
        });
        let writer = Some(writer.map_err(failed("start the writer of", &shared.dir.log()))?);
        Ok(SegmentLog { shared, writer })
    }

    /// Removes the bytes of purged and replaced records from the files. Returns false if a segment could not be
    /// removed. Everything that the log holds is written again to newer segments, and the older ones are removed.
    /// Blocks until then; appends continue meanwhile.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn scrub(&self) -> Result<bool, StoreError> {
        // A record that is removed and moved in one batch would be in the files again.
        self.on_files([])?;
        self.on_files([Write::Begin])?;
        let bounds = || {
            let ledger = self.shared.ledger.lock();
            ledger.oldest().zip(ledger.newest())
        };
        let Some((_, begun)) = bounds() else { return Ok(true) };
        while bounds().is_some_and(|(oldest, _)| oldest < begun) {
            self.on_files([Write::Move(begun)])?;
        }
        Ok(self.shared.maker.settle())
    }

    /// Queues an operation on the segments and waits until it is done, and all that was queued before it.
    fn on_files<const N: usize>(&self, writes: [Write; N]) -> Result<(), StoreError> {
        let (done, wait) = std::sync::mpsc::channel();
        let done: Done = Box::new(move |result| drop(done.send(result)));
        self.submit(NO_GROUP, 0, done, |_, _| Ok(writes.into()));
        wait.recv().unwrap_or(Err(StoreError::Panicked))
    }

    /// Counters since opening.
    pub fn stats(&self) -> &LogStats {
        &self.shared.stats
    }

    /// The disk that holds it.
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
}

impl GroupLog for SegmentLog {
    fn append(&self, group: GroupId, records: Vec<LogRecord>, done: Done) {
        let bytes = records.iter().map(|record| OPERATION_HEAD_BYTES + record.bytes.len()).sum();
        self.submit(group, bytes, done, |view, number| {
            view.append(group, number, &records)?;
            Ok(records.into_iter().map(Write::Record).collect())
        });
    }

    fn put_meta(&self, group: GroupId, slot: Meta, bytes: Bytes, done: Done) {
        self.submit(group, OPERATION_HEAD_BYTES + bytes.len(), done, |view, _| {
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
        // The view is locked: the ledger keeps a removed record until its removal is durable, so it has all that the
        // view has.
        let stored = self.shared.ledger.lock().find(group, disk.clone(), max_bytes)?;
        let mut tail = Budget::new(max_bytes);
        view.read_tail(disk.end..range.end, &mut tail);
        drop(view);
        let whole = stored.len() as u64 == disk.end - disk.start;
        for (index, segment, at) in stored {
            if !budget.take(segment.read(group, index, at)?) {
                return Ok(budget.records);
            }
        }
        if whole {
            let _all_fitted = tail.records.into_iter().all(|record| budget.take(record));
        }
        Ok(budget.records)
    }

    fn is_in_memory(&self, group: GroupId, from: u64) -> bool {
        let view = self.shared.view(group);
        view.lock().tail_start() <= from
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
        self.submit(group, OPERATION_HEAD_BYTES, done, |view, _| {
            Ok(view.truncate_after(index).map(Write::Remove).into_iter().collect())
        });
    }

    fn purge_to(&self, group: GroupId, index: u64, meta: Bytes, done: Done) {
        self.submit(group, OPERATION_HEAD_BYTES + meta.len(), done, |view, _| {
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

impl Drop for SegmentLog {
    /// Writes what is queued and calls its callbacks. If one of them owns the last handle, this runs on the writer's
    /// own thread, which then ends by itself.
    fn drop(&mut self) {
        self.shared.queue.close();
        if let Some(writer) = self.writer.take()
            && writer.thread().id() != thread::current().id()
            && writer.join().is_err()
        {
            tracing::error!("the handler of a lost log panicked");
        }
        self.shared.mark.sync();
    }
}
