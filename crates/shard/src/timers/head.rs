//! The first entries of an index of what is due, and what was handed out of it. Pure: the caller passes the time.
//!
//! An entry that the head knows is in one of three states: it waits, it flies (was handed out), or it rests (could
//! not be fired). Entries up to a certain one are all known; those behind it are read when few wait. Decisions are
//! applied while a read is under way: their changes behind that entry are buffered and applied to the result of the
//! read.

mod resting;
#[cfg(test)]
mod tests;

use resting::Resting;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use switchward_machine::Time;
use switchward_state::Key;
use tokio::time::Instant;

use super::{TimerBatch, due_of, travels};
use crate::failure::Failure;
use crate::limits::{
    DISK_AGAIN, FIRE_AGAIN, TIMER_BATCH_BYTES_MAX, TIMER_BATCH_MAX, TIMERS_HEAD_LOW, TIMERS_HEAD_MAX,
    TIMERS_IN_FLIGHT_MAX, TIMERS_READ_AGAIN, TIMERS_READ_MAX,
};
use crate::refused::Refused;

/// The number of timers that a leader knows of in a shard. All but `fired` are 0 if the server does not lead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimerCounts {
    /// Waiting in memory until they are due; at most [`TIMERS_HEAD_MAX`].
    pub waiting: usize,
    /// Handed out and not done; at most [`TIMERS_IN_FLIGHT_MAX`].
    pub in_flight: usize,
    /// Could not be fired, and are left alone for a while.
    pub resting: usize,
    /// Timers that were removed from flight by an applied decision, since the server was started.
    pub fired: u64,
    /// Batches that were handed out in this term.
    pub batches: u64,
    /// Batches that came back by the transport in this term.
    pub came: u64,
    /// Batches that were considered lost in this term.
    pub lost: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Head {
    /// The term that it is for; `None` if the server does not lead.
    term: Option<u64>,
    waiting: BTreeSet<Key>,
    known: Known,
    /// The read that is under way.
    read: Option<Read>,
    reads: u64,
    /// Nothing is read before this time.
    read_rests: Option<Instant>,
    /// When the index is read from its start again, because entries were dropped.
    reread_at: Option<Instant>,
    /// The attempt that each entry flies in.
    flying: HashMap<Key, u64>,
    attempts: BTreeMap<u64, Attempt>,
    resting: Resting,
    refused: Refused,
    counts: TimerCounts,
    /// The number of the last attempt; goes on over terms.
    last: u64,
    /// True if something is due and no capacity is left for it.
    starved: bool,
}

/// Which entries are all known.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    #[default]
    Nothing,
    /// Those whose index keys are at most this one.
    UpTo(Key),
    All,
}

/// A change of the index.
#[derive(Debug, Clone)]
pub(crate) enum EntryChange {
    /// This entry stands in it now.
    Added(Key),
    /// This entry stands in it no more.
    Removed(Key),
}

impl EntryChange {
    fn entry(&self) -> &Key {
        match self {
            Self::Added(entry) | Self::Removed(entry) => entry,
        }
    }
}

struct Read {
    number: u64,
    from: Known,
    /// The changes behind `from` during the read; `None` if there were too many.
    meanwhile: Option<Vec<EntryChange>>,
}

/// A batch that is on its way, or being fired.
struct Attempt {
    left: usize,
    until: Instant,
    came: bool,
    by_transport: bool,
}

/// The part of the index that is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadFrom {
    pub(crate) number: u64,
    /// The entry after which it begins.
    pub(crate) after: Option<Key>,
    pub(crate) max: usize,
}

/// The due entries, as they are handed out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DueTimers {
    /// Timers that a definition waits for.
    pub(crate) travel: Vec<Key>,
    /// The server's own.
    pub(crate) own: Vec<Key>,
}

/// When there is something to do, if nothing else happens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Next {
    /// By the shard's time, to hand something out.
    pub(crate) due: Option<Time>,
    /// By the monotonic clock, to hand out what has rested.
    pub(crate) rested: Option<Instant>,
    /// By the monotonic clock, for anything else.
    pub(crate) at: Option<Instant>,
}

impl Head {
    /// Begins again, for another term or for none.
    pub(crate) fn begin(&mut self, term: Option<u64>) {
        let counts = TimerCounts { fired: self.counts.fired, ..TimerCounts::default() };
        *self = Self { term, reads: self.reads, last: self.last, counts, ..Self::default() };
    }

    /// The term that the head is for; `None` while this server does not lead.
    pub(crate) fn term(&self) -> Option<u64> {
        self.term
    }

    pub(crate) fn counts(&self) -> TimerCounts {
        TimerCounts {
            waiting: self.waiting.len(),
            in_flight: self.flying.len(),
            resting: self.resting.len(),
            ..self.counts
        }
    }

