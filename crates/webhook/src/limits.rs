//! Named maxima. Units are in the names or in the type.

use std::time::Duration;

/// Random bytes of a signing secret at least.
pub const SECRET_BYTES_MIN: usize = 24;
/// Random bytes of a signing secret at most.
pub const SECRET_BYTES_MAX: usize = 64;
/// Characters of a secret that is a text, as GitHub, Stripe and Slack have it and bearer tokens are, at least.
pub const SECRET_TEXT_CHARS_MIN: usize = 16;
/// Characters of a secret that is a text at most.
pub const SECRET_TEXT_CHARS_MAX: usize = 256;
/// Characters of a challenge that a sender is given back.
pub const CHALLENGE_CHARS_MAX: usize = 1_024;
/// Secrets that are active at one time: the one of now, and the one before it while it is rotated out.
pub const SECRETS_ACTIVE_MAX: usize = 2;

/// How far a message's timestamp may be from now, either way.
pub const TOLERANCE: Duration = Duration::from_secs(5 * 60);
/// Digits of a timestamp in seconds.
pub const TIMESTAMP_DIGITS_MAX: usize = 12;
/// The value of one header that is looked at, bytes.
pub const HEADER_BYTES_MAX: usize = 4_096;
/// Signatures of one message that are looked at; a message with more is refused.
pub const SIGNATURES_MAX: usize = 16;
/// The id of a message, bytes.
pub const ID_BYTES_MAX: usize = 255;
/// A body that is verified, bytes. The caller refuses larger ones before.
pub const IN_BODY_BYTES_MAX: usize = 256 * 1024;

/// A body that goes out, bytes: a message names what happened, whoever wants more asks for it.
pub const OUT_BODY_BYTES_MAX: usize = 20_000;
/// Links of one message.
pub const LINKS_MAX: usize = 16;
/// Entries of one endpoint's list of event types.
pub const FILTERS_MAX: usize = 64;

/// How much of a `retry-after` is believed.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);
/// How long an endpoint may fail without one success until it is disabled.
pub const FAILING_MAX: Duration = Duration::from_secs(5 * 24 * 3_600);
/// How much later than its schedule a retry may be, as a share of its delay: one part of this many.
pub const SPREAD_PARTS: u32 = 10;
