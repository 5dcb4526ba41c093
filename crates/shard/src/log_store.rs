//! openraft's log, kept in the server's shared log.

use bytes::Bytes;
use futures::{Stream, TryStreamExt, stream};
use openraft::{
    EntryPayload, OptionalSend, RaftLogReader,
    entry::RaftEntry,
    storage::{IOFlushed, LogState, RaftLogStorage},
};
use parking_lot::Mutex;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use switchward_state::Levels;
use switchward_store::{Done, GroupId, GroupLog, LogRecord, Meta, StoreError};
use tokio::sync::{Notify, oneshot};
use tracing::{Span, debug_span};

use crate::blocking::blocking_here;
use crate::codec::{decode_entry, decode_json, decode_log_id, encode_entry, encode_json};
use crate::failed::Failed;
use crate::level::check_entry;
use crate::limits::LOG_READ_BYTES_MAX;
use crate::traces::TRACES;
use crate::types::{Entry, LogId, TypeConfig, Vote};

#[cfg(test)]
mod tests;

/// One group's part of the shared log.
#[derive(Clone)]
pub struct LogStore {
    log: Arc<dyn GroupLog>,
    group: GroupId,
    /// The span of the entry that this server proposes next: openraft carries no spans.
    proposed: Arc<Mutex<Span>>,
    /// Notified after each purge.
    purged: Arc<Notify>,
    /// The vote that is on disk: its term and its server are, and its grant by a majority may follow a moment later.
    voted: Arc<Mutex<Option<Vote>>>,
    /// Set if an entry cannot be decoded, or is of a level that this server does not know.
    failed: Failed,
    /// What this server can read.
    levels: Levels,
}

impl LogStore {
    /// Creates the part of this group.
    #[must_use]
    pub fn new(log: Arc<dyn GroupLog>, group: GroupId) -> Self {
        let proposed = Arc::new(Mutex::new(Span::none()));
        // What a log holds when it is opened is synced. A vote that cannot be read is refused later, by who needs it.
        let voted = log.meta(group, Meta::Vote).ok().flatten().and_then(|bytes| decode_json(&bytes).ok());
        let (voted, failed) = (Arc::new(Mutex::new(voted)), Failed::of(group));
        let levels = Levels::OF_PROGRAM;
        Self { log, group, proposed, purged: Arc::default(), voted, failed, levels }
    }

    /// The same on a server with other feature levels than those of this program.
    #[must_use]
    pub(crate) fn with_levels(self, levels: Levels) -> Self {
        Self { levels, ..self }
    }

    /// Fails, and the replica with it, if an entry is of a level that this server does not know.
    fn check_level(&self, entry: &Entry) -> io::Result<()> {
        let EntryPayload::Normal(payload) = &entry.payload else { return Ok(()) };
        check_entry(self.levels, entry.index(), &payload.0).map_err(|why| {
            self.failed.set(why.clone());
            io::Error::new(io::ErrorKind::InvalidData, why)
        })
    }

    /// What says whether the group's replica has failed.
    pub(crate) fn failed(&self) -> Failed {
        self.failed.clone()
    }

    /// The vote that is on disk; `None` if there is none. That a majority has granted it may be on its way to the disk.
    pub(crate) fn voted(&self) -> Option<Vote> {
        *self.voted.lock()
    }

    /// Bytes and entries of the log that are not yet purged.
    pub(crate) fn size(&self) -> (u64, u64) {
        let entries =
            self.log.first_last(self.group).ok().flatten().map_or(0, |(first, last)| last - first + 1);
        (self.log.bytes(self.group), entries)
    }

    /// Waits until the log holds at most `bytes_max` bytes; only a purge shortens it. Cancel safe.
    pub(crate) async fn within(&self, bytes_max: u64) {
        loop {
            let mut purged = std::pin::pin!(self.purged.notified());
            // Registered before the check, so that a purge between the two is not missed.
            purged.as_mut().enable();
            if self.size().0 <= bytes_max {
                return;
            }
            purged.await;
        }
    }

    /// Sets the span that the next entry is written for.
    pub(crate) fn writes_for(&self, span: Span) {
        if !span.is_disabled() {
            *self.proposed.lock() = span;
        }
    }

    /// The span of an append, until it is on disk.
    fn span(&self, records: &[LogRecord]) -> Span {
        let parent = std::mem::replace(&mut *self.proposed.lock(), Span::none());
        debug_span!(
            target: TRACES,
            parent: parent,
            "log.append",
            shard = self.group.0,
            index = records.first().map_or(0, |record| record.index),
            entries = records.len(),
            bytes = records.iter().map(|record| record.bytes.len()).sum::<usize>(),
        )
    }

    /// The index of the last entry before the kept tail of at most `entries_kept` entries and `bytes_kept` bytes;
    /// `None` if all are kept.
    pub(crate) fn all_but(&self, entries_kept: u64, bytes_kept: u64) -> Option<u64> {
        let (_, last) = self.log.first_last(self.group).ok()??;
        last.checked_sub(self.log.tail_within(self.group, entries_kept, bytes_kept))
    }