    /// The index was changed. Returns true if the dispatcher may have to look.
    pub(crate) fn changed(&mut self, change: EntryChange) -> bool {
        if self.term.is_none() {
            return false;
        }
        if let Some(read) = self.read.as_mut().filter(|read| !read.from.covers(change.entry())) {
            read.meanwhile = read.meanwhile.take().filter(|changes| changes.len() < TIMERS_HEAD_MAX);
            if let Some(changes) = &mut read.meanwhile {
                changes.push(change.clone());
            }
        }
        match change {
            EntryChange::Added(entry) => self.known.covers(&entry) && self.put(entry),
            EntryChange::Removed(entry) => self.gone(&entry),
        }
    }

    /// Puts an entry among the waiting ones. Returns true if it is the first of them.
    fn put(&mut self, entry: Key) -> bool {
        if self.flying.contains_key(&entry) || self.resting.holds(&entry) {
            return false;
        }
        let first = self.waiting.first().is_none_or(|first| entry < *first);
        self.waiting.insert(entry);
        while self.waiting.len() > TIMERS_HEAD_MAX {
            self.waiting.pop_last();
            if let Some(last) = self.waiting.last() {
                self.known = std::mem::take(&mut self.known).min(Known::UpTo(last.clone()));
            }
        }
        first
    }

    /// An entry was removed. Returns true if that frees capacity for what is due.
    fn gone(&mut self, entry: &Key) -> bool {
        let fired = self.lands(entry, None);
        self.counts.fired += u64::from(fired);
        let known = fired || self.waiting.remove(entry) || self.resting.remove(entry);
        if known && let Some(due) = due_of(entry) {
            self.refused.done(&due.key);
        }
        std::mem::take(&mut self.starved)
    }

    /// Removes an entry from flight, if it flies in this attempt, or in any.
    fn lands(&mut self, entry: &Key, number: Option<u64>) -> bool {
        let Some(flies) =
            self.flying.get(entry).copied().filter(|flies| number.is_none_or(|it| it == *flies))
        else {
            return false;
        };
        self.flying.remove(entry);
        if let Some(attempt) = self.attempts.get_mut(&flies) {
            attempt.left -= 1;
            if attempt.left == 0 {
                self.attempts.remove(&flies);
            }
        }
        true
    }

    /// Begins a read of the index if few entries wait and there are more.
    pub(crate) fn begin_read(&mut self, now: Instant) -> Option<ReadFrom> {
        if self.reread_at.is_some_and(|reread_at| reread_at <= now) {
            self.reread_at = None;
            self.waiting.clear();
            self.known = Known::Nothing;
        }
        let rests = self.read_rests.is_some_and(|rests| now < rests);
        if self.term.is_none() || !self.wants_read() || rests {
            return None;
        }
        self.reads += 1;
        let after = match &self.known {
            Known::UpTo(last) => Some(last.clone()),
            Known::Nothing | Known::All => None,
        };
        self.read = Some(Read { number: self.reads, from: self.known.clone(), meanwhile: Some(Vec::new()) });
        Some(ReadFrom { number: self.reads, after, max: TIMERS_READ_MAX })
    }

    /// Ends a read with its result; fewer entries than requested mean that there are no more. `found` is `None` if
    /// the index could not be read.
    pub(crate) fn end_read(&mut self, asked: &ReadFrom, found: Option<Vec<Key>>, now: Instant) {
        let Some(read) = self.read.take_if(|read| read.number == asked.number) else { return };
        let Some(found) = found else {
            self.read_rests = Some(now + TIMERS_READ_AGAIN);
            return;
        };
        // Discards the result if entries were dropped, or the change buffer overflowed, during the read.
        let (true, Some(meanwhile)) = (read.from == self.known, read.meanwhile) else { return };
        self.known = match found.last().filter(|_| found.len() >= asked.max) {
            Some(last) => Known::UpTo(last.clone()),
            None => Known::All,
        };
        for entry in found {
            self.put(entry);
        }
        for change in meanwhile {
            self.changed(change);
        }
    }

    /// Takes what is due, in its order, as far as the capacity allows.
    pub(crate) fn take_due(&mut self, now: Time, at: Instant) -> DueTimers {
        for entry in self.resting.wake(at) {
            self.put(entry);
        }
        let (mut taken, mut bytes) = (DueTimers::default(), 0);
        self.starved = false;
        while let Some(due) = self.waiting.first().and_then(due_of).filter(|due| due.at <= now) {
            let count = taken.travel.len() + taken.own.len();
            if count >= TIMER_BATCH_MAX || bytes >= TIMER_BATCH_BYTES_MAX {
                break;
            }
            if self.flying.len() + count >= TIMERS_IN_FLIGHT_MAX {
                self.starved = true;
                break;
            }
            let Some(entry) = self.waiting.pop_first() else { break };
            bytes += entry.as_bytes().len();
            if travels(&due.key) { taken.travel.push(entry) } else { taken.own.push(entry) }
        }
        taken
    }

