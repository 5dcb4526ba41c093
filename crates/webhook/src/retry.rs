//! When a message is tried again, and when an endpoint is disabled.

use jiff::fmt::rfc2822::DateTimeParser;
use std::time::Duration;

use crate::limits::{FAILING_MAX, RETRY_AFTER_MAX, SPREAD_PARTS};

/// The delay of each attempt after the failure of the previous one; the first has none.
pub const SCHEDULE: [Duration; 8] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(5 * 3_600),
    Duration::from_secs(10 * 3_600),
    Duration::from_secs(10 * 3_600),
];

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// A complete answer with this HTTP status.
    Answered(u16),
    /// No answer: no connection, an untrusted certificate, a timeout, a broken connection, or a forbidden address.
    Unanswered,
}

/// What an attempt means for its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The endpoint has accepted it.
    Delivered,
    /// It was not delivered, and is tried again while attempts are left.
    Failed,
    /// The endpoint is gone: not tried again, and the endpoint is disabled.
    Gone,
}

impl Attempt {
    /// Any 2xx is a delivery, and 410 means gone. Anything else is tried again, so that a misconfigured endpoint can be
    /// repaired, including a 3xx, which is never followed.
    #[must_use]
    pub fn verdict(self) -> AttemptOutcome {
        match self {
            Self::Answered(200..=299) => AttemptOutcome::Delivered,
            Self::Answered(410) => AttemptOutcome::Gone,
            Self::Answered(_) | Self::Unanswered => AttemptOutcome::Failed,
        }
    }
}

/// Returns how long to wait before an attempt, counted from 1, or `None` if the message is given up.
///
/// The wait is at least `retry_after`, of which at most [`RETRY_AFTER_MAX`] counts. Every wait but the first has a jitter of
/// up to one part in [`SPREAD_PARTS`], deterministic by `seed` and attempt, so that messages that failed together are not
/// retried together.
#[must_use]
pub fn wait(attempt: u32, retry_after: Option<Duration>, seed: u64) -> Option<Duration> {
    let at = usize::try_from(attempt.checked_sub(1)?).ok()?;
    let scheduled = *SCHEDULE.get(at)?;
    let asked = retry_after.filter(|_| at > 0).unwrap_or_default().min(RETRY_AFTER_MAX);
    let wait = scheduled.max(asked);
    let spread = u64::try_from((wait / SPREAD_PARTS).as_millis()).unwrap_or(u64::MAX);
    Some(wait + Duration::from_millis(scattered(seed, attempt) % spread.saturating_add(1)))
}

/// A pseudo-random number: the finishing steps of the generator SplitMix64.
fn scattered(seed: u64, attempt: u32) -> u64 {
    let mixed = seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Parses the header `retry-after`: a number of seconds, or a date. Returns `None` if it is neither, or if the date has
/// passed.
#[must_use]
pub fn retry_after(header: &str, now: Duration) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too long to be read counts as the maximum.
        return Some(header.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs));
    }
    let at = DateTimeParser::new().parse_timestamp(header).ok()?;
    let at = Duration::from_secs(u64::try_from(at.as_second()).ok()?);
    at.checked_sub(now)
}

/// The health of an endpoint: the part of its delivery history that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointHealth {
    /// The first failure since the last success.
    pub failing_since: Option<Duration>,
    /// Why it is disabled; `None` if it is enabled.
    pub disabled: Option<Disabled>,
}

/// Why an endpoint is disabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disabled {
    /// It answered 410.
    Gone,
    /// It has failed for [`FAILING_MAX`] without a success.
    Failing,
}

impl Disabled {
    /// The reason's stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
        }
    }
}

impl EndpointHealth {
    /// Returns the health after one more attempt that ended `now`. A disabled endpoint stays so until a person resets it to
    /// the [`default`](Self::default); a later success of a pending message is still recorded.
    #[must_use]
    pub fn after(self, verdict: AttemptOutcome, now: Duration) -> Self {
        match verdict {
            AttemptOutcome::Delivered => Self { failing_since: None, ..self },
            AttemptOutcome::Gone => {
                let disabled = self.disabled.or(Some(Disabled::Gone));
                Self { failing_since: self.failing_since.or(Some(now)), disabled }
            }
            AttemptOutcome::Failed => {
                let since = self.failing_since.unwrap_or(now);
                let over = now.saturating_sub(since) >= FAILING_MAX;
                let disabled = self.disabled.or(over.then_some(Disabled::Failing));
                Self { failing_since: Some(since), disabled }
            }
        }
    }
}
