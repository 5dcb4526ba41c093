//! When a message is tried again, and when an endpoint is left alone.

use jiff::fmt::rfc2822::DateTimeParser;
use std::time::Duration;

use crate::limits::{FAILING_MAX, RETRY_AFTER_MAX, SPREAD_PARTS};

/// How long each attempt waits after the one before it failed; the first goes out at once.
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
    /// An answer with this HTTP status, read to its end.
    Answered(u16),
    /// No answer: no connection, no trust in the certificate, not in time, broken off, or an address that is not allowed.
    Unanswered,
}

/// What an attempt means for its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It has arrived.
    Delivered,
    /// It has not, and is tried again as long as there are attempts left.
    Failed,
    /// Nobody is there any more: not tried again, and its endpoint is disabled.
    Gone,
}

impl Attempt {
    /// Any 2xx is an arrival and 410 the end. All else is tried again, so that whoever has set up an endpoint wrongly can
    /// mend it: a 3xx too, which is never followed.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Answered(200..=299) => Verdict::Delivered,
            Self::Answered(410) => Verdict::Gone,
            Self::Answered(_) | Self::Unanswered => Verdict::Failed,
        }
    }
}

/// How long to wait before an attempt, counted from 1; nothing where the message is given up.
///
/// A `retry_after` that the endpoint asked for makes the wait longer, by at most [`RETRY_AFTER_MAX`], and never shorter.
/// Every wait but the first is longer by up to one part in [`SPREAD_PARTS`], the same for the same `seed` and attempt, so
/// that messages that failed together do not come back together.
#[must_use]
pub fn wait(attempt: u32, retry_after: Option<Duration>, seed: u64) -> Option<Duration> {
    let at = usize::try_from(attempt.checked_sub(1)?).ok()?;
    let scheduled = *SCHEDULE.get(at)?;
    let asked = retry_after.filter(|_| at > 0).unwrap_or_default().min(RETRY_AFTER_MAX);
    let wait = scheduled.max(asked);
    let room = u64::try_from((wait / SPREAD_PARTS).as_millis()).unwrap_or(u64::MAX);
    Some(wait + Duration::from_millis(scattered(seed, attempt) % room.saturating_add(1)))
}

/// A number that looks like any other: the finishing steps of the generator SplitMix64.
fn scattered(seed: u64, attempt: u32) -> u64 {
    let mixed = seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// What the header `retry-after` asks for: a number of seconds, or a date. Nothing where it says neither, or a date that
/// has passed.
#[must_use]
pub fn retry_after(header: &str, now: Duration) -> Option<Duration> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too long to be read asks for as long as is believed.
        return Some(header.parse().map_or(RETRY_AFTER_MAX, Duration::from_secs));
    }
    let at = DateTimeParser::new().parse_timestamp(header).ok()?;
    let at = Duration::from_secs(u64::try_from(at.as_second()).ok()?);
    at.checked_sub(now)
}

/// How an endpoint does: all that has to be kept of what its messages went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndpointHealth {
    /// The first failure since the last success.
    pub failing_since: Option<Duration>,
    /// Why it is sent nothing, where it is.
    pub disabled: Option<Disabled>,
}

/// Why an endpoint is sent nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disabled {
    /// It answered 410.
    Gone,
    /// It has failed for [`FAILING_MAX`] without one success.
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
    /// How it does after one more attempt that ended `now`. One that is disabled stays so, until a person makes a
    /// [`default`](Self::default) of it again; a success of a message that was still under way is noted all the same.
    #[must_use]
    pub fn after(self, verdict: Verdict, now: Duration) -> Self {
        match verdict {
            Verdict::Delivered => Self { failing_since: None, ..self },
            Verdict::Gone => {
                let disabled = self.disabled.or(Some(Disabled::Gone));
                Self { failing_since: self.failing_since.or(Some(now)), disabled }
            }
            Verdict::Failed => {
                let since = self.failing_since.unwrap_or(now);
                let over = now.saturating_sub(since) >= FAILING_MAX;
                let disabled = self.disabled.or(over.then_some(Disabled::Failing));
                Self { failing_since: Some(since), disabled }
            }
        }
    }

    /// Whether messages may go to it.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.disabled.is_none()
    }
}
