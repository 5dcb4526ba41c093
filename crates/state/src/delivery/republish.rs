//! What is sent to an endpoint again.

use switchward_machine::Time;

/// An event of a session, as endpoints receive it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedEvent {
    /// Its type, one of [`PUBLISHED`](crate::delivery::publish::PUBLISHED).
    pub kind: String,
    /// The session's sequence after it.
    pub sequence: u64,
    /// When it happened.
    pub at: Time,
    /// What exactly it is about, as [`EffectBody::Publish`](crate::delivery::EffectBody::Publish) has it.
    pub about: Option<String>,
}

/// Sends events of a session to an endpoint that has missed them. An event that has arrived or is on its way meanwhile is
/// sent once more, under the same id.
#[derive(Debug, Clone)]
pub struct Republish {
    /// The endpoint's name.
    pub endpoint: String,
    /// Dead letters to send again, by their numbers.
    pub retry: Vec<u64>,
    /// Events for which nothing is queued; with the above at most [`REPUBLISH_MAX`](crate::limits::REPUBLISH_MAX).
    pub events: Vec<PublishedEvent>,
}
