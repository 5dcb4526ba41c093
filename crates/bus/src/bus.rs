//! The [`Bus`] trait.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::BusError;
use crate::limits::{
    ANSWER_BYTES_MAX, ANSWER_KEPT_MS, BODY_BYTES_MAX, CONSUMER_BYTES_MAX, COUNTED_MS, COUNTER_BYTES_MAX,
    COUNTERS_MAX, ID_BYTES_MAX, ID_KNOWN_MS, IDLE_MS, STREAM_BYTES_MAX, STREAM_ENVELOPES_MAX,
};

/// Streams of envelopes, each with one group of consumers that share it.
///
/// - **At least once.** An envelope whose publishing succeeded is delivered until it is acknowledged, unless the bus
///   itself loses it; the record is elsewhere.
/// - **Order.** First deliveries come in the order of publishing; redeliveries come before new envelopes.
/// - **Redelivery.** A delivery that is not acknowledged within [`Settings::idle`] after it was taken, or after the
///   last [`keep`](Self::keep), goes to the next taker, with its count incremented.
/// - **One envelope with one id.** A stream does not take an envelope while it holds another one with the same id, until
///   [`Settings::id_known`] after that one was published or last [kept](Self::keep). So several publishers of one record
///   do not have to know of each other.
/// - **Age by one clock.** [`Delivery::age`] comes from the clock of the bus. No clock of a publisher or consumer matters.
/// - **One count for all.** [`count`](Self::count) counts ids in counters that all ends of the bus share. A counter that
///   nothing was added to for [`Settings::counted`], by the clock of the bus, is forgotten.
/// - **Answers by name.** Who performs a job for a caller that waits [answers](Self::answer) under a name that both know, and
///   the caller [takes](Self::answered) it. An answer that nobody takes is forgotten after [`Settings::answer_kept`].
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Appends an envelope to a stream, unless the stream holds one with the same id; see [`Published`].
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] if its body is longer than [`BODY_BYTES_MAX`], or its id is empty or longer than
    /// [`ID_BYTES_MAX`]; [`BusError::Full`]; [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn publish(&self, stream: Stream, envelope: Envelope) -> Result<Published, BusError>;

    /// Checks that this stream would take an envelope now, so that nothing is prepared in vain. Reserves nothing, so the
    /// answer may be outdated at once.
    ///
    /// # Errors
    ///
    /// [`BusError::Full`]; [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn ready(&self, stream: Stream) -> Result<(), BusError>;

    /// Takes up to `max` envelopes for a consumer: at once if there are any, else the first that come within `wait`.
    /// Returns an empty list if none comes, or if `max` is 0. `max` and `wait` are capped at their limits.
    ///
    /// Dropping the call loses nothing: the deliveries that it took come again after the idle time.
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] if the consumer's name is empty or longer than [`CONSUMER_BYTES_MAX`];
    /// [`BusError::Closed`], also while waiting; [`BusError::Unreachable`].
    async fn take(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError>;

    /// Acknowledges these deliveries: they never come again, whichever consumer holds them. Ignores unknown receipts.
    ///
    /// # Errors
    ///
    /// [`BusError::Closed`]; [`BusError::Unreachable`], after which they may come again.
    async fn ack(&self, stream: Stream, receipts: &[Receipt]) -> Result<(), BusError>;

    /// A heartbeat: restarts the idle time of these deliveries, and the time for which their ids are taken. Ignores those
    /// that the consumer does not hold any more.
    ///
    /// # Errors
    ///
    /// [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn keep(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError>;

    /// Releases these deliveries: the next take may have them without waiting for the idle time. Ignores those that the
    /// consumer does not hold any more.
    ///
    /// # Errors
    ///
    /// [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn release(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError>;

    /// Counts an id in several counters, in all of them or in none. An id that a counter has already is not added again, so
    /// that several publishers of one record count it once.
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] if the id or a counter's name is empty or too long, or if there are more than [`COUNTERS_MAX`]
    /// counters; [`BusError::Closed`]; [`BusError::Unreachable`], after which it may be counted.
    async fn count(&self, count: &Count) -> Result<Counting, BusError>;

    /// Removes an id from the counters of a count. Ignores a counter that does not have it.
    ///
    /// # Errors
    ///
    /// [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn uncount(&self, count: &Count) -> Result<(), BusError>;

    /// Gives an answer to the caller that waits for it under this name, or will: see [`answered`](Self::answered). Answers under one
    /// name are taken in their order.
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] if the name is empty or longer than [`ID_BYTES_MAX`], or the answer is longer than
    /// [`ANSWER_BYTES_MAX`]; [`BusError::Closed`]; [`BusError::Unreachable`], after which it may be given.
    async fn answer(&self, name: &str, answer: Vec<u8>) -> Result<(), BusError>;

    /// Takes the answer under this name: at once if there is one, else the first that comes within `wait`, which is capped at
    /// its limit. `None` if none comes. Nobody else gets an answer that was taken.
    ///
    /// Not cancel safe: a dropped call may have taken the answer.
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] if the name is empty or longer than [`ID_BYTES_MAX`]; [`BusError::Closed`], also while waiting;
    /// [`BusError::Unreachable`].
    async fn answered(&self, name: &str, wait: Duration) -> Result<Option<Vec<u8>>, BusError>;

    /// Closes this end of the bus: every later call, and every waiting take, fails with [`BusError::Closed`].
    async fn close(&self);
}

