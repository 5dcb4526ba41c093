use super::{
    LogOptions, LogStats,
    frame::{BATCH_HEAD_BYTES, BatchBuilder, OPERATION_HEAD_BYTES, SEGMENT_HEAD_BYTES},
    ledger::Ledger,
    maker::Maker,
    queue::{Operation, Queue, Write},
    segment::{Blocks, Segment},
    view::View,
};
use crate::{
    DataDir, GroupId, StoreError,
    data_dir::LOG_MARKS,
    disk::Refusals,
    files::failed,
    limits::{
        LOG_BUFFER_BYTES_KEPT, LOG_MOVE_BYTES, LOG_PREWRITE_RATE_MAX, LOG_SEGMENT_BYTES_MAX,
        LOG_SEGMENT_BYTES_MIN, SPACE_WAIT_MAX, SPACE_WAITS,
    },
    mark::Mark,
};
use backon::{BackoffBuilder as _, ExponentialBackoff};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    os::unix::fs::FileExt as _,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::Instant,
};

/// The state shared by the log's callers and its one writer.
pub(super) struct Shared {
    pub(super) queue: Queue,
    pub(super) views: Mutex<HashMap<GroupId, Arc<Mutex<View>>>>,
    pub(super) ledger: Mutex<Ledger>,
    pub(super) maker: Maker,
    pub(super) stats: LogStats,
    /// The sequence number of the last batch that was synced.
    pub(super) mark: Mark<LOG_MARKS>,
    pub(super) options: LogOptions,
    /// Dropped last: it holds the lock of the folder.
    pub(super) dir: DataDir,
}

impl Shared {
    pub(super) fn view(&self, group: GroupId) -> Arc<Mutex<View>> {
        self.views.lock().entry(group).or_default().clone()
    }
}

/// Writes what is queued: one batch, one sync, all callbacks.
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// The segment that is being written; `None` before the first batch.
    current: Option<Current>,
    /// The number of the last segment.
    number: u64,
    /// The sequence number of the last batch.
    sequence: u64,
    /// Used again for each batch.
    buffer: Vec<u8>,
}

struct Current {
    segment: Arc<Segment>,
    /// The offset of the next batch, bytes.
    end: u64,
    /// When its first batch was written.
    begun: Instant,
}

/// The attempts of one write, for which there may be no space yet.
struct Attempts {
    /// What it needs, at most.
    bytes: u64,
    waits: ExponentialBackoff,
    refusals: Refusals,
}

