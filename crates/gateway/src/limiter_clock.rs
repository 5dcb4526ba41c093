//! The server's time as a clock of the rate limiters, which tests move by hand.

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use parking_lot::Mutex;
use std::hash::Hash;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;
use switchward_machine::Time;

use crate::limits::RATE_CLOCK_BACK_MS_MAX;

/// Rates by key. It has every key that was used until [`RateLimiter::retain_recent`]: its owner bounds their number.
pub(crate) type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, LimiterClock, NoOpMiddleware<Duration>>;

/// Counts how far the server's time has gone on, in milliseconds. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimiterClock(Arc<Shown>);

#[derive(Debug, Default)]
struct Shown {
    ms: AtomicU64,
    /// The latest time of the server since that last jumped back, in milliseconds.
    latest: AtomicU64,
    /// Held while both change.
    moving: Mutex<()>,
}

/// Returns true if the server's time has jumped back. Calls that come at once may read their times in another order.
pub(crate) fn jumped_back(latest: Time, now: Time) -> bool {
    latest.since_ms(now) > RATE_CLOCK_BACK_MS_MAX
}

impl LimiterClock {
    /// Goes on with the server's time. It never goes back, so that a jump frees nothing. After a jump back it goes on at
    /// once: a server that starts may show a wrong time until it has compared its clock with those of the others.
    pub(crate) fn go_on(&self, now: Time) {
        // Most calls of a server that has much to do come in the same millisecond as the one before, and change nothing.
        if self.latest() == now {
            return;
        }
        let _alone = self.0.moving.lock();
        let latest = self.latest();
        let next = if jumped_back(latest, now) {
            now
        } else {
            let shown = self.0.ms.load(Ordering::Relaxed).saturating_add(now.since_ms(latest));
            self.0.ms.store(shown, Ordering::Relaxed);
            now.max(latest)
        };
        self.0.latest.store(next.0, Ordering::Release);
    }

    fn latest(&self) -> Time {
        Time(self.0.latest.load(Ordering::Acquire))
    }

    /// Creates a limiter that uses this clock and has no keys yet.
    pub(crate) fn limiter<K: Hash + Eq + Clone>(&self, quota: Quota) -> Limiter<K> {
        RateLimiter::new(quota, HashMapStateStore::default(), self.clone())
    }
}

impl Clock for LimiterClock {
    type Instant = Duration;

    fn now(&self) -> Duration {
        Duration::from_millis(self.0.ms.load(Ordering::Relaxed))
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
    fn a_jump_back_neither_frees_anything_nor_stops_it() {
        let (clock, hour) = (LimiterClock::default(), 3_600_000);
        for (now, shown) in [(2 * hour, 2 * hour), (hour, 2 * hour), (hour + 7, 2 * hour + 7)] {
            clock.go_on(Time(now));
            assert_eq!(clock.now(), Duration::from_millis(shown));
        }
    }

    #[test]
    fn waits_are_rounded_up() {
        let whole = |ns| whole_ms(Duration::from_nanos(ns)).as_millis();
        assert_eq!([0, 1, 1_000_000, 1_000_001].map(whole), [0, 1, 1, 2]);
    }
}
