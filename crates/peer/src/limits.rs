//! Named maxima of the transport. Sizes are in bytes unless the name says otherwise.

use std::time::Duration;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The body of a request or an answer on the control connection, and of the request that opens a stream.
pub const CONTROL_BODY_BYTES_MAX: usize = 64 * KIB;
/// The body of a request or an answer on the bulk connection, and on that for commands: one log entry may have 32 MiB.
pub const BULK_BODY_BYTES_MAX: usize = 40 * MIB;
/// The largest frame on a connection that carries a stream.
pub const STREAM_PIECE_BYTES_MAX: usize = 4 * MIB;
/// The first frame of either side, and the verdict on it.
pub const HELLO_BYTES_MAX: usize = 4 * KIB;
/// The text of a refusal.
pub const REASON_BYTES_MAX: usize = 512;

/// Requests to one server on the control connection that are not answered yet. One more is not sent.
pub const CONTROL_REQUESTS_MAX: usize = 4_096;
/// The same on the bulk connection, and on that for commands.
pub const BULK_REQUESTS_MAX: usize = 4_352;
/// Bytes of the bodies of requests to one server, for each class of traffic, that are not answered yet. One more is not sent.
pub const QUEUED_BYTES_MAX: usize = 96 * MIB;
/// A server that sends this many times its limit of requests or bytes does not keep to the protocol: its connection ends.
/// The margin covers answers that it has not read yet.
pub const INBOUND_FACTOR: usize = 2;
/// Frames are gathered into one write up to this size.
pub const WRITE_BYTES: usize = 64 * KIB;

/// Connections from other servers, including those whose handshake has not ended.
pub const INBOUND_CONNECTIONS_MAX: usize = 256;
/// Connections from others whose handshake has not ended. A server that starts is dialled by all others at once, by each for
/// each class of [`Traffic`](crate::Traffic).
pub const HANDSHAKES_MAX: usize = 96;
/// Connections for calls and reports of servers, gateways and delivery processes, to one server.
pub const CALL_CONNECTIONS_MAX: usize = 256;
/// Those of one server, gateway or delivery process.
pub const CALL_CONNECTIONS_PER_PEER_MAX: usize = 8;
/// Connections of one address whose handshake has not ended, or which are refused and wait for the other side to read why.
pub const HANDSHAKES_PER_ADDRESS_MAX: usize = 12;
/// Streams that one server has open to this one.
pub const STREAMS_PER_PEER_MAX: usize = 8;
/// Other servers that one server knows.
pub const PEERS_MAX: usize = 64;

/// How long it may take to connect, and then to make the TLS handshake and exchange the first frames.
pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(3);
/// How often each side of a connection sends a ping.
pub const PING_INTERVAL: Duration = Duration::from_millis(500);
/// How long nothing may come from the other side before a connection ends.
pub const IDLE_MAX: Duration = Duration::from_secs(3);
/// How long one write may make no progress on a connection for requests.
pub const WRITE_STALL: Duration = Duration::from_secs(30);
/// The same on a stream, whose receiver may be slow.
pub const STREAM_STALL: Duration = Duration::from_secs(300);
/// An answer to a ping that takes longer says nothing about the other server's clock.
pub const OFFSET_ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// The pings from which the clock offset is estimated.
pub const OFFSET_SAMPLES: usize = 16;

/// The first pause before another server is dialled again. It doubles from one failure to the next.
pub const RETRY_MIN: Duration = Duration::from_millis(20);
/// The longest pause.
pub const RETRY_MAX: Duration = Duration::from_secs(1);
/// The pause after the listener failed to accept a connection.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A server that has not been reached for this long is warned of.
pub const UNREACHED_WARN: Duration = Duration::from_secs(10);
/// A lasting failure is logged again after this long.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// Failures that are remembered so that they are not logged again.
pub const REPORTS_MAX: usize = 256;

/// The days for which a certificate is valid at most.
pub const CERTIFICATE_DAYS_MAX: u32 = 36_500;
/// The name of a gateway or a delivery process.
pub const PROCESS_NAME_CHARS_MAX: usize = 40;
/// The names of a certificate beside the server's own.
pub const CERTIFICATE_HOSTS_MAX: usize = 64;
