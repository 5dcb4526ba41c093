//! Throttles the tenant that uses most of what all tenants share, such as a shard or the cores, while others' calls take too
//! long.
//!
//! Turns alone do not help a tenant that asks little: the cores and the disk stay busy with the other tenant's commands, with
//! the tables that are made of them and with the merging of these tables, and each call waits for them at every step of its
//! way. So the tenant that uses most rests after each use. Each call of others that took too long makes the rests
//! much longer, and each that was quick makes them a little shorter, so that they settle where about one in
//! [`REST_MORE`](crate::limits::REST_MORE) takes too long.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use switchward_machine::TenantId;

use crate::limits::{
    REST_MAX, REST_MIN, REST_MORE, REST_PARTS, REST_PARTS_MAX, SHARED_FOR, USE_TENANTS_MAX, USE_WINDOW,
};

/// What each tenant has used lately, and who rests.
pub struct Throttle {
    used: HashMap<TenantId, Duration>,
    total: Duration,
    halved: Option<Instant>,
    /// The tenant that asked last.
    last: Option<TenantId>,
    /// When a tenant asked after another one.
    changed: Option<Instant>,
    /// How long the tenant that uses most rests, in `1/REST_PARTS` of the time that it used.
    parts: u32,
    parts_max: u32,
    /// The tenant that is to rest, and for how long.
    owed: Option<(TenantId, Duration)>,
    /// The tenant that rests, and until when.
    resting: Option<(TenantId, Instant)>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(REST_PARTS_MAX)
    }
}

impl Throttle {
    /// Creates a throttle whose longest rests are `parts_max` times `1/REST_PARTS` of the time that was used.
    #[must_use]
    pub fn new(parts_max: u32) -> Self {
        Self {
            used: HashMap::new(),
            total: Duration::ZERO,
            halved: None,
            last: None,
            changed: None,
            parts: 0,
            parts_max,
            owed: None,
            resting: None,
        }
    }

    /// Notes that a tenant asks for something.
    pub fn asked(&mut self, tenant: TenantId, now: Instant) {
        if self.last.replace(tenant).is_some_and(|last| last != tenant) {
            self.changed = Some(now);
        }
    }

    /// Returns true if several tenants have asked lately: within [`SHARED_FOR`].
    #[must_use]
    pub fn shared(&self, now: Instant) -> bool {
        self.changed.is_some_and(|changed| now.saturating_duration_since(changed) < SHARED_FOR)
    }

    /// Counts what a tenant has used. The rest that it owes for it adds up until [`begin_rest`](Self::begin_rest).
    pub fn used(&mut self, tenant: TenantId, took: Duration, now: Instant) {
        self.go_on(now);
        if self.used.len() >= USE_TENANTS_MAX && !self.used.contains_key(&tenant) {
            (self.used, self.total) = (HashMap::new(), Duration::ZERO);
        }
        *self.used.entry(tenant).or_default() += took;
        self.total += took;
        if self.parts > 0 && self.is_heaviest(tenant) {
            let owed = self.owed.filter(|(owes, _)| *owes == tenant).map_or(Duration::ZERO, |(_, owed)| owed);
            let rest = took * self.parts / REST_PARTS;
            self.owed = Some((tenant, (owed + rest).min(REST_MAX)));
        }
    }

    /// Begins the rest of the tenant that owes one. Rests shorter than [`REST_MIN`] add up to a longer one.
    pub fn begin_rest(&mut self, now: Instant) {
        if let Some((tenant, rest)) = self.owed.take_if(|(_, rest)| *rest >= REST_MIN) {
            self.resting = Some((tenant, now + rest));
        }
    }

    /// Returns until when the tenant rests, `None` if it does not.
    #[must_use]
    pub fn rests(&self, tenant: TenantId, now: Instant) -> Option<Instant> {
        self.resting.filter(|(rests, until)| *rests == tenant && *until > now).map(|(_, until)| until)
    }

    /// Notes that a call of another tenant took too long: the heaviest tenant rests more.
    pub fn others_waited_too_long(&mut self) {
        self.others_waited(true);
    }

    /// Notes that a call of another tenant did not take too long: the heaviest tenant rests less.
    pub fn others_did_not_wait(&mut self) {
        self.others_waited(false);
    }

    fn others_waited(&mut self, too_long: bool) {
        self.parts = if too_long {
            (self.parts + REST_MORE).min(self.parts_max)
        } else {
            self.parts.saturating_sub(1)
        };
    }

