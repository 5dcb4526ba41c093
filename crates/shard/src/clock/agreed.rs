//! The clock of a member of a cluster: its own, as far as the others agree.
//!
//! 1. A server that is alone uses its own clock.
//! 2. A member decides nothing until it has compared its clock with those of a majority, itself included.
//! 3. Then it decides by its own clock, unless that is too far ahead of the median: then by the median. It never decides by
//!    a time that was not the time of a clock that a majority has behind it.
//! 4. A log that goes further than the clock moves it on to there, by at most [`CLOCK_AHEAD_MAX`], and it runs at half the
//!    speed until the own clock has caught up. A log that goes further than that was written by a server whose clock was
//!    wrong: its shard keeps that time, and the others do not follow.
//! 5. Between two comparisons it goes no further than time has passed, and by [`CLOCK_APART_MAX_MS`] at most beyond that: a
//!    clock that is set meanwhile is compared first.
//!
//! Time never goes back.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use switchward_machine::Time;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Clock, ClockAgreement};
use crate::limits::{CLOCK_AHEAD_MAX, CLOCK_APART_MAX_MS};

/// See the module.
pub(crate) struct AgreedClock {
    own: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// What a clock remembers.
struct State {
    agreement: ClockAgreement,
    /// The own clock when it was last compared; `None` before, and while the server is alone.
    compared: Option<Reading>,
    /// The latest time that was given out.
    last: Time,
    /// What a log has moved it on to.
    moved: Option<Moved>,
}

/// A reading of the own clock.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    own: Time,
    at: Instant,
}

impl Reading {
    /// The latest time that the own clock may show now.
    fn latest(self) -> Time {
        let passed = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.own.after_ms(passed.saturating_add(CLOCK_APART_MAX_MS))
    }
}

/// A time that is ahead of the clock.
#[derive(Clone, Copy)]
struct Moved {
    to: Time,
    /// The own clock then.
    at: Time,
}

impl Moved {
    /// The time now: half as fast as the own clock.
    fn now(self, own: Time) -> Time {
        self.to.after_ms(own.since_ms(self.at) / 2)
    }
}

impl AgreedClock {
    /// A clock that begins with this knowledge.
    pub(crate) fn over(own: Arc<dyn Clock>, agreement: ClockAgreement) -> Self {
        Self { own, state: Mutex::new(State { agreement, compared: None, last: Time(0), moved: None }) }
    }

    /// Reads the own clock, before it is compared.
    pub(crate) fn reading(&self) -> Reading {
        Reading { own: self.own.now(), at: Instant::now() }
    }

    /// Takes a new comparison of the clock that was read before. One that is too small to say anything takes nothing back.
    pub(crate) fn compared(&self, agreement: ClockAgreement, reading: Reading) {
        let mut state = self.state.lock();
        if agreement.is_known() || state.agreement == ClockAgreement::Alone {
            state.agreement = agreement;
            state.compared = (agreement != ClockAgreement::Alone).then_some(reading);
        }
    }

    /// The last comparison.
    pub(crate) fn agreement(&self) -> ClockAgreement {
        self.state.lock().agreement
    }
}

impl State {
    /// The own clock, as far as it was compared.
    fn limited(&self, own: Time) -> Time {
        self.compared.map_or(own, |compared| own.min(compared.latest()))
    }

    /// The time, by the own clock, as far as the others agree.
    fn agreed(&self, own: Time) -> Time {
        Time(own.0.saturating_sub(self.agreement.ahead_ms()))
    }

    fn now(&mut self, own: Time) -> Time {
        let agreed = self.agreed(own);
        let moved = self.moved.map(|moved| moved.now(own));
        if moved.is_some_and(|moved| moved <= agreed) {
            self.moved = None;
        }
        self.last = self.last.max(agreed).max(moved.unwrap_or_default());
        self.last
    }
}

impl Clock for AgreedClock {
    fn now(&self) -> Time {
        let own = self.own.now();
        let mut state = self.state.lock();
        // Until it is known, this is for display, and no later time may have to wait for it.
        if !state.agreement.is_known() {
            return own;
        }
        let own = state.limited(own);
        state.now(own)
    }

    fn patience(&self, until: Time) -> Duration {
        self.own.patience(until)
    }

    fn subscribe(&self, waiting: Arc<Notify>) {
        self.own.subscribe(waiting);
    }

    fn is_known(&self) -> bool {
        self.state.lock().agreement.is_known()
    }

    fn not_before(&self, at: Time) {
        let mut state = self.state.lock();
        if state.agreement == ClockAgreement::Alone {
            drop(state);
            return self.own.not_before(at);
        }
        if !state.agreement.is_known() {
            return;
        }
        let own = state.limited(self.own.now());
        let now = state.now(own);
        if at <= now {
            return;
        }
        let ahead = Duration::from_millis(at.since_ms(state.agreed(own)));
        if ahead > CLOCK_AHEAD_MAX {
            tracing::error!(
                ahead_seconds = ahead.as_secs(),
                "a shard's last decision is far ahead of the servers' clocks: the shard keeps its time, and its timers wait"
            );
            return;
        }
        state.moved = Some(Moved { to: at, at: own });
    }
}

