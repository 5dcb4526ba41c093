//! Backoff per destination. An unknown destination gets few effects at one time, more with each success and less with each
//! failure, so that one that hangs takes no capacity from others. One that keeps failing is left alone for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use switchward_machine::TenantId;
use tokio::time::Instant;

/// The highest level of a destination. At most `2^level` effects of one tenant may be in flight to it.
const LEVEL_MAX: u32 = 4;
/// The level of an unknown destination.
const LEVEL_FIRST: u32 = 1;
/// Failures in a row after which a destination is left alone for a while.
const TRIPPED: u32 = 5;
/// The first such pause; it doubles after each further failure.
const REST: Duration = Duration::from_secs(1);
/// The longest such pause.
const REST_MAX: Duration = Duration::from_secs(60);
/// These pauses, without an end.
const RESTS: ExponentialBuilder =
    ExponentialBuilder::new().with_min_delay(REST).with_max_delay(REST_MAX).without_max_times();
/// Destinations that are tracked; beyond it some become unknown again.
const DESTINATIONS_MAX: usize = 10_000;

/// A destination of a tenant's effects.
pub(super) type Destination = (TenantId, String);

struct Known {
    /// One more with each success, one less with each failure.
    level: u32,
    /// Failures in a row.
    failures: u32,
    /// The pauses that follow, once there were [`TRIPPED`] of them.
    rests: Option<ExponentialBackoff>,
    /// Until when it is left alone.
    until: Option<Instant>,
}

/// The recent state of each destination.
#[derive(Default)]
pub(super) struct Backoff(BTreeMap<Destination, Known>);

impl Backoff {
    /// Returns how many effects may be in flight to a destination.
    pub(super) fn limit(&self, destination: &Destination, now: Instant) -> usize {
        match self.0.get(destination) {
            None => 1 << LEVEL_FIRST,
            Some(known) if known.until.is_some_and(|until| now < until) => 0,
            Some(known) => 1 << known.level,
        }
    }

    /// Records a success.
    pub(super) fn succeeded(&mut self, destination: &Destination) {
        let known = self.known(destination);
        known.level = (known.level + 1).min(LEVEL_MAX);
        (known.failures, known.rests, known.until) = (0, None, None);
    }

    /// Records a failure.
    pub(super) fn failed(&mut self, destination: &Destination, now: Instant) {
        let known = self.known(destination);
        // Effects that were in flight together and fail together are one failure.
        if known.until.is_some_and(|until| now < until) {
            return;
        }
        known.level = known.level.saturating_sub(1);
        known.failures = known.failures.saturating_add(1);
        if known.failures >= TRIPPED {
            let rests = known.rests.get_or_insert_with(|| RESTS.build());
            known.until = Some(now + rests.next().unwrap_or(REST_MAX));
        }
    }

    fn known(&mut self, destination: &Destination) -> &mut Known {
        if self.0.len() >= DESTINATIONS_MAX && !self.0.contains_key(destination) {
            self.0.pop_first();
        }
        let unknown = Known { level: LEVEL_FIRST, failures: 0, rests: None, until: None };
        self.0.entry(destination.clone()).or_insert(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(name: &str) -> Destination {
        (TenantId(1), name.to_owned())
    }

    #[test]
    fn a_failing_destination_is_backed_off() {
        let (mut backoff, now, bad) = (Backoff::default(), Instant::now(), destination("hook bad"));
        let mut limits = Vec::new();
        for _ in 0..TRIPPED {
            backoff.succeeded(&bad);
            limits.push(backoff.limit(&bad, now));
        }
        assert_eq!(limits, [4, 8, 16, 16, 16]);
        limits.clear();
        for _ in 0..TRIPPED {
            limits.push(backoff.limit(&bad, now));
            backoff.failed(&bad, now);
        }
        assert_eq!(limits, [16, 8, 4, 2, 1]);
        let mut at = now;
        for wanted in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(backoff.limit(&bad, at), 0);
            assert_eq!(backoff.limit(&bad, at + Duration::from_secs(wanted) - Duration::from_millis(1)), 0);
            at += Duration::from_secs(wanted);
            assert_eq!(backoff.limit(&bad, at), 1, "after {wanted} s");
            backoff.failed(&bad, at);
            // A failure at the same time changes nothing.
            backoff.failed(&bad, at);
        }
        backoff.succeeded(&bad);
        assert_eq!(backoff.limit(&bad, at), 2);
    }

    #[test]
    fn a_destination_does_not_affect_others_or_that_of_another_tenant() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        for _ in 0..20 {
            backoff.failed(&destination("hook bad"), now);
        }
        assert_eq!(backoff.limit(&destination("hook good"), now), 2);
        assert_eq!(backoff.limit(&(TenantId(2), "hook bad".to_owned()), now), 2);
    }

    #[test]
    fn at_most_the_maximum_of_destinations_is_kept() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        for number in 0..=DESTINATIONS_MAX {
            backoff.failed(&destination(&number.to_string()), now);
        }
        assert_eq!(backoff.0.len(), DESTINATIONS_MAX);
    }
}
