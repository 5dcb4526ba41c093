//! The bus of a single process.

mod answers;
mod counters;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bus::{
    Bus, Count, Counting, Delivery, Envelope, Published, Receipt, Settings, Stream, check_answer,
    check_answer_name, check_consumer,
};
use crate::error::BusError;
use crate::limits::{FULL_RETRY_MS, TAKE_MAX, WAIT_MS_MAX};
use answers::Answers;
use counters::Counters;

/// A [`Bus`] in the memory of this process; it ends with it.
pub struct Memory {
    settings: Settings,
    lines: [Line; Stream::ALL.len()],
    counters: Mutex<Counters>,
    answers: Mutex<Answers>,
    /// Notified whenever there is an answer more, or the bus was closed.
    answers_changed: Notify,
}

/// One stream. If it is full, publishing is refused at once.
#[derive(Default)]
struct Line {
    state: Mutex<State>,
    /// Notified whenever there may be something to take, or the bus was closed.
    changed: Notify,
}

#[derive(Default)]
struct State {
    closed: bool,
    next: u64,
    /// The bytes of all unacknowledged bodies.
    bytes: usize,
    waiting: VecDeque<Waiting>,
    taken: BTreeMap<u64, PendingEnvelope>,
    /// The newest envelope of each id.
    ids: BTreeMap<String, Known>,
    /// When each of `taken` becomes due for redelivery.
    due: BTreeSet<(Instant, u64)>,
}

struct Waiting {
    number: u64,
    envelope: Envelope,
    published: Instant,
}

/// An id that is taken.
struct Known {
    number: u64,
    until: Instant,
}

struct PendingEnvelope {
    envelope: Envelope,
    published: Instant,
    consumer: String,
    count: u32,
    due: Instant,
}

/// The result of a look into a line.
enum LineState {
    Deliveries(Vec<Delivery>),
    /// Nothing yet; the time of the next redelivery, if there is one.
    Nothing(Option<Instant>),
}

