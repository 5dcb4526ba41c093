//! What is told to an endpoint again.

use switchward_machine::Time;

/// An event of a session, as endpoints are told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its type, one of [`PUBLISHED`](crate::PUBLISHED).
    pub kind: String,
    /// The session's sequence after it.
    pub sequence: u64,
    /// When it happened.
    pub at: Time,
    /// What exactly it is about, as [`EffectBody::Publish`](crate::EffectBody::Publish) has it.
    pub about: Option<String>,
}

/// Events of a session are told to an endpoint that has missed them. What of it has arrived or is on its way meanwhile is
/// told once more, under the same id.
#[derive(Debug, Clone)]
pub struct Republish {
    /// The endpoint's name.
    pub endpoint: String,
    /// Dead letters that are sent anew, by their numbers.
    pub retry: Vec<u64>,
    /// Events for which nothing is queued; with the above at most [`REPUBLISH_MAX`](crate::limits::REPUBLISH_MAX).
    pub events: Vec<Told>,
}
