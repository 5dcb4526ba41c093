//! The server's time as a clock of the rate limiters, which tests move by hand.

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use std::hash::Hash;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;
use switchward_machine::Time;

/// Rates by key. It has every key that was used until [`RateLimiter::retain_recent`]: its owner bounds their number.
pub(crate) type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, LimiterClock, NoOpMiddleware<Duration>>;

/// Shows the latest time that it was set to, in milliseconds. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimiterClock(Arc<AtomicU64>);

impl LimiterClock {
    /// Goes on to this time; it never goes back, so that a jump of the server's time frees nothing.
    pub(crate) fn go_on(&self, now: Time) {
        self.0.fetch_max(now.0, Ordering::Relaxed);
    }

    /// Creates a limiter that uses this clock and has no keys yet.
    pub(crate) fn limiter<K: Hash + Eq + Clone>(&self, quota: Quota) -> Limiter<K> {
        RateLimiter::new(quota, HashMapStateStore::default(), self.clone())
    }
}

impl Clock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Rounds up to whole milliseconds, which is the resolution of the server's time.
pub(crate) fn whole_ms(wait: Duration) -> Duration {
    let ms = wait.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_over_changes_nothing() {
        let clock = LimiterClock::default();
        for (now, shown) in [(5, 5), (3, 5), (6, 6)] {
            clock.go_on(Time(now));
            assert_eq!(clock.clone().now(), Duration::from_millis(shown));
        }
    }

    #[test]
    fn waits_are_rounded_up() {
        let whole = |ns| whole_ms(Duration::from_nanos(ns)).as_millis();
        assert_eq!([0, 1, 1_000_000, 1_000_001].map(whole), [0, 1, 1, 2]);
    }
}