    /// Bytes and entries after one position up to another.
    pub(crate) fn stretch(&self, after: Option<u64>, upto: Option<u64>) -> (u64, u64) {
        let range = after.map_or(0, |after| after + 1)..upto.map_or(0, |upto| upto + 1);
        let (entries, bytes) = self.log.stretch(self.group, range);
        (bytes, entries)
    }

    /// The index of the first entry.
    pub(crate) fn first(&self) -> io::Result<Option<u64>> {
        Ok(self.log.first_last(self.group).map_err(failed)?.map(|(first, _)| first))
    }

    /// The last entry that was purged.
    pub(crate) fn purged(&self) -> io::Result<Option<LogId>> {
        self.log.meta(self.group, Meta::Purged).map_err(failed)?.map(|bytes| decode_json(&bytes)).transpose()
    }

    fn read(&self, from: u64, to: u64, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        let mut from = from;
        while from < to {
            let read = || self.log.read(self.group, from..to, bytes_max);
            let records = if self.log.is_in_memory(self.group, from) { read() } else { blocking_here(read) };
            let records = records.map_err(failed)?;
            let Some(last) = records.last() else { break };
            from = last.index + 1;
            for record in &records {
                let entry = decode_entry(record.index, &record.bytes);
                let entry = entry.inspect_err(|error| self.failed.set(error.to_string()))?;
                self.check_level(&entry)?;
                entries.push(entry);
            }
            if bytes_max != usize::MAX {
                break;
            }
        }
        Ok(entries)
    }
}

fn failed(error: StoreError) -> io::Error {
    io::Error::other(error)
}

/// Starts a write and waits until it is on disk.
async fn synced(start: impl FnOnce(Done)) -> io::Result<()> {
    let (done, wait) = oneshot::channel();
    start(Box::new(move |result| {
        // The caller may have gone; the write stands all the same.
        let _gone = done.send(result);
    }));
    match wait.await {
        Ok(result) => result.map_err(failed),
        Err(_) => Err(io::Error::other("the log has stopped")),
    }
}

/// The first index of a range, and the one after its last.
fn ends(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let from = match range.start_bound() {
        Bound::Included(from) => *from,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let to = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(to) => *to,
        Bound::Unbounded => u64::MAX,
    };
    (from, to)
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        let (from, to) = ends(&range);
        self.read(from, to, usize::MAX)
    }

    async fn entries_stream<RB>(
        &mut self,
        range: RB,
    ) -> impl Stream<Item = Result<Entry, io::Error>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (from, to) = ends(&range);
        let log = self.clone();
        // Read in pieces: a replay after a restart may cover most of the log.
        let piece = move |from: u64| {
            let read = log.read(from, to, LOG_READ_BYTES_MAX);
            std::future::ready(read.map(|entries| {
                let next = entries.last()?.index() + 1;
                Some((stream::iter(entries.into_iter().map(Ok)), next))
            }))
        };
        stream::try_unfold(from, piece).try_flatten()
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        self.read(start, end, LOG_READ_BYTES_MAX)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        self.log.meta(self.group, Meta::Vote).map_err(failed)?.map(|bytes| decode_json(&bytes)).transpose()
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let last_purged_log_id = self.purged()?;
        let last = self.log.last(self.group).map_err(failed)?;
        let last = last.map(|record| decode_log_id(record.index, &record.bytes)).transpose()?;
        Ok(LogState { last_purged_log_id, last_log_id: last.or(last_purged_log_id) })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let bytes = encode_json(vote)?;
        // What must survive a power cut is the term and the server, and those are synced already: the grant by a majority
        // makes nobody a leader after a restart. Not awaited, because a leader cannot begin its term meanwhile. It gets to
        // the disk before the entries of that term, which are written after it.
        let is_only_grant =
            vote.committed && self.voted().is_some_and(|on_disk| on_disk.leader_id == vote.leader_id);
        if is_only_grant || planted!(VoteNotSynced) {
            self.log.put_meta(self.group, Meta::Vote, bytes, Box::new(drop));
            *self.voted.lock() = Some(*vote);
            return Ok(());
        }
        synced(|done| self.log.put_meta(self.group, Meta::Vote, bytes, done)).await?;
        *self.voted.lock() = Some(*vote);
        Ok(())
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut records = Vec::new();
        for entry in entries {
            self.check_level(&entry)?;
            records.push(LogRecord { index: entry.index(), bytes: encode_entry(&entry)? });
        }
        let span = self.span(&records);
        let done: Done = Box::new(move |result| {
            drop(span);
            callback.io_completed(result.map_err(failed));
        });
        if planted!(AckBeforeSync) {
            self.log.append(self.group, records, Box::new(drop));
            done(Ok(()));
            return Ok(());
        }
        self.log.append(self.group, records, done);
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        synced(|done| self.log.truncate_after(self.group, last.map(|last| last.index), done)).await
    }

    async fn purge(&mut self, log_id: LogId) -> Result<(), io::Error> {
        let meta: Bytes = encode_json(&log_id)?;
        // Not awaited: nothing depends on a purge being on disk, and the node would hold up its heartbeats meanwhile. A
        // failure is reported by the log itself.
        self.log.purge_to(self.group, log_id.index, meta, Box::new(|_result| {}));
        self.purged.notify_waiters();
        Ok(())
    }
}