    /// Returns true if the tenant has used more than two thirds of what was used lately.
    #[must_use]
    pub fn is_heaviest(&self, tenant: TenantId) -> bool {
        self.used.get(&tenant).is_some_and(|used| *used * 3 > self.total * 2)
    }

    /// What was used in the last window counts for half, in the one before it for a quarter, and so on.
    fn go_on(&mut self, now: Instant) {
        let halved = *self.halved.get_or_insert(now);
        if now.saturating_duration_since(halved) < USE_WINDOW {
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

    const HEAVY: TenantId = TenantId(1);
    const OTHER: TenantId = TenantId(2);
    const MS: Duration = Duration::from_millis(1);

    /// Returns how long the tenant rests after it has used this.
    fn rest(throttle: &mut Throttle, tenant: TenantId, took: Duration, now: Instant) -> Duration {
        throttle.used(tenant, took, now);
        throttle.begin_rest(now);
        let rest = throttle.rests(tenant, now).map_or(Duration::ZERO, |until| until - now);
        throttle.resting = None;
        rest
    }

    #[test]
    fn who_uses_most_rests_the_longer_the_more_often_others_wait() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        assert_eq!(rest(&mut throttle, HEAVY, 9 * MS, now), Duration::ZERO, "nobody waits");
        throttle.used(OTHER, MS, now);
        let mut rests = Vec::new();
        for _ in 0..REST_PARTS_MAX.div_ceil(REST_MORE) {
            throttle.others_waited(true);
            rests.push(rest(&mut throttle, HEAVY, MS, now));
        }
        assert!(rests.is_sorted() && rests[0] == MS * REST_MORE / REST_PARTS, "{rests:?}");
        assert_eq!(rests.last(), Some(&(MS * REST_PARTS_MAX / REST_PARTS)));
        assert_eq!(rest(&mut throttle, HEAVY, Duration::from_secs(9), now), REST_MAX, "a rest has a maximum");
        assert_eq!(rest(&mut throttle, OTHER, MS, now), Duration::ZERO, "others do not rest");
        for _ in 0..REST_PARTS_MAX {
            throttle.others_waited(false);
        }
        assert_eq!(rest(&mut throttle, HEAVY, MS, now), Duration::ZERO, "nobody waits any more");
    }

    #[test]
    fn short_rests_add_up() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        throttle.others_waited(true);
        let short = MS / 4;
        let rests: Vec<_> = (0..8).map(|_| rest(&mut throttle, HEAVY, short, now)).collect();
        let long = 4 * short * REST_MORE / REST_PARTS;
        assert_eq!(rests, [0, 0, 0, 1, 0, 0, 0, 1].map(|times| times * long));
    }

    #[test]
    fn it_is_shared_for_a_while_after_another_tenant_has_asked() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        throttle.asked(HEAVY, now);
        throttle.asked(HEAVY, now);
        assert!(!throttle.shared(now), "only one tenant has asked");
        throttle.asked(OTHER, now);
        throttle.asked(OTHER, now);
        assert!(throttle.shared(now) && !throttle.shared(now + SHARED_FOR));
    }

    #[test]
    fn rests_last_while_more_than_a_few_of_a_thousand_wait() {
        let rests = |one_of: u32| {
            let (mut throttle, now) = (Throttle::default(), Instant::now());
            throttle.used(OTHER, MS, now);
            throttle.used(HEAVY, 9 * MS, now);
            for number in 1..40 * one_of {
                throttle.others_waited(number % one_of == 0);
            }
            !rest(&mut throttle, HEAVY, 1_000 * MS, now).is_zero()
        };
        assert_eq!([50, 100, REST_MORE].map(rests), [true; 3]);
        assert!(!rests(REST_MORE * 2 - 1), "the rest is over before the next wait");
    }

    #[test]
    fn of_two_who_use_as_much_nobody_rests_and_what_was_used_is_forgotten() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        throttle.used(HEAVY, MS, now);
        for _ in 0..10 {
            throttle.others_waited(true);
            assert_eq!(rest(&mut throttle, OTHER, MS, now), Duration::ZERO);
            assert_eq!(rest(&mut throttle, HEAVY, MS, now), Duration::ZERO);
        }
        assert!(!rest(&mut throttle, HEAVY, 90 * MS, now).is_zero());
        let mut later = now;
        for _ in 0..30 {
            later += USE_WINDOW;
            throttle.go_on(later);
        }
        assert!(throttle.used.is_empty() && throttle.total.is_zero());
    }
}
