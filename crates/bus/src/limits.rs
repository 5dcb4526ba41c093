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
/// After this long without an acknowledgement or a sign of life a delivery goes to another taker.
pub const IDLE_MS: u64 = 30_000;
/// When to try again after the bus was full.
pub const FULL_RETRY_MS: u64 = 1_000;
