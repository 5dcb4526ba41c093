//! What a call carries.

use bytes::Bytes;

/// A class of traffic, with its own connection to the other server. A call names the one for its request and the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// Short messages that must not wait: votes, heartbeats, small appends. A body has at most
    /// [`CONTROL_BODY_BYTES_MAX`](crate::limits::CONTROL_BODY_BYTES_MAX) bytes in either direction.
    Control,
    /// Everything else, up to [`BULK_BODY_BYTES_MAX`](crate::limits::BULK_BODY_BYTES_MAX) bytes in either direction.
    Bulk,
    /// Requests whose callers and handlers are tasks of [`PeerOptions::commands`](crate::PeerOptions::commands): the
    /// connection runs there too, so that no other thread wakes up for one of them. A body has at most as many bytes as
    /// on [`Bulk`](Self::Bulk).
    Commands,
}

/// A request to another server. The transport gives no meaning to any part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The kind of request, a number of the caller.
    pub kind: u8,
    /// The Raft group that it concerns, or any other number of the caller.
    pub group: u64,
    /// The rest.
    pub body: Bytes,
}
