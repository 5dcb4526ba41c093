//! How much each source may send.

use governor::Quota;
use governor::clock::Clock as _;
use parking_lot::Mutex;
use std::num::NonZeroU32;
use switchward_machine::{TenantId, Time};

use crate::error::{Reason, Refusal};
use crate::limiter_clock::{Limiter, LimiterClock, whole_ms};
use crate::limits::{SOURCE_MESSAGES_MAX, SOURCES_COUNTED_MAX};

type Source = (TenantId, String);

/// [`SOURCE_MESSAGES_MAX`] at once, which come back evenly within a minute.
const QUOTA: Quota = Quota::per_minute(NonZeroU32::new(SOURCE_MESSAGES_MAX).expect("it is not 0"));

/// The proven messages of each source, counted on this server.
pub(crate) struct Rates {
    clock: LimiterClock,
    sources: Mutex<Limiter<Source>>,
}

impl Default for Rates {
    fn default() -> Self {
        let clock = LimiterClock::default();
        Self { sources: Mutex::new(clock.limiter(QUOTA)), clock }
    }
}

impl Rates {
    /// Counts one message.
    ///
    /// # Errors
    /// RATE_LIMITED above [`SOURCE_MESSAGES_MAX`] per minute, with the time after which there is capacity.
    pub(super) fn take(&self, source: &Source, now: Time) -> Result<(), Refusal> {
        self.clock.go_on(now);
        let mut sources = self.sources.lock();
        if sources.len() >= SOURCES_COUNTED_MAX {
            sources.retain_recent();
            if sources.len() >= SOURCES_COUNTED_MAX {
                // All counters restart, so that no source stays uncounted.
                *sources = self.clock.limiter(QUOTA);
            }
        }
        sources.check_key(source).map_err(|until| {
            let message = format!("the source sends more than {SOURCE_MESSAGES_MAX} messages per minute");
            let wait = whole_ms(until.wait_time_from(self.clock.now()));
            Refusal::new(Reason::RateLimited, message).retry_after(wait)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shop(tenant: u32) -> Source {
        (TenantId(tenant), "shop".to_owned())
    }

    #[test]
    fn each_source_has_its_rate() {
        let rates = Rates::default();
        let take = |tenant, now| rates.take(&shop(tenant), Time(now));
        for _ in 0..SOURCE_MESSAGES_MAX {
            assert!(take(1, 60_000).is_ok());
        }
        let each = u64::from(60_000 / SOURCE_MESSAGES_MAX);
        let refused = take(1, 60_000 + each / 5).expect_err("the limit is reached");
        assert_eq!(refused.retry_delay(), Some(Duration::from_millis(each - each / 5)));
        assert!(take(2, 60_010).is_ok());
        assert!(take(1, 60_000 + each).is_ok() && take(1, 60_000 + each).is_err());
        for _ in 0..SOURCE_MESSAGES_MAX {
            assert!(take(1, 120_000 + each).is_ok(), "a minute restores all of it");
        }
        assert!(take(1, 120_000 + each).is_err());
    }

    #[test]
    fn what_is_counted_stays_bounded() {
        let rates = Rates::default();
        let count = || rates.sources.lock().len();
        for at in 0..=SOURCES_COUNTED_MAX {
            assert!(rates.take(&(TenantId(1), at.to_string()), Time(1)).is_ok());
        }
        assert_eq!(count(), 1, "all were counted lately");
        for at in 1..SOURCES_COUNTED_MAX {
            assert!(rates.take(&(TenantId(1), format!("old {at}")), Time(1)).is_ok());
        }
        assert!(rates.take(&shop(1), Time(60_002)).is_ok());
        assert_eq!(count(), 1, "sources that sent nothing lately are forgotten");
    }
}
