//! Named maxima of the bus. Units are in the names.

/// Envelopes of one stream that were not acknowledged yet, waiting and taken together. Beyond it publishing is refused.
pub const STREAM_ENVELOPES_MAX: usize = 10_000;
/// Bytes of the bodies of one stream that were not acknowledged yet. Beyond it publishing is refused.
pub const STREAM_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The body of one envelope: the largest input of work, and as much again for the other fields of a job.
pub const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The id of one envelope.
pub const ID_BYTES_MAX: usize = 256;
/// The name of a consumer.
pub const CONSUMER_BYTES_MAX: usize = 128;
/// Envelopes of one take; a taker that asks for more gets this many.
pub const TAKE_MAX: usize = 256;
/// How long one take waits; a taker that would wait longer waits this long.
pub const WAIT_MS_MAX: u64 = 60_000;
/// The longest silence of a consumer about its deliveries: the time between two heartbeats, or a whole attempt of one that
/// sends none.
pub const SILENCE_MS: u64 = 8_000;
/// The extra time that a heartbeat may need on its way.
pub const IDLE_SPARE_MS: u64 = 6_000;
/// After this long without an acknowledgement or a heartbeat a delivery goes to another taker.
pub const IDLE_MS: u64 = idle_ms(SILENCE_MS);

/// Returns the idle time of a bus whose consumers are silent for at most `silence_ms`, milliseconds: two heartbeats in a row
/// may be lost before a delivery goes to another consumer. It does not limit an attempt, as every heartbeat restarts it; for
/// a consumer without heartbeats, the silence is its whole attempt.
#[must_use]
pub const fn idle_ms(silence_ms: u64) -> u64 {
    silence_ms.saturating_mul(3).saturating_add(IDLE_SPARE_MS)
}

/// How long an id is taken after its envelope was published or last kept, unless it is acknowledged before.
pub const ID_KNOWN_MS: u64 = 100_000;
/// Counters in which one id is counted together.
pub const COUNTERS_MAX: usize = 8;
/// The name of a counter.
pub const COUNTER_BYTES_MAX: usize = 128;
/// How long a counter is kept after something was counted in it: it counts for an hour, and an hour may last longer on a server
/// whose time is ahead of its clock.
pub const COUNTED_MS: u64 = 7_200_000;
/// Ids in all counters of a bus in memory. Beyond it the counters that would be forgotten first are forgotten now.
pub const COUNTED_IDS_MAX: usize = 500_000;
/// One answer to a caller that waits.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long an answer is kept that nobody takes.
pub const ANSWER_KEPT_MS: u64 = 60_000;
/// Answers that a bus in memory keeps. Beyond it the one that would be forgotten first is forgotten now.
pub const ANSWERS_MAX: usize = 1_000;
/// When to try again after the bus was full.
pub const FULL_RETRY_MS: u64 = 1_000;

/// The prefix of stream names on a shared Redis.
pub const PREFIX_BYTES_MAX: usize = 64;
/// How long one command to Redis may take; a wait may take as long as it waits, and this long.
pub const RESPONSE_MS: u64 = 5_000;
/// How long it may take to connect to Redis, TLS and password included.
pub const CONNECT_MS: u64 = 3_000;
/// How long one blocking read in Redis lasts; then due redeliveries are checked. Shorter if the idle time is short.
pub const BLOCK_MS_MAX: u64 = 1_000;
/// The first pause after Redis could not be reached. It doubles from one failure to the next.
pub const BACKOFF_MS: u64 = 100;
/// The longest pause between two attempts to reach Redis.
pub const BACKOFF_MS_MAX: u64 = 5_000;
/// When to try again after Redis refused a command or did not answer.
pub const REFUSED_RETRY_MS: u64 = 1_000;
/// The pause before a consumer group that was lost during a blocking read is created again.
pub const REGROUP_MS: u64 = 100;
/// A lasting fault of Redis is logged again after this long.
pub const REPORT_INTERVAL_MS: u64 = 600_000;
/// A consumer without deliveries is deleted after this long without a command.
pub const CONSUMER_GONE_MS: u64 = 3_600_000;
/// How often such consumers are swept.
pub const SWEEP_MS: u64 = 600_000;
/// Idle connections for blocking reads.
pub const SPARE_CONNECTIONS_MAX: usize = 16;
/// Commands in the queue of the shared connection. Beyond it callers wait.
pub const COMMANDS_MAX: usize = 1_024;
/// Receipts of one command to Redis; more are split.
pub const RECEIPTS_MAX: usize = 1_000;
