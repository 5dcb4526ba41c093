//! Named maxima of the bus. Units are in the names.

/// Envelopes of one stream that were not acknowledged yet, waiting and taken together. Beyond it publishing is refused.
pub const STREAM_ENVELOPES_MAX: usize = 10_000;
/// Bytes of the bodies of one stream that were not acknowledged yet. Beyond it publishing is refused.
pub const STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The body of one envelope: the largest input that work may have, and as much again for what is told around it.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The id of one envelope.
pub const ID_BYTES_MAX: usize = 256;
/// The name of a consumer.
pub const CONSUMER_BYTES_MAX: usize = 128;
/// Envelopes of one take; a taker that asks for more gets this many.
pub const TAKE_MAX: usize = 256;
/// How long one take waits; a taker that would wait longer waits this long.
pub const WAIT_MS_MAX: u64 = 60_000;
/// The longest that a consumer is silent about what it holds: the time between two signs of life of one that gives them,
/// a whole attempt of one that does not.
pub const SILENCE_MS: u64 = 8_000;
/// Beside the silences themselves: what a sign of life may need on its way.
pub const IDLE_SPARE_MS: u64 = 6_000;
/// After this long without an acknowledgement or a sign of life a delivery goes to another taker.
pub const IDLE_MS: u64 = idle_ms(SILENCE_MS);

/// The idle time of a bus whose consumers are silent for at most so long, milliseconds: two signs of life in a row may be
/// lost before a delivery goes to somebody else. It says nothing of how long an attempt may take, as every sign of life
/// begins it anew; a consumer without signs must be silent for no longer than its whole attempt.
#[must_use]
pub const fn idle_ms(silence_ms: u64) -> u64 {
    silence_ms.saturating_mul(3).saturating_add(IDLE_SPARE_MS)
}

/// When to try again after the bus was full.
pub const FULL_RETRY_MS: u64 = 1_000;

/// What a server that shares its bus with others puts before the names of its streams.
pub const PREFIX_BYTES_MAX: usize = 64;
/// How long one command to Redis may take; a wait may take as long as it waits, and this long.
pub const RESPONSE_MS: u64 = 5_000;
/// How long it may take to connect to Redis, TLS and password included.
pub const CONNECT_MS: u64 = 3_000;
/// How long one wait in Redis lasts; then it is looked whether a delivery of others has become due. Shorter where the
/// idle time is short.
pub const BLOCK_MS_MAX: u64 = 1_000;
/// The first pause after Redis could not be reached. It doubles from one failure to the next.
pub const BACKOFF_MS: u64 = 100;
/// The longest pause between two tries to reach Redis.
pub const BACKOFF_MS_MAX: u64 = 5_000;
/// When to try again what Redis was reached for and refused, or did not answer.
pub const REFUSED_RETRY_MS: u64 = 1_000;
/// How long is waited before a consumer group that was lost while it was waited for is made again.
pub const REGROUP_MS: u64 = 100;
/// What is wrong with Redis is told again in the log after this long.
pub const TOLD_AGAIN_MS: u64 = 600_000;
/// A consumer that holds nothing is forgotten after this long without a sign of life.
pub const CONSUMER_GONE_MS: u64 = 3_600_000;
/// How often it is looked for such consumers.
pub const SWEEP_MS: u64 = 600_000;
/// Connections for waiting that are kept while nobody waits.
pub const SPARE_CONNECTIONS_MAX: usize = 16;
/// Commands that wait for their turn on the connection that all share. Beyond it callers wait.
pub const COMMANDS_MAX: usize = 1_024;
/// Receipts of one command to Redis; more go in several.
pub const RECEIPTS_MAX: usize = 1_000;