    /// Hands entries out as one attempt of this server. Returns its number.
    pub(crate) fn launch_here(&mut self, entries: &[Key], until: Instant) -> u64 {
        self.launch(entries, until, false)
    }

    /// Hands entries out as one attempt by the transport. Returns its number.
    pub(crate) fn launch_by_transport(&mut self, entries: &[Key], until: Instant) -> u64 {
        self.launch(entries, until, true)
    }

    fn launch(&mut self, entries: &[Key], until: Instant, by_transport: bool) -> u64 {
        self.counts.batches += 1;
        self.last += 1;
        let number = self.last;
        self.flying.extend(entries.iter().map(|entry| (entry.clone(), number)));
        self.attempts.insert(number, Attempt { left: entries.len(), until, came: false, by_transport });
        number
    }

    /// Gives up an attempt. Returns the entries that are left of it.
    pub(crate) fn recall(&mut self, number: u64) -> Vec<Key> {
        if self.attempts.remove(&number).is_none() {
            return Vec::new();
        }
        let mut left: Vec<Key> = self
            .flying
            .iter()
            .filter(|(_, flies)| **flies == number)
            .map(|(entry, _)| entry.clone())
            .collect();
        left.sort_unstable();
        for entry in &left {
            self.flying.remove(entry);
        }
        left
    }

    /// The attempts whose time is over, and whether the transport lost each of them.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<(u64, bool)> {
        let over = self.attempts.iter().filter(|(_, attempt)| attempt.until <= now);
        let over: Vec<_> =
            over.map(|(number, attempt)| (*number, attempt.by_transport && !attempt.came)).collect();
        self.counts.lost += u64::try_from(over.len()).unwrap_or(u64::MAX);
        over
    }

    /// A batch has come back by the transport. Returns the entries that are still to be fired, once.
    pub(crate) fn came(&mut self, batch: &TimerBatch, until: Instant) -> Option<Vec<Key>> {
        let waits = self.term == Some(batch.term);
        let attempt =
            self.attempts.get_mut(&batch.number).filter(|it| waits && it.by_transport && !it.came)?;
        (attempt.came, attempt.until) = (true, until);
        self.counts.came += 1;
        let flies = |entry: &&Key| self.flying.get(*entry) == Some(&batch.number);
        Some(batch.timers.iter().filter(flies).cloned().collect())
    }

    /// Records the result of one timer of an attempt. One that still stands although nothing prevented it from being
    /// fired rests like a refused one, or it would be fired again and again.
    pub(crate) fn settle(&mut self, number: u64, entry: Key, result: Result<(), Failure>, now: Instant) {
        if !self.lands(&entry, Some(number)) {
            return;
        }
        let Some(due) = due_of(&entry) else { return };
        let wait = match result {
            Ok(()) => self.refused.refused(&due.key, now),
            Err(failure @ (Failure::Rejected(_) | Failure::Internal)) => {
                self.refused.warn(&due.key, &failure, now)
            }
            Err(Failure::DiskLow { .. }) => DISK_AGAIN,
            Err(
                Failure::Electing
                | Failure::OutcomeUnknown
                | Failure::Unconfirmed
                | Failure::OtherMap { .. }
                | Failure::Overloaded
                | Failure::Draining
                | Failure::Stopped,
            ) => FIRE_AGAIN,
        };
        self.rest(entry, now + wait, now);
    }

    fn rest(&mut self, entry: Key, until: Instant, now: Instant) {
        if !self.resting.put(entry, until) {
            // The index still has it.
            self.reread_at.get_or_insert(now + TIMERS_READ_AGAIN);
        }
    }

    /// When to look again.
    pub(crate) fn next(&self) -> Next {
        let full = self.flying.len() >= TIMERS_IN_FLIGHT_MAX;
        let due = self.waiting.first().and_then(due_of).map(|due| due.at).filter(|_| !full);
        let until = self.attempts.values().map(|attempt| attempt.until).min();
        let read = self.read_rests.filter(|_| self.wants_read());
        let at = [until, self.reread_at, read];
        Next { due, rested: self.resting.first(), at: at.into_iter().flatten().min() }
    }

    /// Returns true if few entries wait, there are more in the index, and none are being read.
    fn wants_read(&self) -> bool {
        self.known != Known::All && self.read.is_none() && self.waiting.len() < TIMERS_HEAD_LOW
    }
}

impl Known {
    fn covers(&self, entry: &Key) -> bool {
        match self {
            Self::Nothing => false,
            Self::UpTo(last) => entry <= last,
            Self::All => true,
        }
    }
}
