//! Rows and views as the messages that callers see.

pub(crate) mod effects;
pub(crate) mod events;
pub(crate) mod gates;
pub(crate) mod json;
pub(crate) mod keys;
pub(crate) mod positions;
pub(crate) mod sessions;

use switchward_api::v1;
use switchward_machine::{Micros, Time};
use switchward_state::catalogue::Role;

use crate::error::Refusal;

/// The last millisecond of the year 9999. `google.protobuf.Timestamp` ends there, and a later time has no JSON.
pub(crate) const TIME_MAX: Time = Time(253_402_300_799_999);

const NANOS_OF_A_SECOND: i32 = 1_000_000_000;
/// The longest `google.protobuf.Duration`, seconds: about 10,000 years.
const DURATION_SECONDS_MAX: u64 = 315_576_000_000;

/// A time as a message.
pub(crate) fn timestamp(time: Time) -> prost_types::Timestamp {
    let time = time.min(TIME_MAX);
    let seconds = i64::try_from(time.0 / 1000).unwrap_or(i64::MAX);
    let nanos = i32::try_from(time.0 % 1000).unwrap_or(0) * 1_000_000;
    prost_types::Timestamp { seconds, nanos }
}

/// A time as text, like `2028-02-29T23:59:59.999Z`.
pub(crate) fn rfc3339(time: Time) -> String {
    let ms = i64::try_from(time.min(TIME_MAX).0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default()
}

/// A time from its text, to the millisecond.
///
/// # Errors
/// FIELD_INVALID for what is none.
pub(crate) fn read_rfc3339(field: &str, text: &str) -> Result<Time, Refusal> {
    let read = text.parse::<jiff::Timestamp>().ok().and_then(|at| u64::try_from(at.as_millisecond()).ok());
    let bad = || Refusal::field(field, format!("{text:?} is not a time like 2026-01-31T12:00:00Z"));
    read.map(Time).filter(|time| *time <= TIME_MAX).ok_or_else(bad)
}

/// A time of a message, to the millisecond.
pub(crate) fn time(field: &str, timestamp: prost_types::Timestamp) -> Result<Time, Refusal> {
    let read = || {
        let seconds = u64::try_from(timestamp.seconds).ok()?;
        let nanos = u64::try_from(timestamp.nanos).ok().filter(|_| timestamp.nanos < NANOS_OF_A_SECOND)?;
        let ms = seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000)?;
        Some(Time(ms)).filter(|time| *time <= TIME_MAX)
    };
    read().ok_or_else(|| Refusal::field(field, "must be a time from 1970 to 9999"))
}

/// Returns a duration in milliseconds; `None` if it is negative or not valid, or longer than a `google.protobuf.Duration` may
/// be: the JSON form has no longer ones, so what was accepted could not be shown.
pub(crate) fn ms_of(duration: prost_types::Duration) -> Option<u64> {
    let nanos = u64::try_from(duration.nanos).ok().filter(|_| duration.nanos < NANOS_OF_A_SECOND)?;
    let seconds = u64::try_from(duration.seconds).ok().filter(|seconds| *seconds < DURATION_SECONDS_MAX)?;
    seconds.checked_mul(1000)?.checked_add(nanos / 1_000_000)
}

/// The value of an enum. One that the API does not have is refused: what it might have meant must not become the
/// default in silence.
pub(crate) fn known<E: TryFrom<i32>>(field: &str, value: i32) -> Result<E, Refusal> {
    E::try_from(value).map_err(|_| Refusal::field(field, format!("has no value {value}")))
}

/// Milliseconds as a message.
pub(crate) fn duration(ms: u64) -> prost_types::Duration {
    let nanos = i32::try_from(ms % 1000).unwrap_or(0) * 1_000_000;
    prost_types::Duration { seconds: i64::try_from(ms / 1000).unwrap_or(i64::MAX), nanos }
}

/// A reported or estimated amount of money; what is finer than a micro is rounded up.
pub(crate) fn reported(field: &str, text: Option<&str>) -> Result<Option<Micros>, Refusal> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    Micros::rounded_up(text).map(Some).map_err(|error| Refusal::field(field, format!("is {error}")))
}

/// What a key may do.
pub(crate) fn role(role: Role) -> v1::KeyRole {
    match role {
        Role::Agent => v1::KeyRole::Agent,
        Role::Author => v1::KeyRole::Author,
        Role::Approver => v1::KeyRole::Approver,
        Role::Operator => v1::KeyRole::Operator,
        Role::Admin => v1::KeyRole::Admin,
        Role::Worker => v1::KeyRole::Worker,
        Role::Integration => v1::KeyRole::Integration,
        Role::Server => v1::KeyRole::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use super::ms_of;

    #[test]
    fn durations_that_their_json_form_cannot_hold_are_refused() {
        let of = |seconds, nanos| ms_of(prost_types::Duration { seconds, nanos });
        assert_eq!(of(315_575_999_999, 999_999_999), Some(315_575_999_999_999));
        for (seconds, nanos) in [(315_576_000_000, 0), (i64::MAX, 0), (-1, 0), (0, -1), (1, 1_000_000_000)] {
            assert_eq!(of(seconds, nanos), None, "{seconds} s and {nanos} ns");
        }
    }
}
