//! How much each source may send, and how much may be sent with each reply token and to each session.

use governor::Quota;
use governor::clock::Clock as _;
use parking_lot::Mutex;
use std::hash::Hash;
use std::num::NonZeroU32;
use switchward_machine::{RunId, SessionId, TenantId, Time};
use switchward_state::session::ReplyToken;

use crate::error::{Reason, Refusal};
use crate::limiter_clock::{Limiter, LimiterClock, whole_ms};
use crate::limits::{CALLBACKS_MAX, CALLBACKS_OF_SESSION_MAX, SOURCE_MESSAGES_MAX, SOURCES_COUNTED_MAX};

/// Of sources, by their tenant and name.
pub(crate) type SourceRates = Rates<(TenantId, String)>;

/// The messages with reply tokens, counted on this server.
pub(crate) struct CallbackRates {
    /// Of tokens, by what they name: one holder does not make those of the session's other tokens wait.
    tokens: Rates<(SessionId, RunId, u32)>,
    /// Of sessions, so that nobody has the rates of many tokens: each state that a session enters makes a token, and the
    /// rate does not ask whether that state was left.
    sessions: Rates<SessionId>,
}

/// The proven messages of each key, counted on this server.
pub(crate) struct Rates<K: Hash + Eq + Clone> {
    clock: LimiterClock,
    /// As many messages at once as in a minute, within which they come back evenly.
    quota: Quota,
    /// Who sends too much, in a refusal.
    sender: &'static str,
    counted: Mutex<Limiter<K>>,
}

impl SourceRates {
    /// At most [`SOURCE_MESSAGES_MAX`] per minute.
    pub(crate) fn of_sources() -> Self {
        Self::new(const { NonZeroU32::new(SOURCE_MESSAGES_MAX).expect("it is not 0") }, "the source sends")
    }
}

impl CallbackRates {
    /// At most [`CALLBACKS_MAX`] per minute with one token, and [`CALLBACKS_OF_SESSION_MAX`] to one session.
    pub(crate) fn new() -> Self {
        let of_token = const { NonZeroU32::new(CALLBACKS_MAX).expect("it is not 0") };
        let of_session = const { NonZeroU32::new(CALLBACKS_OF_SESSION_MAX).expect("it is not 0") };
        Self {
            tokens: Rates::new(of_token, "the holders of the reply token send"),
            sessions: Rates::new(of_session, "the holders of the session's reply tokens send"),
        }
    }

    /// Counts one message with a token that was made for its session.
    ///
    /// # Errors
    /// As of [`Rates::take`].
    pub(crate) fn take(&self, token: &ReplyToken, now: Time) -> Result<(), Refusal> {
        // First, so that a message above the token's rate takes nothing from the holders of the session's other tokens.
        self.tokens.take(&(token.session, token.run, token.entry), now)?;
        self.sessions.take(&token.session, now)
    }
}

impl<K: Hash + Eq + Clone> Rates<K> {
    fn new(max: NonZeroU32, sender: &'static str) -> Self {
        let (clock, quota) = (LimiterClock::default(), Quota::per_minute(max));
        Self { counted: Mutex::new(clock.limiter(quota)), clock, quota, sender }
    }

    /// Counts one message.
    ///
    /// # Errors
    /// RATE_LIMITED above the maximum per minute, with the time after which there is capacity.
    pub(super) fn take(&self, key: &K, now: Time) -> Result<(), Refusal> {
        self.clock.go_on(now);
        let mut counted = self.counted.lock();
        if counted.len() >= SOURCES_COUNTED_MAX {
            counted.retain_recent();
            if counted.len() >= SOURCES_COUNTED_MAX {
                // All counters restart, so that nothing stays uncounted.
                *counted = self.clock.limiter(self.quota);
            }
        }
        counted.check_key(key).map_err(|until| {
            let message =
                format!("{} more than {} messages per minute", self.sender, self.quota.burst_size());
            let wait = whole_ms(until.wait_time_from(self.clock.now()));
            Refusal::new(Reason::RateLimited, message).retry_after(wait)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn token(session: SessionId, entry: u32) -> ReplyToken {
        let text = format!("swr_acme.{session}.1.{entry}.{}", "0".repeat(32));
        text.parse().expect("the text of a token")
    }

    fn shop(tenant: u32) -> (TenantId, String) {
        (TenantId(tenant), "shop".to_owned())
    }

    #[test]
    fn each_source_has_its_rate() {
        let rates = SourceRates::of_sources();
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
    fn the_tokens_of_a_session_share_its_rate() {
        let (rates, session) = (CallbackRates::new(), SessionId([1; 16]));
        let tokens = CALLBACKS_OF_SESSION_MAX / CALLBACKS_MAX;
        for entry in 1..=tokens {
            let token = token(session, entry);
            for _ in 0..CALLBACKS_MAX {
                assert!(rates.take(&token, Time(60_000)).is_ok());
            }
            assert!(rates.take(&token, Time(60_000)).is_err(), "it takes nothing from the session");
        }
        let one_more = token(session, tokens + 1);
        let refused = rates.take(&one_more, Time(60_000)).expect_err("the session's limit is reached");
        let each = u64::from(60_000 / CALLBACKS_OF_SESSION_MAX);
        assert_eq!(refused.retry_delay(), Some(Duration::from_millis(each)));
        assert!(rates.take(&token(SessionId([2; 16]), 1), Time(60_000)).is_ok());
        assert!(rates.take(&one_more, Time(60_000 + each)).is_ok());
        assert!(rates.take(&one_more, Time(60_000 + each)).is_err());
        assert_eq!(rates.sessions.counted.lock().len(), 2, "however many tokens they have");
    }

    #[test]
    fn what_is_counted_stays_bounded() {
        let rates = SourceRates::of_sources();
        let count = || rates.counted.lock().len();
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
