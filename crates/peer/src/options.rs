//! What a server's end of the transport needs to start.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::hello::Hello;
use crate::limits;
use crate::tls::TlsPem;

/// A wall clock: milliseconds since 1970.
pub type WallClock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What [`Peers::start`](crate::Peers::start) needs.
#[derive(Clone)]
pub struct PeerOptions {
    /// The address to listen on; port 0 for any free port.
    pub listen: SocketAddr,
    /// The identity that this server sends.
    pub hello: Hello,
    /// Its certificate, and the authority that signs the others'.
    pub tls: TlsPem,
    /// The wall clock that pings carry.
    pub clock: WallClock,
    /// The runtime on which connections and handlers run.
    pub runtime: Handle,
    /// The runtime on which connections for [`Traffic::Commands`](crate::Traffic::Commands) run instead.
    pub commands: Handle,
    /// The limits; tests shorten them.
    pub limits: PeerLimits,
}

/// The limits that can be set, mainly by tests. All servers of a cluster must have the same limits of bodies and requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLimits {
    /// See [`limits::CONTROL_BODY_BYTES_MAX`].
    pub control_body_bytes: usize,
    /// See [`limits::BULK_BODY_BYTES_MAX`].
    pub bulk_body_bytes: usize,
    /// See [`limits::CONTROL_REQUESTS_MAX`].
    pub control_requests: usize,
    /// See [`limits::BULK_REQUESTS_MAX`].
    pub bulk_requests: usize,
    /// See [`limits::QUEUED_BYTES_MAX`].
    pub queued_bytes: usize,
    /// See [`limits::INBOUND_CONNECTIONS_MAX`].
    pub inbound_connections: usize,
    /// See [`limits::HANDSHAKES_MAX`].
    pub handshakes: usize,
    /// See [`limits::HANDSHAKES_PER_ADDRESS_MAX`].
    pub handshakes_per_address: usize,
    /// See [`limits::CALL_CONNECTIONS_PER_PEER_MAX`].
    pub call_connections_per_peer: usize,
    /// See [`limits::STREAMS_PER_PEER_MAX`].
    pub streams_per_peer: usize,
    /// See [`limits::HANDSHAKE_WAIT`].
    pub handshake: Duration,
    /// See [`limits::PING_INTERVAL`].
    pub ping_interval: Duration,
    /// See [`limits::IDLE_MAX`].
    pub idle: Duration,
    /// See [`limits::RETRY_MAX`].
    pub retry_max: Duration,
}

impl Default for PeerLimits {
    fn default() -> Self {
        Self {
            control_body_bytes: limits::CONTROL_BODY_BYTES_MAX,
            bulk_body_bytes: limits::BULK_BODY_BYTES_MAX,
            control_requests: limits::CONTROL_REQUESTS_MAX,
            bulk_requests: limits::BULK_REQUESTS_MAX,
            queued_bytes: limits::QUEUED_BYTES_MAX,
            inbound_connections: limits::INBOUND_CONNECTIONS_MAX,
            handshakes: limits::HANDSHAKES_MAX,
            handshakes_per_address: limits::HANDSHAKES_PER_ADDRESS_MAX,
            call_connections_per_peer: limits::CALL_CONNECTIONS_PER_PEER_MAX,
            streams_per_peer: limits::STREAMS_PER_PEER_MAX,
            handshake: limits::HANDSHAKE_WAIT,
            ping_interval: limits::PING_INTERVAL,
            idle: limits::IDLE_MAX,
            retry_max: limits::RETRY_MAX,
        }
    }
}