impl Memory {
    /// An empty bus.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let lines = std::array::from_fn(|_| Line::default());
        let (counters, answers, answers_changed) = (Mutex::default(), Mutex::default(), Notify::new());
        Self { settings, lines, counters, answers, answers_changed }
    }

    fn line(&self, stream: Stream) -> &Line {
        match stream {
            Stream::Http => &self.lines[0],
            Stream::Model => &self.lines[1],
            Stream::Mail => &self.lines[2],
            Stream::Webhook => &self.lines[3],
            Stream::Timer => &self.lines[4],
        }
    }

    /// Refuses a closed bus: its streams are closed together.
    fn check_open(&self) -> Result<(), BusError> {
        self.lines.iter().try_for_each(|line| line.open().map(drop))
    }

    /// Sets when those of these deliveries that this consumer holds become due for redelivery.
    fn move_due(
        &self,
        stream: Stream,
        consumer: &str,
        receipts: &[Receipt],
        due: Instant,
    ) -> Result<(), BusError> {
        let mut state = self.line(stream).open()?;
        for number in receipts.iter().filter_map(number_of) {
            state.move_due(number, consumer, due);
        }
        Ok(())
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

#[async_trait]
impl Bus for Memory {
    async fn publish(&self, stream: Stream, envelope: Envelope) -> Result<Published, BusError> {
        envelope.check()?;
        let line = self.line(stream);
        let now = Instant::now();
        let mut state = line.open()?;
        if state.ids.get(&envelope.id).is_some_and(|known| now < known.until) {
            return Ok(Published::Already);
        }
        let held = state.waiting.len() + state.taken.len();
        let bytes = state.bytes + envelope.body.len();
        if held >= self.settings.envelopes_max || bytes > self.settings.bytes_max {
            return Err(BusError::Full { stream, retry_after: Duration::from_millis(FULL_RETRY_MS) });
        }
        state.bytes = bytes;
        state.next += 1;
        let number = state.next;
        state.ids.insert(envelope.id.clone(), Known { number, until: now + self.settings.id_known });
        state.waiting.push_back(Waiting { number, envelope, published: now });
        drop(state);
        line.changed.notify_waiters();
        Ok(Published::Added)
    }

    async fn ready(&self, stream: Stream) -> Result<(), BusError> {
        let state = self.line(stream).open()?;
        let held = state.waiting.len() + state.taken.len();
        if held >= self.settings.envelopes_max || state.bytes >= self.settings.bytes_max {
            return Err(BusError::Full { stream, retry_after: Duration::from_millis(FULL_RETRY_MS) });
        }
        Ok(())
    }

    async fn take(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        check_consumer(consumer)?;
        let line = self.line(stream);
        let end = Instant::now() + wait.min(Duration::from_millis(WAIT_MS_MAX));
        loop {
            // Registered before the look, so that no notification in between is missed.
            let mut changed = pin!(line.changed.notified());
            changed.as_mut().enable();
            let now = Instant::now();
            let found = line.open()?.take(consumer, max.min(TAKE_MAX), now, now + self.settings.idle);
            let next_due = match found {
                LineState::Deliveries(deliveries) => return Ok(deliveries),
                LineState::Nothing(_) if now >= end || max == 0 => return Ok(Vec::new()),
                LineState::Nothing(next_due) => next_due,
            };
            let until = next_due.map_or(end, |due| due.min(end));
            // Both are safe to drop: nothing is taken while waiting.
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    async fn ack(&self, stream: Stream, receipts: &[Receipt]) -> Result<(), BusError> {
        let mut state = self.line(stream).open()?;
        for number in receipts.iter().filter_map(number_of) {
            state.remove(number);
        }
        Ok(())
    }

    async fn keep(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        let now = Instant::now();
        self.move_due(stream, consumer, receipts, now + self.settings.idle)?;
        let mut state = self.line(stream).open()?;
        for number in receipts.iter().filter_map(number_of) {
            state.keep_id(number, consumer, now + self.settings.id_known);
        }
        Ok(())
    }

    async fn release(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        self.move_due(stream, consumer, receipts, Instant::now())?;
        self.line(stream).changed.notify_waiters();
        Ok(())
    }

    async fn count(&self, count: &Count) -> Result<Counting, BusError> {
        count.check()?;
        self.check_open()?;
        Ok(self.counters.lock().count(count, Instant::now(), self.settings.counted))
    }

    async fn uncount(&self, count: &Count) -> Result<(), BusError> {
        self.check_open()?;
        self.counters.lock().uncount(count);
        Ok(())
    }

    async fn answer(&self, name: &str, answer: Vec<u8>) -> Result<(), BusError> {
        check_answer(name, &answer)?;
        self.check_open()?;
        let now = Instant::now();
        self.answers.lock().add(name, answer, now, now + self.settings.answer_kept);
        self.answers_changed.notify_waiters();
        Ok(())
    }

    async fn answered(&self, name: &str, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        check_answer_name(name)?;
        let end = Instant::now() + wait.min(Duration::from_millis(WAIT_MS_MAX));
        loop {
            // Registered before the look, so that no notification in between is missed.
            let mut changed = pin!(self.answers_changed.notified());
            changed.as_mut().enable();
            self.check_open()?;
            let now = Instant::now();
            let found = self.answers.lock().take(name, now);
            if found.is_some() || now >= end {
                return Ok(found);
            }
            // Both are safe to drop: nothing is taken while waiting.
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep_until(end) => {}
            }
        }
    }

    async fn close(&self) {
        for line in &self.lines {
            line.state.lock().closed = true;
            line.changed.notify_waiters();
        }
        self.answers_changed.notify_waiters();
    }
}

impl Line {
    fn open(&self) -> Result<parking_lot::MutexGuard<'_, State>, BusError> {
        let state = self.state.lock();
        if state.closed { Err(BusError::Closed) } else { Ok(state) }
    }
}

impl State {
    /// Takes redeliveries, the longest overdue first, and then new envelopes.
    fn take(&mut self, consumer: &str, max: usize, now: Instant, due: Instant) -> LineState {
        let mut deliveries = Vec::new();
        while deliveries.len() < max
            && let Some((_, number)) = self.due.first().copied().filter(|(at, _)| *at <= now)
        {
            deliveries.extend(self.hand_on(number, consumer, now, due));
        }
        while deliveries.len() < max
            && let Some(Waiting { number, envelope, published }) = self.waiting.pop_front()
        {
            let taken = PendingEnvelope { envelope, published, consumer: consumer.to_owned(), count: 1, due };
            deliveries.push(taken.delivery(number, now));
            self.taken.insert(number, taken);
            self.due.insert((due, number));
        }
        if deliveries.is_empty() {
            LineState::Nothing(self.due.first().map(|(at, _)| *at))
        } else {
            LineState::Deliveries(deliveries)
        }
    }

    /// Gives a delivery that is due to its next consumer.
    fn hand_on(&mut self, number: u64, consumer: &str, now: Instant, due: Instant) -> Option<Delivery> {
        let taken = self.taken.get_mut(&number)?;
        self.due.remove(&(taken.due, number));
        self.due.insert((due, number));
        taken.due = due;
        consumer.clone_into(&mut taken.consumer);
        taken.count = taken.count.saturating_add(1);
        Some(taken.delivery(number, now))
    }

    /// Moves the end of the time for which the id of a delivery is taken, if this consumer holds it.
    fn keep_id(&mut self, number: u64, consumer: &str, until: Instant) {
        let Some(taken) = self.taken.get(&number).filter(|taken| taken.consumer == consumer) else { return };
        if let Some(known) = self.ids.get_mut(&taken.envelope.id).filter(|known| known.number == number) {
            known.until = until;
        }
    }

    fn move_due(&mut self, number: u64, consumer: &str, due: Instant) {
        let Some(taken) = self.taken.get_mut(&number).filter(|taken| taken.consumer == consumer) else {
            return;
        };
        self.due.remove(&(taken.due, number));
        self.due.insert((due, number));
        taken.due = due;
    }

    fn remove(&mut self, number: u64) {
        if let Some(taken) = self.taken.remove(&number) {
            self.due.remove(&(taken.due, number));
            self.bytes -= taken.envelope.body.len();
            if self.ids.get(&taken.envelope.id).is_some_and(|known| known.number == number) {
                self.ids.remove(&taken.envelope.id);
            }
        }
    }
}

impl PendingEnvelope {
    fn delivery(&self, number: u64, now: Instant) -> Delivery {
        Delivery {
            receipt: Receipt::new(number.to_string()),
            envelope: self.envelope.clone(),
            count: self.count,
            age: now.saturating_duration_since(self.published),
        }
    }
}

/// Returns the number in a receipt of this bus, or `None` for a foreign receipt.
fn number_of(receipt: &Receipt) -> Option<u64> {
    receipt.as_str().parse().ok()
}

#[cfg(test)]
mod tests;
