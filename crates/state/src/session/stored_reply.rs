//! A session's replies that have rows of their own.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Time;

use crate::Answered;

/// The hash of a request id, see [`RequestId::hash`](crate::RequestId::hash).
type Hash = [u8; 16];

/// A session's reply in a row of its own, under its request id. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct StoredReply {
    /// What the request was answered with.
    #[n(0)]
    pub source: ReplySource,
    /// The reply that was given after it; `None` while it is itself still listed.
    #[n(1)]
    pub next: Option<NextReply>,
}

impl StoredReply {
    /// How many bytes this has as it is stored.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(minicbor::len(self)).unwrap_or(u64::MAX)
    }
}

/// Where a reply is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ReplySource {
    /// In the history, under this sequence.
    #[n(0)]
    History(#[n(0)] u64),
    /// Here, because the command did nothing that a history could hold.
    #[n(1)]
    Here(#[n(0)] Box<Answered>),
}

/// The reply that was given after another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct NextReply {
    /// Of its request id.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub hash: Hash,
    /// When it was given.
    #[n(1)]
    pub at: Time,
}
