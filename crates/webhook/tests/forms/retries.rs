//! When a message is tried again, and when an endpoint is disabled.

use proptest::prelude::*;
use std::time::Duration;
use switchward_webhook::limits::{FAILING_MAX, RETRY_AFTER_MAX, SPREAD_PARTS};
use switchward_webhook::retry::{
    Attempt, AttemptOutcome, Disabled, EndpointHealth, SCHEDULE, retry_after, wait,
};

const NOW: Duration = Duration::from_secs(784_111_777);

#[test]
fn the_schedule_goes_over_a_day_and_ends() {
    let seconds: Vec<u64> = SCHEDULE.iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]);
    assert_eq!(wait(1, None, 7), Some(Duration::ZERO));
    assert_eq!(wait(1, Some(RETRY_AFTER_MAX), 7), Some(Duration::ZERO));
    for attempt in [0, 9, u32::MAX] {
        assert_eq!(wait(attempt, None, 7), None);
    }
}

#[test]
fn only_an_arrival_is_an_arrival() {
    for status in 0..=999_u16 {
        let wanted = match status {
            200..=299 => AttemptOutcome::Delivered,
            410 => AttemptOutcome::Gone,
            _ => AttemptOutcome::Failed,
        };
        assert_eq!(Attempt::Answered(status).verdict(), wanted, "{status}");
    }
    assert_eq!(Attempt::Unanswered.verdict(), AttemptOutcome::Failed);
}

#[test]
fn a_retry_after_is_seconds_or_a_date() {
    assert_eq!(retry_after("120", NOW), Some(Duration::from_secs(120)));
    assert_eq!(retry_after(" 0 ", NOW), Some(Duration::ZERO));
    assert_eq!(retry_after("99999999999999999999999", NOW), Some(RETRY_AFTER_MAX));
    assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:37 GMT", NOW), Some(Duration::from_secs(60)));
    for none in
        ["Sun, 06 Nov 1994 08:48:37 GMT", "", "soon", "-1", "1.5", "Sun, 99 Nov 1994 08:50:37 GMT", "٣"]
    {
        assert_eq!(retry_after(none, NOW), None, "{none:?}");
    }
}

#[test]
fn an_endpoint_that_fails_for_five_days_is_disabled() {
    let fresh = EndpointHealth::default();
    let failing = fresh.after(AttemptOutcome::Failed, NOW);
    assert!(failing.disabled.is_none() && failing.failing_since == Some(NOW));
    let second = Duration::from_secs(1);
    let nearly = failing.after(AttemptOutcome::Failed, NOW + FAILING_MAX - second);
    assert!(nearly.disabled.is_none());
    let over = nearly.after(AttemptOutcome::Failed, NOW + FAILING_MAX);
    assert_eq!(over.disabled, Some(Disabled::Failing));
    assert_eq!(
        over.after(AttemptOutcome::Delivered, NOW + FAILING_MAX + second).disabled,
        Some(Disabled::Failing)
    );
    let saved = nearly.after(AttemptOutcome::Delivered, NOW + FAILING_MAX - second);
    assert_eq!(saved, fresh);
    assert!(saved.after(AttemptOutcome::Failed, NOW + FAILING_MAX).disabled.is_none());
    let gone = fresh.after(AttemptOutcome::Gone, NOW);
    assert_eq!(gone.disabled, Some(Disabled::Gone));
    assert_eq!(gone.after(AttemptOutcome::Failed, NOW + FAILING_MAX).disabled, Some(Disabled::Gone));
}

proptest! {
    #[test]
    fn a_wait_is_never_shorter_than_asked_and_little_longer(
        attempt in 2_u32..=8,
        asked in prop::option::of(0_u64..200_000),
        seed in any::<u64>(),
    ) {
        let asked = asked.map(Duration::from_secs);
        let found = wait(attempt, asked, seed).unwrap();
        let scheduled = SCHEDULE[usize::try_from(attempt).unwrap() - 1];
        let least = scheduled.max(asked.unwrap_or_default().min(RETRY_AFTER_MAX));
        prop_assert!(found >= least && found <= least + least / SPREAD_PARTS);
        prop_assert_eq!(Some(found), wait(attempt, asked, seed));
    }

    #[test]
    fn an_endpoint_is_disabled_exactly_by_410_or_five_days_without_success(
        steps in prop::collection::vec((0_u64..100_000, 0_u8..20), 1..60),
    ) {
        let (mut health, mut now) = (EndpointHealth::default(), NOW);
        let (mut since, mut wanted) = (None, false);
        for (later, what) in steps {
            now += Duration::from_secs(later);
            let verdict = match what {
                0 => AttemptOutcome::Gone,
                1 => AttemptOutcome::Delivered,
                _ => AttemptOutcome::Failed,
            };
            health = health.after(verdict, now);
            since = if verdict == AttemptOutcome::Delivered { None } else { since.or(Some(now)) };
            let failed = verdict == AttemptOutcome::Failed && since.is_some_and(|since| now - since >= FAILING_MAX);
            wanted = wanted || verdict == AttemptOutcome::Gone || failed;
            prop_assert_eq!(health.disabled.is_some(), wanted);
        }
    }
}

#[test]
fn messages_that_failed_together_come_back_apart() {
    let waits: std::collections::BTreeSet<Duration> =
        (0..1_000).map(|seed| wait(5, None, seed).unwrap()).collect();
    assert!(waits.len() > 900, "{}", waits.len());
}
