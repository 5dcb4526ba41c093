//! How much each source may send.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Duration;
use switchward_machine::{TenantId, Time};

use crate::error::{Reason, Refusal};
use crate::limits::{SOURCE_MESSAGES_MAX, SOURCES_COUNTED_MAX};

/// The messages of a source are counted by the minute, milliseconds.
const WINDOW_MS: u64 = 60_000;

type Source = (TenantId, String);

/// The proven messages of this minute, by source. Each server counts its own.
#[derive(Debug, Default)]
pub(crate) struct Rates(Mutex<BTreeMap<Source, (u64, u32)>>);

impl Rates {
    /// Counts one message.
    ///
    /// # Errors
    /// RATE_LIMITED above [`SOURCE_MESSAGES_MAX`] in one minute.
    pub(super) fn take(&self, source: Source, now: Time) -> Result<(), Refusal> {
        let window = now.0 / WINDOW_MS;
        let mut counted = self.0.lock();
        if counted.len() >= SOURCES_COUNTED_MAX && !counted.contains_key(&source) {
            // What was counted in minutes that are over; of one minute with this many sources, everything.
            counted.retain(|_, (at, _)| *at == window);
            if counted.len() >= SOURCES_COUNTED_MAX {
                counted.clear();
            }
        }
        let (at, count) = counted.entry(source).or_insert((window, 0));
        if *at != window {
            (*at, *count) = (window, 0);
        }
        if *count >= SOURCE_MESSAGES_MAX {
            let message = format!("the source has sent {SOURCE_MESSAGES_MAX} messages within a minute");
            let left = Duration::from_millis(WINDOW_MS - now.0 % WINDOW_MS);
            return Err(Refusal::new(Reason::RateLimited, message).retry_after(left));
        }
        *count += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_has_its_minute() {
        let rates = Rates::default();
        let one = || (TenantId(1), "shop".to_owned());
        for _ in 0..SOURCE_MESSAGES_MAX {
            assert!(rates.take(one(), Time(60_001)).is_ok());
        }
        let refused = rates.take(one(), Time(90_000)).expect_err("the limit is reached");
        assert_eq!(refused.retry_delay(), Some(Duration::from_secs(30)));
        assert!(rates.take((TenantId(2), "shop".to_owned()), Time(90_000)).is_ok());
        assert!(rates.take(one(), Time(120_000)).is_ok());
    }

    #[test]
    fn what_is_counted_stays_bounded() {
        let rates = Rates::default();
        for at in 0..=SOURCES_COUNTED_MAX {
            assert!(rates.take((TenantId(1), at.to_string()), Time(1)).is_ok());
        }
        assert!(rates.0.lock().len() <= SOURCES_COUNTED_MAX);
    }
}
