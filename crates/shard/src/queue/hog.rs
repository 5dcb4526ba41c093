//! Who uses most of a shard, and how long they rest after each batch while what others ask takes too long.
//!
//! Turns by themselves do not help who asks little: the cores and the disk stay busy with the other's commands, with the
//! tables that are made of them and with the merging of these tables, and each thing that is asked waits for them at every
//! step of its way. So the one rests. Each command of somebody else that took too long makes the rests much longer, and each
//! that was quick makes them a little shorter, so that they settle where about one in [`HOG_REST_MORE`] takes too long.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use switchward_machine::TenantId;

use crate::limits::{
    HOG_QUICK_TIMES, HOG_REST_MAX, HOG_REST_MORE, HOG_REST_PARTS, HOG_REST_PARTS_MAX, HOG_WAIT, HOG_WINDOW,
    HOGS_COUNTED_MAX,
};

/// How much each tenant has used lately.
#[derive(Default)]
pub(super) struct Hogs {
    used: HashMap<TenantId, Duration>,
    total: Duration,
    halved: Option<Instant>,
    /// How long the one who uses most rests, in parts of the time that its commands took: see [`HOG_REST_PARTS`].
    parts: u32,
    /// How long it takes to write a decision when the disk is quick.
    quick: Duration,
    /// Who is to rest, and for how long.
    owed: Option<(TenantId, Duration)>,
    /// Who rests, and until when.
    resting: Option<(TenantId, Instant)>,
}

impl Hogs {
    /// A tenant has used so much.
    pub(super) fn used(&mut self, tenant: TenantId, took: Duration, now: Instant) {
        self.go_on(now);
        if self.used.len() >= HOGS_COUNTED_MAX && !self.used.contains_key(&tenant) {
            (self.used, self.total) = (HashMap::new(), Duration::ZERO);
        }
        *self.used.entry(tenant).or_default() += took;
        self.total += took;
        if self.parts > 0 && self.is_hog(tenant) {
            let owed = self.owed.filter(|(owes, _)| *owes == tenant).map_or(Duration::ZERO, |(_, owed)| owed);
            let rest = took * self.parts / HOG_REST_PARTS;
            self.owed = Some((tenant, (owed + rest).min(HOG_REST_MAX)));
        }
    }

    /// Says how long it took to write a decision. The shortest time counts, and is forgotten little by little.
    pub(super) fn wrote(&mut self, took: Duration) {
        let quick = self.quick + self.quick / 64;
        self.quick = if quick.is_zero() { took } else { took.min(quick) };
    }

    /// Whoever is to rest does so from now on.
    pub(super) fn begin_rest(&mut self, now: Instant) {
        if let Some((tenant, rest)) = self.owed.take() {
            self.resting = Some((tenant, now + rest));
        }
    }

    /// Until when the tenant rests, if it does.
    pub(super) fn rests(&self, tenant: TenantId, now: Instant) -> Option<Instant> {
        self.resting.filter(|(rests, until)| *rests == tenant && *until > now).map(|(_, until)| until)
    }

    /// A tenant's command was answered so long after it had come.
    pub(super) fn answered(&mut self, tenant: TenantId, after: Duration) {
        if self.is_hog(tenant) {
            return;
        }
        self.parts = if after > HOG_WAIT + HOG_QUICK_TIMES * self.quick {
            (self.parts + HOG_REST_MORE).min(HOG_REST_PARTS_MAX)
        } else {
            self.parts.saturating_sub(1)
        };
    }

    /// Returns true if the tenant has used more than two thirds of what was used.
    fn is_hog(&self, tenant: TenantId) -> bool {
        self.used.get(&tenant).is_some_and(|used| *used * 3 > self.total * 2)
    }

