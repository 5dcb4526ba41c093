//! Calendar periods of UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use switchward_machine::{Period, Time};

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// When the period that `now` lies in began.
#[must_use]
pub(crate) fn start(period: Period, now: Time) -> Time {
    match period {
        Period::Hour => Time(now.0 - now.0 % HOUR_MS),
        Period::Day => Time(now.0 - now.0 % DAY_MS),
        Period::Month => month(now, false),
    }
}

/// When the next period begins.
#[must_use]
pub(crate) fn next(period: Period, now: Time) -> Time {
    match period {
        Period::Hour => start(period, now).after_ms(HOUR_MS),
        Period::Day => start(period, now).after_ms(DAY_MS),
        Period::Month => month(now, true),
    }
}

/// The first of this month, or of the next. Beyond what the calendar knows there is one endless period.
fn month(now: Time, next: bool) -> Time {
    let first = || {
        let at = Timestamp::from_millisecond(i64::try_from(now.0).ok()?).ok()?;
        let date = at.to_zoned(TimeZone::UTC).date();
        let first = if next { date.last_of_month().tomorrow().ok()? } else { date.first_of_month() };
        u64::try_from(first.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond()).ok()
    };
    Time(first().unwrap_or(if next { u64::MAX } else { 0 }))
}

/// A time as people and programs read it, in UTC; empty beyond what the calendar knows.
#[must_use]
pub fn time_text(at: Time) -> String {
    let at = i64::try_from(at.0).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map(|at| at.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        Time(text.parse::<Timestamp>().unwrap().as_millisecond().try_into().unwrap())
    }

    #[test]
    fn periods_begin_and_end_with_the_calendar_of_utc() {
        let now = at("2028-02-29T23:59:59.999Z");
        for (period, begin, end) in [
            (Period::Hour, "2028-02-29T23:00:00Z", "2028-03-01T00:00:00Z"),
            (Period::Day, "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"),
            (Period::Month, "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ] {
            assert_eq!((start(period, now), next(period, now)), (at(begin), at(end)));
            assert_eq!(start(period, at(end)), at(end));
        }
        assert_eq!(start(Period::Month, Time(u64::MAX)), Time(0));
        assert_eq!(time_text(at("2028-02-29T00:00:00Z")), "2028-02-29T00:00:00Z");
        assert_eq!(time_text(Time(u64::MAX)), "");
    }
}
