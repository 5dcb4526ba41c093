//! How the places do to which effects go. One that nobody knows yet gets little at one time, more with each success, and less
//! with each failure, so that one that hangs takes nothing from the others; one that fails again and again is left alone.

use std::collections::BTreeMap;
use std::time::Duration;

use switchward_machine::TenantId;
use tokio::time::Instant;

/// The highest level of a place. Two to the power of its level is how many effects of one tenant may be out to it at one time.
const LEVEL_MAX: u32 = 4;
/// The level of a place that nobody knows.
const LEVEL_FIRST: u32 = 1;
/// Failures in a row after which a place is left alone for a while.
const TRIPPED: u32 = 5;
/// For how long at first; twice as long after each further failure.
const REST: Duration = Duration::from_secs(1);
/// For how long at most.
const REST_MAX: Duration = Duration::from_secs(60);
/// Places of which it is kept how they do; beyond it some are taken for unknown ones.
const PLACES_MAX: usize = 10_000;

/// A place where effects of a tenant go.
pub(super) type Place = (TenantId, String);

struct Known {
    /// One more with each success, one less with each failure.
    level: u32,
    /// Failures in a row.
    failures: u32,
    /// Until when it is left alone.
    until: Option<Instant>,
}

/// The places of late.
#[derive(Default)]
pub(super) struct Places(BTreeMap<Place, Known>);

impl Places {
    /// How many effects may be out to a place at one time.
    pub(super) fn room(&self, place: &Place, now: Instant) -> usize {
        match self.0.get(place) {
            None => 1 << LEVEL_FIRST,
            Some(known) if known.until.is_some_and(|until| now < until) => 0,
            Some(known) => 1 << known.level,
        }
    }

    /// It took something.
    pub(super) fn took(&mut self, place: &Place) {
        let known = self.known(place);
        known.level = (known.level + 1).min(LEVEL_MAX);
        (known.failures, known.until) = (0, None);
    }

    /// It did not take something.
    pub(super) fn failed(&mut self, place: &Place, now: Instant) {
        let known = self.known(place);
        // What was out together and fails together is one failure.
        if known.until.is_some_and(|until| now < until) {
            return;
        }
        known.level = known.level.saturating_sub(1);
        known.failures = known.failures.saturating_add(1);
        if let Some(beyond) = known.failures.checked_sub(TRIPPED) {
            let rest = REST.saturating_mul(2_u32.saturating_pow(beyond)).min(REST_MAX);
            known.until = Some(now + rest);
        }
    }

    fn known(&mut self, place: &Place) -> &mut Known {
        if self.0.len() >= PLACES_MAX && !self.0.contains_key(place) {
            self.0.pop_first();
        }
        self.0.entry(place.clone()).or_insert(Known { level: LEVEL_FIRST, failures: 0, until: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        (TenantId(1), name.to_owned())
    }

    #[test]
    fn a_place_that_fails_is_tried_less_and_less() {
        let (mut places, now, bad) = (Places::default(), Instant::now(), place("hook bad"));
        let mut rooms = Vec::new();
        for _ in 0..TRIPPED {
            places.took(&bad);
            rooms.push(places.room(&bad, now));
        }
        assert_eq!(rooms, [4, 8, 16, 16, 16]);
        rooms.clear();
        for _ in 0..TRIPPED {
            rooms.push(places.room(&bad, now));
            places.failed(&bad, now);
        }
        assert_eq!(rooms, [16, 8, 4, 2, 1]);
        let mut at = now;
        for wanted in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(places.room(&bad, at), 0);
            assert_eq!(places.room(&bad, at + Duration::from_secs(wanted) - Duration::from_millis(1)), 0);
            at += Duration::from_secs(wanted);
            assert_eq!(places.room(&bad, at), 1, "after {wanted} s");
            places.failed(&bad, at);
            // What fails with it makes nothing worse.
            places.failed(&bad, at);
        }
        places.took(&bad);
        assert_eq!(places.room(&bad, at), 2);
    }

    #[test]
    fn a_place_takes_nothing_from_another_nor_from_that_of_another_tenant() {
        let (mut places, now) = (Places::default(), Instant::now());
        for _ in 0..20 {
            places.failed(&place("hook bad"), now);
        }
        assert_eq!(places.room(&place("hook good"), now), 2);
        assert_eq!(places.room(&(TenantId(2), "hook bad".to_owned()), now), 2);
    }

    #[test]
    fn so_many_places_are_kept_and_no_more() {
        let (mut places, now) = (Places::default(), Instant::now());
        for number in 0..=PLACES_MAX {
            places.failed(&place(&number.to_string()), now);
        }
        assert_eq!(places.0.len(), PLACES_MAX);
    }
}
