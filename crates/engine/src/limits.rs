//! Named maxima of the engine's state and of what comes in. Units are in the names.

/// Open gates of one session; one more is QUOTA_EXCEEDED.
pub const OPENS_MAX: usize = 100;
/// Calls of one session that are permitted and not yet reported, and that the state remembers. Beyond it a call
/// that reserves nothing is not remembered, one that reserves money is QUOTA_EXCEEDED.
pub const CALLS_OPEN_MAX: usize = 1_000;
/// Grants of one session that are not yet used; one more is QUOTA_EXCEEDED.
pub const GRANTS_MAX: usize = 1_000;
/// Replies that a session remembers; beyond it the oldest goes.
pub const REQUESTS_MAX: usize = 128;
/// How long a reply is remembered after its session's end, and a ledger's after it was given, milliseconds.
pub const REQUESTS_KEPT_MS: u64 = 24 * HOUR_MS;
/// How long an approved call may wait to be made, milliseconds.
pub const GRANT_KEPT_MS: u64 = 24 * HOUR_MS;
/// How long a permitted call may hold its reservation without a report, milliseconds.
pub const CALL_KEPT_MS: u64 = 24 * HOUR_MS;
/// How long a reservation may be decided on, milliseconds. Far below [`RESERVATION_LAPSE_MS`], so that a permit
/// is never given on a reservation that has lapsed.
pub const RESERVATION_USABLE_MS: u64 = 60_000;
/// When a reservation that nobody confirmed is given back, milliseconds.
pub const RESERVATION_LAPSE_MS: u64 = 10 * 60_000;
/// Reservations of one ledger row that are neither confirmed nor released.
pub const RESERVATIONS_MAX: usize = 10_000;
/// Nodes that one run may enter without anything from outside.
pub const ENTRIES_MAX: u32 = 1_000;
/// A request id, characters.
pub const REQUEST_ID_CHARS_MAX: usize = 128;
/// A call id, characters.
pub const CALL_ID_CHARS_MAX: usize = 128;
/// The same, bytes: a character is at most four.
pub const CALL_ID_BYTES_MAX: usize = 512;
/// The arguments of a call, bytes of JSON.
pub const ARGS_BYTES_MAX: usize = 256 * 1024;
/// Nesting of the arguments of a call.
pub const ARGS_DEPTH_MAX: usize = 64;
/// A note, a comment or a reason, bytes.
pub const NOTE_BYTES_MAX: usize = 16 * 1024;
/// The input of a start, bytes of JSON.
pub const INPUT_BYTES_MAX: usize = 256 * 1024;
/// Labels of a session.
pub const LABELS_MAX: usize = 64;
/// A label's key or value, bytes.
pub const LABEL_BYTES_MAX: usize = 256;
/// Commands of one batch.
pub const BATCH_COMMANDS_MAX: usize = 1_024;
/// Versions of one definition.
pub const VERSIONS_MAX: u32 = 100_000;
/// The source of one definition, bytes.
pub const SOURCE_BYTES_MAX: usize = 1024 * 1024;

const HOUR_MS: u64 = 3_600_000;
