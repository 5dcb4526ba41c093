//! Named maxima. Units are in the names or in the type.

use std::time::Duration;

/// Random bytes of a signing secret at least.
pub const SECRET_BYTES_MIN: usize = 24;
/// Random bytes of a signing secret at most.
pub const SECRET_BYTES_MAX: usize = 64;
/// Characters of a text secret, such as those of GitHub, Stripe and Slack and bearer tokens, at least.
pub const SECRET_TEXT_CHARS_MIN: usize = 16;
/// Characters of a text secret at most.
pub const SECRET_TEXT_CHARS_MAX: usize = 256;
/// Characters of a challenge that is returned to a sender.
pub const CHALLENGE_CHARS_MAX: usize = 1_024;
/// Active secrets: the current one, and the previous one during a rotation.
pub const SECRETS_ACTIVE_MAX: usize = 2;

/// How far a message's timestamp may be from now, either way.
pub const TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// Digits of a timestamp in seconds.
pub const TIMESTAMP_DIGITS_MAX: usize = 12;
/// The value of one header, bytes.
pub const HEADER_BYTES_MAX: usize = 4_096;
/// Signatures of one message; a message with more is refused.
pub const SIGNATURES_MAX: usize = 16;
/// The id of a message, bytes.
pub const ID_BYTES_MAX: usize = 255;
/// A body that is verified, bytes. The caller refuses larger ones earlier.
pub const IN_BODY_BYTES_MAX: usize = 256 * 1024;

/// An outgoing body, bytes: a message names what happened, and receivers request the details.
pub const OUT_BODY_BYTES_MAX: usize = 20_000;
/// Links of one message.
pub const LINKS_MAX: usize = 16;
/// Entries of one endpoint's list of event types.
pub const FILTERS_MAX: usize = 64;

/// The longest accepted `retry-after`.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How long an endpoint may fail without a success until it is disabled.
pub const FAILING_MAX: Duration = Duration::from_secs(5 * 24 * 3_600);
/// The jitter of a retry: at most one part in this many of its delay.
pub const SPREAD_PARTS: u32 = 10;