#[cfg(test)]
mod tests {
    use super::super::ManualClock;
    use super::*;

    const BEGIN: Time = Time(1_750_064_400_000);
    const HOUR: u64 = 3_600_000;
    const YEARS: u64 = 87_600 * HOUR;

    fn clock(own: Time, agreement: ClockAgreement) -> (ManualClock, AgreedClock) {
        let own = ManualClock::new(own);
        (own.clone(), AgreedClock::over(Arc::new(own), agreement))
    }

    fn compare(clock: &AgreedClock, agreement: ClockAgreement) {
        clock.compared(agreement, clock.reading());
    }

    /// Lets time pass on all clocks.
    async fn pass(own: &ManualClock, ms: u64) {
        own.advance(ms);
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    fn ahead(by: u64) -> ClockAgreement {
        ClockAgreement::Differs { by_ms: i64::try_from(by).unwrap() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_boots_in_another_decade_decides_nothing_and_then_by_the_others_clocks() {
        for by in [HOUR, YEARS] {
            let (own, clock) = clock(BEGIN.after_ms(by), ClockAgreement::Unknown);
            assert!(!clock.is_known());
            assert_eq!(clock.now(), BEGIN.after_ms(by));
            // A log means nothing yet.
            clock.not_before(BEGIN.after_ms(2 * by));
            compare(&clock, ahead(by));
            assert!(clock.is_known());
            assert_eq!(clock.now(), BEGIN, "no timer fires early");
            pass(&own, 7).await;
            assert_eq!(clock.now(), BEGIN.after_ms(7));
            compare(&clock, ClockAgreement::Unknown);
            assert!(clock.is_known(), "what was compared once stays compared");
        }
    }

    #[test]
    fn a_clock_behind_is_used_as_it_is() {
        let (_, clock) = clock(BEGIN, ClockAgreement::Differs { by_ms: -5_000 });
        assert_eq!(clock.now(), BEGIN);
    }

    #[tokio::test(start_paused = true)]
    async fn time_never_goes_back() {
        let (own, clock) = clock(BEGIN, ClockAgreement::Agrees);
        assert_eq!(clock.now(), BEGIN);
        compare(&clock, ahead(5_000));
        pass(&own, 3_000).await;
        assert_eq!(clock.now(), BEGIN);
        pass(&own, 3_000).await;
        assert_eq!(clock.now(), BEGIN.after_ms(1_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_moves_it_on_by_an_hour_at_most_and_it_runs_at_half_the_speed() {
        let (own, clock) = clock(BEGIN, ClockAgreement::Agrees);
        clock.not_before(BEGIN.after_ms(YEARS));
        clock.not_before(BEGIN.after_ms(HOUR + 1));
        assert_eq!(clock.now(), BEGIN);
        clock.not_before(BEGIN.after_ms(HOUR));
        assert_eq!(clock.now(), BEGIN.after_ms(HOUR));
        pass(&own, HOUR).await;
        assert_eq!(clock.now(), BEGIN.after_ms(HOUR + HOUR / 2));
        pass(&own, HOUR).await;
        assert_eq!(clock.now(), BEGIN.after_ms(2 * HOUR));
        pass(&own, 10).await;
        assert_eq!(clock.now(), BEGIN.after_ms(2 * HOUR + 10));
    }

    #[test]
    fn a_server_alone_uses_its_own_clock_until_it_is_a_member() {
        let (_, clock) = clock(BEGIN, ClockAgreement::Alone);
        assert!(clock.is_known() && clock.now() == BEGIN);
        compare(&clock, ClockAgreement::Unknown);
        assert!(!clock.is_known(), "it has others now");
    }
    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_between_two_comparisons_is_not_followed_before_the_next_one() {
        let (own, clock) = clock(BEGIN, ClockAgreement::Unknown);
        compare(&clock, ClockAgreement::Agrees);
        own.advance(YEARS);
        assert_eq!(clock.now(), BEGIN.after_ms(CLOCK_APART_MAX_MS));
        pass(&own, 500).await;
        assert_eq!(clock.now(), BEGIN.after_ms(CLOCK_APART_MAX_MS + 500));
        compare(&clock, ahead(YEARS));
        pass(&own, 10_000).await;
        assert_eq!(clock.now(), BEGIN.after_ms(10_500));
        // It was right, and the others follow.
        compare(&clock, ClockAgreement::Agrees);
        assert_eq!(clock.now(), BEGIN.after_ms(YEARS + 10_500));
    }
}
