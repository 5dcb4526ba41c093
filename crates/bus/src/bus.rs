//! What a bus is.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::error::BusError;
use crate::limits::{
    BODY_BYTES_MAX, CONSUMER_BYTES_MAX, ID_BYTES_MAX, IDLE_MS, STREAM_BYTES_MAX, STREAM_ENVELOPES_MAX,
};

/// Streams of envelopes, each with one group of consumers that share it.
///
/// - **At least once.** An envelope whose publishing succeeded is delivered until somebody acknowledges it, unless the
///   bus itself loses it; the record is elsewhere.
/// - **Order.** First deliveries come in the order of publishing; what others left undone comes before what is new.
/// - **Redelivery.** A delivery that is not acknowledged within [`Settings::idle`] after it was taken, or after the
///   last [`keep`](Self::keep), goes to the next taker, with its count raised by one.
/// - **No duplicates are removed.** Two envelopes with one id are two envelopes.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Puts an envelope at the end of a stream.
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] when its body is longer than [`BODY_BYTES_MAX`], or its id is empty or longer than
    /// [`ID_BYTES_MAX`]; [`BusError::Full`]; [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn publish(&self, stream: Stream, envelope: Envelope) -> Result<(), BusError>;

    /// Whether this stream would take an envelope now, so that nothing is prepared in vain. It takes nothing, and what it
    /// says may be over at once.
    ///
    /// # Errors
    ///
    /// [`BusError::Full`]; [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn ready(&self, stream: Stream) -> Result<(), BusError>;

    /// Takes up to `max` envelopes for a consumer: at once if there are any, else the first that come within `wait`.
    /// Nothing within that time is an empty answer. `max` and `wait` are cut at their limits; none wanted is none given.
    ///
    /// A call that is dropped before it is done loses nothing: what it took comes again after the idle time.
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] when the consumer's name is empty or longer than [`CONSUMER_BYTES_MAX`];
    /// [`BusError::Closed`], also while waiting; [`BusError::Unreachable`].
    async fn take(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError>;

    /// Ends these deliveries: they never come again, whoever holds them now. A receipt that is not known is passed over.
    ///
    /// # Errors
    ///
    /// [`BusError::Closed`]; [`BusError::Unreachable`], after which they may come again.
    async fn ack(&self, stream: Stream, receipts: &[Receipt]) -> Result<(), BusError>;

    /// A sign of life: the idle time of these deliveries begins anew. What the consumer does not hold any more is passed
    /// over.
    ///
    /// # Errors
    ///
    /// [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn keep(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError>;

    /// Gives these deliveries back undone: the next take may have them without the idle time. What the consumer does not
    /// hold any more is passed over.
    ///
    /// # Errors
    ///
    /// [`BusError::Closed`]; [`BusError::Unreachable`].
    async fn release(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError>;

    /// Ends the bus at this end: every later call, and every take that waits, is answered with [`BusError::Closed`].
    async fn close(&self);
}

/// What kind of thing goes out. Each has a stream and consumers of its own, so that none waits behind another.
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
    /// Times that have come.
    Timer,
}

impl Stream {
    /// Every stream, in order.
    pub const ALL: [Self; 5] = [Self::Http, Self::Model, Self::Mail, Self::Webhook, Self::Timer];

    /// The name that it has outside this process.
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

/// What is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    /// The number of the tenant that it belongs to.
    pub tenant: u32,
    /// Stays the same however often it is published or delivered; 1 to [`ID_BYTES_MAX`] bytes.
    pub id: String,
    /// Up to [`BODY_BYTES_MAX`] bytes that the bus does not look into.
    pub body: Vec<u8>,
}

impl Envelope {
    /// Whether its parts have the sizes that they may have; for those who implement [`Bus`].
    ///
    /// # Errors
    ///
    /// [`BusError::Size`] names the first part that has not.
    pub fn check(&self) -> Result<(), BusError> {
        within("id", self.id.len(), 1, ID_BYTES_MAX)?;
        within("body", self.body.len(), 0, BODY_BYTES_MAX)
    }
}

/// Whether this may be the name of a consumer.
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

/// An envelope in the hands of a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What to acknowledge it with.
    pub receipt: Receipt,
    /// What was published.
    pub envelope: Envelope,
    /// How often it was delivered, this time included; from 1.
    pub count: u32,
}

/// Names a delivery to its stream. It stays the same when the envelope goes to another consumer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(String);

impl Receipt {
    /// The receipt with these words, which only the bus that gave them can read.
    #[must_use]
    pub fn new(words: String) -> Self {
        Self(words)
    }

    /// Its words.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What of a bus can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How long a delivery may stay without acknowledgement or sign of life.
    pub idle: Duration,
    /// Envelopes of one stream, waiting and taken together.
    pub envelopes_max: usize,
    /// Bytes of the bodies of one stream, waiting and taken together.
    pub bytes_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            idle: Duration::from_millis(IDLE_MS),
            envelopes_max: STREAM_ENVELOPES_MAX,
            bytes_max: STREAM_BYTES_MAX,
        }
    }
}
