//! What is sent to an endpoint again.

use minicbor::{Decode, Encode};
use switchward_machine::Time;

use crate::delivery::{EventSubject, PublishedType};

/// An event of a session, as endpoints receive it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PublishedEvent {
    /// Its type; one of sessions.
    #[n(0)]
    pub kind: PublishedType,
    /// The session's sequence after it.
    #[n(1)]
    pub sequence: u64,
    /// When it happened.
    #[n(2)]
    pub at: Time,
    /// What exactly it is about, as [`EffectBody::Publish`](crate::delivery::EffectBody::Publish) has it.
    #[n(3)]
    pub about: Option<EventSubject>,
}

/// Sends events of a session to an endpoint that has missed them. An event that has arrived or is on its way meanwhile is
/// sent once more, under the same id.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Republish {
    /// The endpoint's name.
    #[n(0)]
    pub endpoint: String,
    /// Dead letters to send again, by their numbers.
    #[n(1)]
    pub retry: Vec<u64>,
    /// Events for which nothing is queued; with the above at most [`REPUBLISH_MAX`](crate::limits::REPUBLISH_MAX).
    #[n(2)]
    pub events: Vec<PublishedEvent>,
}
