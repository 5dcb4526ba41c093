//! Rows whose sweep or relay was refused. A leader leaves each of them alone for an increasing time, so that rows
//! that cannot be processed take no time or capacity from the others.

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use std::collections::HashMap;
use std::time::Duration;
use switchward_state::Key;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::limits::{REFUSED_MAX, REFUSED_REPORT_INTERVAL, REFUSED_WAIT, REFUSED_WAIT_MAX};

/// The waits after refusals, without an end.
const WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(REFUSED_WAIT)
    .with_max_delay(REFUSED_WAIT_MAX)
    .without_max_times();

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    rows: HashMap<Key, Again>,
    /// When a refusal was last reported.
    reported: Option<Instant>,
}

/// When a row is tried again.
#[derive(Debug)]
struct Again {
    /// The waits after further refusals.
    waits: ExponentialBackoff,
    at: Instant,
}

impl Refused {
    /// Returns true if a row is left alone now.
    pub(crate) fn rests(&self, key: &Key, now: Instant) -> bool {
        self.rows.get(key).is_some_and(|again| now < again.at)
    }

    /// Forgets a row that was processed.
    pub(crate) fn done(&mut self, key: &Key) {
        self.rows.remove(key);
    }

    /// Records a refusal. Returns for how long the row is left alone.
    pub(crate) fn refused(&mut self, key: &Key, now: Instant) -> Duration {
        if self.rows.len() >= REFUSED_MAX {
            // A row that was not tried again when its time had come no longer exists.
            self.rows.retain(|_, again| now < again.at + REFUSED_WAIT_MAX);
        }
        if self.rows.len() >= REFUSED_MAX && !self.rows.contains_key(key) {
            let first = self.rows.iter().min_by_key(|(_, again)| again.at).map(|(key, _)| key.clone());
            first.map(|key| self.rows.remove(&key));
        }
        let again = self.rows.entry(key.clone()).or_insert_with(|| Again { waits: WAITS.build(), at: now });
        let wait = again.waits.next().unwrap_or(REFUSED_WAIT_MAX);
        again.at = now + wait;
        wait
    }

    /// The same, with an occasional warning that names the session.
    pub(crate) fn warn(&mut self, key: &Key, failure: &Failure, now: Instant) -> Duration {
        let wait = self.refused(key, now);
        if self.reported.is_some_and(|reported| now < reported + REFUSED_REPORT_INTERVAL) {
            return wait;
        }
        self.reported = Some(now);
        let session = key.session_of().map(|session| session.to_string());
        tracing::warn!(
            session = session.unwrap_or_default(),
            tenant = key.tenant_of().0,
            reason = if let Failure::Rejected(no) = failure { no.reason.code() } else { "" },
            why = %failure,
            again_seconds = wait.as_secs(),
            rows = self.rows.len(),
            "a due row was refused; it is tried again later"
        );
        wait
    }
}

#[cfg(test)]
mod tests {
    use switchward_machine::{OpenId, SessionId, TenantId};

    use super::*;

    fn key(number: u64) -> Key {
        Key::item(TenantId(1), SessionId::from_key(TenantId(1), "s"), OpenId(number))
    }

    #[test]
    fn a_row_is_left_alone_for_twice_as_long_each_time() {
        let (mut refused, begin) = (Refused::default(), Instant::now());
        let waits: Vec<Duration> = (0..40).map(|_| refused.refused(&key(1), begin)).collect();
        assert_eq!(waits[..4], [1, 2, 4, 8].map(|times| REFUSED_WAIT * times));
        assert_eq!(waits[39], REFUSED_WAIT_MAX);
        assert!(refused.rests(&key(1), begin + REFUSED_WAIT_MAX / 2) && !refused.rests(&key(2), begin));
        assert!(!refused.rests(&key(1), begin + REFUSED_WAIT_MAX));
        refused.done(&key(1));
        assert_eq!(refused.refused(&key(1), begin), REFUSED_WAIT, "a success resets the wait");
    }

    #[test]
    fn so_many_rows_are_remembered_and_no_more() {
        let (mut refused, begin) = (Refused::default(), Instant::now());
        let max = u64::try_from(REFUSED_MAX).unwrap();
        for number in 0..=max {
            refused.refused(&key(number), begin + Duration::from_micros(number));
        }
        assert_eq!(refused.rows.len(), REFUSED_MAX);
        assert!(!refused.rests(&key(0), begin) && refused.rests(&key(max), begin));
        refused.refused(&key(7), begin + 3 * REFUSED_WAIT_MAX);
        assert_eq!(refused.rows.len(), 1, "old rows are forgotten");
    }
}
