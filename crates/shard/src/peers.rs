//! Raft between servers: the messages, the network that sends them, and what answers them.
//!
//! A transport between servers implements [`Transport`]. [`RaftPeers`] gives each group its network over it, and
//! [`RaftHandler`] answers what arrives. Nothing else of this crate sends anything to another server.

pub mod codec;
mod heartbeat;
mod kind;
mod network;
mod pace;
mod pipeline;
mod receive;
mod send;
mod serve;
mod succession;
mod transport;

pub use network::{RaftLink, RaftNetwork, RaftPeers};
pub use serve::RaftHandler;
pub use transport::{Peer, PeerConnection, PeerError, PeerRequest, PeerStream, Transport};