impl Attempts {
    fn of(bytes: u64) -> Self {
        Self { bytes, waits: SPACE_WAITS.build(), refusals: Refusals::default() }
    }
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>, number: u64, sequence: u64) -> Self {
        Self { shared, current: None, number, sequence, buffer: Vec::new() }
    }

    /// Runs until the queue is closed and empty. There is no timer: what is queued during a sync is the next batch.
    pub(super) fn run(mut self) {
        let mut lost = None;
        loop {
            let mut operations = self.shared.queue.take();
            if operations.is_empty() {
                return;
            }
            if lost.is_none()
                && let Err(error) = self.write(&mut operations)
            {
                (self.shared.options.on_fatal)(&error);
                lost = Some(error);
            }
            for Operation { group, number, writes, done, .. } in operations {
                if lost.is_none() {
                    self.shared.view(group).lock().evict(number);
                }
                done(lost.clone().map_or(writes.map(drop), Err));
            }
        }
    }

    fn write(&mut self, operations: &mut [Operation]) -> Result<(), StoreError> {
        let mut writes = Vec::new();
        let (mut begin, mut move_before) = (false, None);
        for Operation { group, writes: of, .. } in operations {
            for write in of.iter_mut().flat_map(std::mem::take) {
                match write {
                    Write::Begin => begin = true,
                    Write::Move(before) => move_before = move_before.max(Some(before)),
                    Write::Record(_) | Write::Meta(..) | Write::Remove(_) => writes.push((*group, write)),
                }
            }
        }
        if writes.is_empty() && !begin && move_before.is_none() {
            return Ok(());
        }
        let records = writes.iter().filter(|(_, write)| matches!(write, Write::Record(_))).count();
        // Moved records come first: they are what the log holds before this batch, which may remove or replace them.
        let mut all = self.moved(move_before)?;
        all.append(&mut writes);
        self.ensure_capacity(all.iter().map(|(_, write)| write.stored_bytes()).sum(), begin)?;
        self.write_batch(all)?;
        self.shared.stats.records.fetch_add(records as u64, Relaxed);
        self.make_ahead();
        Ok(())
    }

    /// Returns the next records to move out of the oldest segment, if its number is lower than `before` or the segments are
    /// wasteful.
    fn moved(&self, before: Option<u64>) -> Result<Vec<(GroupId, Write)>, StoreError> {
        let found = {
            let ledger = self.shared.ledger.lock();
            let asked = before.is_some_and(|before| ledger.oldest().is_some_and(|oldest| oldest < before));
            if asked || ledger.is_wasteful() { ledger.of_oldest(LOG_MOVE_BYTES) } else { Vec::new() }
        };
        let read = |(group, index, segment, at): (GroupId, u64, Arc<Segment>, _)| {
            Ok((group, Write::Record(segment.read(group, index, at)?)))
        };
        found.into_iter().map(read).collect()
    }

    /// Switches to the next segment if `begin` is set, or if the current one cannot hold a batch of `operations` bytes.
    fn ensure_capacity(&mut self, operations: u64, begin: bool) -> Result<(), StoreError> {
        let bytes = operations + BATCH_HEAD_BYTES as u64;
        let fits = |current: &Current| current.end + bytes <= current.segment.bytes;
        let is_new = |current: &Current| current.end == SEGMENT_HEAD_BYTES as u64;
        match &self.current {
            Some(current) if fits(current) && (!begin || is_new(current)) => return Ok(()),
            Some(_) | None => {}
        }
        let metas: u64 = {
            let ledger = self.shared.ledger.lock();
            ledger.metas().map(|(_, _, bytes)| (OPERATION_HEAD_BYTES + bytes.len()) as u64).sum()
        };
        let segment = Arc::new(self.next_segment(SEGMENT_HEAD_BYTES as u64 + bytes + metas)?);
        self.shared.ledger.lock().add(Arc::clone(&segment), self.sequence + 1);
        self.number = segment.number;
        self.current = Some(Current { segment, end: SEGMENT_HEAD_BYTES as u64, begun: Instant::now() });
        Ok(())
    }

    /// Returns a segment of at least `bytes`. Waits for space while the disk is full.
    fn next_segment(&self, bytes: u64) -> Result<Segment, StoreError> {
        let bytes = bytes.max(LOG_SEGMENT_BYTES_MIN).next_multiple_of(LOG_SEGMENT_BYTES_MIN);
        let mut attempts = Attempts::of(bytes);
        loop {
            match self.shared.maker.take(self.number + 1, bytes) {
                Ok(segment) => return Ok(segment),
                Err(error) => self.wait_for_space(error, &mut attempts)?,
            }
        }
    }

    /// Gives the reserve up and waits until the next of these attempts, if the disk is full; returns any other error.
    fn wait_for_space(&self, error: StoreError, attempts: &mut Attempts) -> Result<(), StoreError> {
        let disk = self.shared.dir.disk();
        let ends = attempts.refusals.end(disk, &error, attempts.bytes);
        if ends || !disk.caused(&error) || self.shared.queue.is_closed() {
            return Err(error);
        }
        disk.on_disk_full();
        thread::sleep(attempts.waits.next().unwrap_or(SPACE_WAIT_MAX));
        Ok(())
    }

    fn write_batch(&mut self, writes: Vec<(GroupId, Write)>) -> Result<(), StoreError> {
        let Some(Current { segment, end, begun }) = &self.current else { return Ok(()) };
        let (segment, end, begun) = (Arc::clone(segment), *end, *begun);
        let mut batch = BatchBuilder::new(segment.salt, end, std::mem::take(&mut self.buffer));
        if end == SEGMENT_HEAD_BYTES as u64 {
            for (group, slot, bytes) in self.shared.ledger.lock().metas() {
                batch.meta(group, slot, bytes);
            }
        }
        for (group, write) in writes {
            match write {
                Write::Record(record) => batch.record(group, &record),
                Write::Meta(slot, bytes) => batch.meta(group, slot, bytes),
                Write::Remove(indexes) => batch.remove(group, indexes),
                // These write nothing themselves.
                Write::Begin | Write::Move(_) => {}
            }
        }
        let bytes = batch.finish(self.sequence + 1);
        self.put(&segment, end, bytes)?;
        let written = bytes.len() as u64;
        self.sequence += 1;
        self.shared.mark.put([self.sequence]);
        self.current = Some(Current { segment: Arc::clone(&segment), end: end + written, begun });
        let (changes, buffer) = batch.into_parts();
        if buffer.capacity() <= LOG_BUFFER_BYTES_KEPT {
            self.buffer = buffer;
        }
        let released = {
            let mut ledger = self.shared.ledger.lock();
            for (group, change) in changes {
                ledger.apply(segment.number, group, change)?;
            }
            ledger.release()
        };
        released.into_iter().for_each(|free| self.shared.maker.remove(free));
        self.shared.stats.bytes.fetch_add(written, Relaxed);
        Ok(())
    }

    /// Writes and syncs.
    fn put(&self, segment: &Segment, at: u64, bytes: &[u8]) -> Result<(), StoreError> {
        let mut attempts = Attempts::of(bytes.len() as u64);
        // A file system that writes overwritten data to another location may need space even here.
        while let Err(error) = segment.file.write_all_at(bytes, at) {
            self.wait_for_space(failed("write to the log", &segment.path)(error), &mut attempts)?;
        }
        let nth = self.shared.stats.syncs.fetch_add(1, Relaxed) + 1;
        let fault = self.shared.options.sync_fault.as_ref().and_then(|fault| fault(nth));
        let synced = fault.map_or_else(|| segment.file.sync_data(), Err);
        // Never tried again: after a failed sync the kernel may have dropped the pages, and the next one lies.
        synced.map_err(failed("sync the log", &segment.path))
    }

    /// Orders the next segment once the current one is half full. It is twice as large, so that a log that grows
    /// quickly switches seldom, and one that hardly grows takes little space.
    fn make_ahead(&self) {
        if let Some(Current { segment, end, begun }) = &self.current
            && *end > segment.bytes / 2
        {
            let most = if self.shared.dir.disk().admits_growth() { LOG_SEGMENT_BYTES_MAX } else { 0 };
            let bytes = (segment.bytes * 2).min(most).max(LOG_SEGMENT_BYTES_MIN);
            let is_fast = *end as f64 > LOG_PREWRITE_RATE_MAX as f64 * begun.elapsed().as_secs_f64();
            let blocks = if is_fast { Blocks::Allocated } else { Blocks::Written };
            self.shared.maker.order(self.number + 1, bytes, blocks);
        }
    }
}

impl Write {
    /// Its size in a batch, bytes.
    fn stored_bytes(&self) -> u64 {
        let bytes = match self {
            Write::Record(record) => record.bytes.len(),
            Write::Meta(_, bytes) => bytes.len(),
            Write::Remove(_) => size_of::<u64>(),
            Write::Begin | Write::Move(_) => return 0,
        };
        (OPERATION_HEAD_BYTES + bytes) as u64
    }
}
