//! How the places do to which effects go: one that fails is tried less and less, and never by more than one at a time, so
//! that it takes nothing from the others.

use std::collections::BTreeMap;
use std::time::Duration;

use switchward_machine::TenantId;
use tokio::time::Instant;

/// Effects of one tenant that are out to one place at one time.
pub(super) const OUT_TO_PLACE_MAX: usize = 16;
/// Failures in a row after which a place is left alone for a while.
const TRIPPED: u32 = 5;
/// For how long at first; twice as long after each further failure.
const REST: Duration = Duration::from_secs(1);
/// For how long at most.
const REST_MAX: Duration = Duration::from_secs(60);
/// Places of which it is kept that they fail; beyond it some are taken for good ones.
const PLACES_MAX: usize = 10_000;

/// A place where effects of a tenant go.
pub(super) type Place = (TenantId, String);

struct Failing {
    /// Failures in a row.
    times: u32,
    /// Until when it is left alone.
    until: Instant,
}

/// The places that fail.
#[derive(Default)]
pub(super) struct Places(BTreeMap<Place, Failing>);

impl Places {
    /// How many effects may be out to a place at one time.
    pub(super) fn room(&self, place: &Place, now: Instant) -> usize {
        match self.0.get(place) {
            None => OUT_TO_PLACE_MAX,
            Some(failing) if now < failing.until => 0,
            Some(failing) => (OUT_TO_PLACE_MAX >> failing.times.min(TRIPPED)).max(1),
        }
    }

    /// It took something.
    pub(super) fn took(&mut self, place: &Place) {
        self.0.remove(place);
    }

    /// It did not take something.
    pub(super) fn failed(&mut self, place: &Place, now: Instant) {
        if self.0.len() >= PLACES_MAX && !self.0.contains_key(place) {
            self.0.pop_first();
        }
        let failing = self.0.entry(place.clone()).or_insert(Failing { times: 0, until: now });
        // What was out together and fails together is one failure.
        if now < failing.until {
            return;
        }
        failing.times = failing.times.saturating_add(1);
        if let Some(beyond) = failing.times.checked_sub(TRIPPED) {
            failing.until = now + REST.saturating_mul(2_u32.saturating_pow(beyond)).min(REST_MAX);
        }
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
        assert_eq!(places.room(&bad, at), OUT_TO_PLACE_MAX);
    }

    #[test]
    fn a_place_takes_nothing_from_another_nor_from_that_of_another_tenant() {
        let (mut places, now) = (Places::default(), Instant::now());
        for _ in 0..20 {
            places.failed(&place("hook bad"), now);
        }
        assert_eq!(places.room(&place("hook good"), now), OUT_TO_PLACE_MAX);
        assert_eq!(places.room(&(TenantId(2), "hook bad".to_owned()), now), OUT_TO_PLACE_MAX);
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
