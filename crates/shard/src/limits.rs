//! Named maxima of a shard. Units are in the names.

use std::time::Duration;

/// Commands that wait for a shard; one more is refused, or takes the place of one of a longer line.
pub const QUEUE_COMMANDS_MAX: usize = 4_096;
/// Commands that get in beyond that, because they end work that is under way.
pub const QUEUE_ESSENTIAL_MAX: usize = 4_096;
/// What a tenant may take of a shard before the next one has its turn: commands, and more for long ones.
pub const TURN_COST: usize = 64;
/// Bytes that a command may carry for the cost of another command.
pub const COST_BYTES: usize = 4_096;
/// Commands of one log entry.
pub const BATCH_COMMANDS_MAX: usize = 1_024;
/// A decision that is written as one entry even though a smaller batch would have made a shorter one, bytes.
pub const DECISION_BYTES_WANTED: usize = 8 * 1024 * 1024;
/// The largest decision of one command, bytes; below what the log takes as one record.
pub const DECISION_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How often a shard with several voters looks whether it still leads, while it waits for an entry.
pub const LEADER_LOOK: Duration = Duration::from_millis(100);
/// How long an entry's callers wait for a majority, before they are told that nobody knows.
pub const COMMIT_WAIT: Duration = Duration::from_secs(2);
/// A read of the log, bytes.
pub const LOG_READ_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Changed rows in memory that start a write to the state store, bytes.
pub const DIRTY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The log of one group that starts a purge, bytes.
pub const LOG_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// The log of one group that starts a purge, entries.
pub const LOG_ENTRIES_MAX: u64 = 200_000;
/// Entries that a purge leaves at most, for replicas that lag a little.
pub const LOG_ENTRIES_KEPT: u64 = 1_000;
/// Entries that a purge leaves at most, bytes.
pub const LOG_BYTES_KEPT: u64 = 16 * 1024 * 1024;
/// How often a replica looks at how much of its rows is not on disk, and how long its log is.
pub const UPKEEP_TICK: Duration = Duration::from_millis(250);
/// Looks at a shard at rest, one after the other, until its rows are written to the state store.
pub const PARKED_TICKS: u32 = 8;
/// The longest wait for rows to be on disk, before the log behind them is purged at a later tick.
pub const FLUSH_WAIT: Duration = Duration::from_secs(5);
/// Effects that a shard carries to others at once.
pub const RELAY_IN_FLIGHT_MAX: usize = 64;
/// Rows that one round of sweeping looks at.
pub const SWEEP_ROWS_MAX: usize = 256;
/// How long a leader leaves a row alone whose sweep was refused; twice as long after each further refusal.
pub const REFUSED_WAIT: Duration = Duration::from_secs(1);
/// The longest that it leaves one alone.
pub const REFUSED_WAIT_MAX: Duration = Duration::from_secs(5 * 60);
/// Refused rows that a leader remembers; of more, those whose time comes first are tried again sooner.
pub const REFUSED_MAX: usize = 10_000;
/// How often a leader says at most that rows are refused.
pub const REFUSED_TOLD: Duration = Duration::from_secs(60);
/// How often a leader looks at what is due, when nothing tells it to.
pub const DUTY_TICK: Duration = Duration::from_millis(250);
/// How often a stale answer of a ledger is asked for again before the caller is sent away.
pub const LIMITS_ASKED_MAX: usize = 4;
/// Shards of one server beside the catalogue.
pub const SHARDS_MAX: u32 = 64;
/// A piece of a snapshot on its way to another server, bytes.
pub const SNAPSHOT_PIECE_BYTES: usize = 1024 * 1024;