/// The kinds of work. Each has a stream and consumers of its own, so that none waits behind another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// HTTP requests of definitions.
    Http,
    /// Questions to a language model.
    Model,
    /// Mail to people.
    Mail,
    /// Events for the endpoints of tenants, and messages of definitions to a URL.
    Webhook,
    /// Timers that are due.
    Timer,
}

impl Stream {
    /// Every stream, in order.
    pub const ALL: [Self; 5] = [Self::Http, Self::Model, Self::Mail, Self::Webhook, Self::Timer];

    /// The stable name outside this process.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Model => "model",
            Self::Mail => "mail",
            Self::Webhook => "webhook",
            Self::Timer => "timer",
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// The result of publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The envelope was added.
    Added,
    /// The stream holds an envelope with this id already, which will be delivered; nothing was added. A full stream also
    /// gives this answer.
    Already,
}

/// A published message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The number of its tenant.
    pub tenant: u32,
    /// The same however often and by whomever it is published or delivered; no other envelope of any tenant has it. 1 to
    /// [`ID_BYTES_MAX`] bytes.
    pub id: String,
    /// Up to [`BODY_BYTES_MAX`] opaque bytes.
    pub body: Vec<u8>,
}

impl Envelope {
    /// Checks the sizes of its parts; for implementations of [`Bus`].
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] names the first part that has a wrong size.
    pub fn check(&self) -> Result<(), BusError> {
        within("id", self.id.len(), 1, ID_BYTES_MAX)?;
        within("body", self.body.len(), 0, BODY_BYTES_MAX)
    }
}

/// An id that is counted in several counters together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// What is counted: 1 to [`ID_BYTES_MAX`] bytes.
    pub id: String,
    /// Where it is counted: at most [`COUNTERS_MAX`].
    pub counters: Vec<Counter>,
}

/// A counter that all ends of a bus share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// Its name: 1 to [`COUNTER_BYTES_MAX`] bytes.
    pub name: String,
    /// An id is added only while the counter has fewer ids than this. Each call may give another value.
    pub most: u32,
}

/// The result of counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// All counters have the id.
    Counted,
    /// The counter at this index of the count has as many ids as it may have; nothing was changed.
    Reached(usize),
}

impl Count {
    /// Checks the sizes of its parts; for implementations of [`Bus`].
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] names the first part that has a wrong size.
    pub fn check(&self) -> Result<(), BusError> {
        within("id", self.id.len(), 1, ID_BYTES_MAX)?;
        within("counters", self.counters.len(), 0, COUNTERS_MAX)?;
        self.counters.iter().try_for_each(|it| within("counter", it.name.len(), 1, COUNTER_BYTES_MAX))
    }
}

/// Fails if the length is not 1 to [`ID_BYTES_MAX`] bytes.
pub(crate) fn check_answer_name(name: &str) -> Result<(), BusError> {
    within("name", name.len(), 1, ID_BYTES_MAX)
}

/// Fails if the name has a wrong length, or the answer more than [`ANSWER_BYTES_MAX`] bytes.
pub(crate) fn check_answer(name: &str, answer: &[u8]) -> Result<(), BusError> {
    check_answer_name(name)?;
    within("answer", answer.len(), 0, ANSWER_BYTES_MAX)
}

/// Checks a consumer's name.
pub(crate) fn check_consumer(name: &str) -> Result<(), BusError> {
    within("consumer", name.len(), 1, CONSUMER_BYTES_MAX)
}

fn within(what: &'static str, bytes: usize, bytes_min: usize, bytes_max: usize) -> Result<(), BusError> {
    if (bytes_min..=bytes_max).contains(&bytes) {
        Ok(())
    } else {
        Err(BusError::Size { what, bytes, bytes_max })
    }
}

/// An envelope that a consumer has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What to acknowledge it with.
    pub receipt: Receipt,
    /// What was published.
    pub envelope: Envelope,
    /// The number of deliveries so far, this one included; from 1.
    pub count: u32,
    /// The time since it was published, by the clock of the bus.
    pub age: Duration,
}

/// Identifies a delivery in its stream. It stays the same when the envelope goes to another consumer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(String);

impl Receipt {
    /// Creates a receipt from text that only the issuing bus can read.
    #[must_use]
    pub fn new(words: String) -> Self {
        Self(words)
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A bus's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a delivery may be held without acknowledgement or heartbeat.
    pub idle: Duration,
    /// Envelopes of one stream, waiting and taken together.
    pub envelopes_max: usize,
    /// Bytes of the bodies of one stream, waiting and taken together.
    pub bytes_max: usize,
    /// How long an id is taken after its envelope was published or last kept, unless it is acknowledged before. Shorter than
    /// the time after which a publisher takes the envelope for lost and publishes it again.
    pub id_known: Duration,
    /// How long a counter is kept after something was counted in it. Longer than the period that it counts for.
    pub counted: Duration,
    /// How long an answer is kept that nobody takes.
    pub answer_kept: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            idle: Duration::from_millis(IDLE_MS),
            envelopes_max: STREAM_ENVELOPES_MAX,
            bytes_max: STREAM_BYTES_MAX,
            id_known: Duration::from_millis(ID_KNOWN_MS),
            counted: Duration::from_millis(COUNTED_MS),
            answer_kept: Duration::from_millis(ANSWER_KEPT_MS),
        }
    }
}