    /// What was used in the last window counts for half, in the one before it for a quarter, and so on.
    fn go_on(&mut self, now: Instant) {
        let halved = *self.halved.get_or_insert(now);
        if now.saturating_duration_since(halved) < HOG_WINDOW {
            return;
        }
        self.halved = Some(now);
        for used in self.used.values_mut() {
            *used /= 2;
        }
        self.used.retain(|_, used| *used > Duration::from_micros(1));
        self.total = self.used.values().sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOG: TenantId = TenantId(1);
    const OTHER: TenantId = TenantId(2);
    const MS: Duration = Duration::from_millis(1);

    /// How long the tenant rests after it has used so much.
    fn rest(hogs: &mut Hogs, tenant: TenantId, took: Duration, now: Instant) -> Duration {
        hogs.used(tenant, took, now);
        hogs.begin_rest(now);
        let rest = hogs.rests(tenant, now).map_or(Duration::ZERO, |until| until - now);
        hogs.resting = None;
        rest
    }

    #[test]
    fn who_uses_most_rests_the_longer_the_more_often_others_wait() {
        let (mut hogs, now) = (Hogs::default(), Instant::now());
        assert_eq!(rest(&mut hogs, HOG, 9 * MS, now), Duration::ZERO, "nobody waits");
        hogs.used(OTHER, MS, now);
        let mut rests = Vec::new();
        for _ in 0..HOG_REST_PARTS_MAX.div_ceil(HOG_REST_MORE) {
            hogs.answered(OTHER, HOG_WAIT + MS);
            rests.push(rest(&mut hogs, HOG, MS, now));
        }
        assert!(rests.is_sorted() && rests[0] == MS * HOG_REST_MORE / HOG_REST_PARTS, "{rests:?}");
        let most = MS * HOG_REST_PARTS_MAX / HOG_REST_PARTS;
        assert_eq!(rests.last(), Some(&most));
        assert_eq!(rest(&mut hogs, HOG, Duration::from_secs(9), now), HOG_REST_MAX, "a rest has a bound");
        assert_eq!(rest(&mut hogs, OTHER, MS, now), Duration::ZERO, "others do not rest");
        // That it waits itself counts for nothing.
        hogs.answered(HOG, Duration::ZERO);
        assert_eq!(rest(&mut hogs, HOG, MS, now), most);
        for _ in 0..HOG_REST_PARTS_MAX {
            hogs.answered(OTHER, Duration::ZERO);
        }
        assert_eq!(rest(&mut hogs, HOG, MS, now), Duration::ZERO, "nobody waits any more");
    }

    #[test]
    fn rests_last_while_more_than_a_few_of_a_thousand_wait() {
        let rests = |one_of: u32| {
            let (mut hogs, now) = (Hogs::default(), Instant::now());
            hogs.used(OTHER, MS, now);
            hogs.used(HOG, 9 * MS, now);
            for number in 1..40 * one_of {
                hogs.answered(OTHER, if number % one_of == 0 { HOG_WAIT + MS } else { MS });
            }
            !rest(&mut hogs, HOG, MS, now).is_zero()
        };
        assert_eq!([50, 100, HOG_REST_MORE].map(rests), [true; 3]);
        assert!(!rests(HOG_REST_MORE * 2 - 1), "between two that wait, all of the rest is over");
    }

    #[test]
    fn a_slow_disk_is_nobodys_fault() {
        let (mut hogs, now) = (Hogs::default(), Instant::now());
        for took in [20, 10, 30] {
            hogs.wrote(took * MS);
        }
        hogs.answered(OTHER, HOG_QUICK_TIMES * 10 * MS);
        assert_eq!(rest(&mut hogs, HOG, MS, now), Duration::ZERO, "a few writes take as long");
        hogs.answered(OTHER, HOG_WAIT + HOG_QUICK_TIMES * 11 * MS);
        assert!(!rest(&mut hogs, HOG, MS, now).is_zero());
        for _ in 0..500 {
            hogs.wrote(30 * MS);
        }
        assert_eq!(hogs.quick, 30 * MS, "it has become slower");
    }

    #[test]
    fn of_two_who_use_as_much_nobody_rests_and_what_was_used_is_forgotten() {
        let (mut hogs, now) = (Hogs::default(), Instant::now());
        hogs.used(HOG, MS, now);
        for _ in 0..10 {
            hogs.answered(OTHER, HOG_WAIT + MS);
            assert_eq!(rest(&mut hogs, OTHER, MS, now), Duration::ZERO);
            assert_eq!(rest(&mut hogs, HOG, MS, now), Duration::ZERO);
        }
        assert!(!rest(&mut hogs, HOG, 90 * MS, now).is_zero());
        let mut later = now;
        for _ in 0..30 {
            later += HOG_WINDOW;
            hogs.go_on(later);
        }
        assert!(hogs.used.is_empty() && hogs.total.is_zero());
    }
}
