//! What Raft needs of a transport between servers.

use async_trait::async_trait;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::ClockOffset;

/// The connection that a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerConnection {
    /// Short messages that must not wait behind long ones.
    Control,
    /// Long messages.
    Bulk,
    /// Commands that are passed on, short and long: they pass between tasks of the callers' runtime, on which their
    /// connection runs.
    Commands,
}

/// A message to another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerRequest {
    /// The message's kind.
    pub kind: u8,
    /// The number of the group whose replica gets it.
    pub group: u64,
    /// The encoded message.
    pub body: Bytes,
}

/// The failure of a message to another server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// The message did not leave this server.
    #[error("the message was not sent: {0}")]
    NotSent(String),
    /// The connection broke; the message may have arrived.
    #[error("the connection broke: {0}")]
    Unknown(String),
    /// The other server refused the message.
    #[error("the message was refused: {0}")]
    Refused(String),
    /// No answer came in time; the message may have arrived.
    #[error("no answer came in time")]
    TimedOut,
}

/// Another server of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its number in the cluster, from 1.
    pub number: u64,
    /// Where it is reached: `host:port`.
    pub address: String,
    /// The id of its data folder.
    pub folder: [u8; 16],
}

/// A transport between servers, which knows each by its number and has checked who it is. A message from a server that
/// it does not admit is dropped.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Sends a message and waits for its answer. Cancel safe: the message may arrive all the same.
    async fn call(
        &self,
        to: u64,
        over: PeerConnection,
        request: PeerRequest,
        deadline: Duration,
    ) -> Result<Bytes, PeerError>;

    /// Called with all other servers of the cluster, at the start and when they change. A server that is missing was
    /// removed, or has not joined yet. Does not block.
    fn know(&self, peers: &[Peer]) {
        let _fixed = peers;
    }

    /// How far the clocks of the other servers are ahead of this server's, as of a few seconds ago, without those that
    /// cannot be reached; `None` if this transport compares no clocks, so that each server trusts its own. What is compared
    /// is the clock that the cluster was given, and not [`Cluster::now`](crate::Cluster::now), which is limited by the
    /// others' already.
    fn clock_offsets(&self) -> Option<Vec<ClockOffset>> {
        None
    }

    /// Opens a stream of chunks of its own, which other messages do not wait for.
    async fn stream(&self, to: u64, request: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError>;
}

/// A stream of chunks in both directions. A chunk arrives as it was sent, whole and in order, and has at most
/// [`STREAM_CHUNK_BYTES_MAX`](crate::limits::STREAM_CHUNK_BYTES_MAX). Dropped, it is closed.
#[async_trait]
pub trait PeerStream: Send + Sync + 'static {
    /// Sends a chunk, and waits until there is capacity for it.
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError>;

    /// Ends this direction: the other server receives `None` after the last chunk.
    async fn finish(&self) -> Result<(), PeerError>;

    /// Receives the next chunk; `None` after the last. Not cancel safe, and called by one task at a time.
    async fn recv(&self) -> Result<Option<Bytes>, PeerError>;
}
