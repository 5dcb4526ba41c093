//! The clock of a member of a cluster: its own, as far as the others agree.
//!
//! 1. A server that is alone uses its own clock.
//! 2. A member decides nothing until it has compared its clock with those of a majority, itself included.
//! 3. Then it decides by its own clock, unless that is too far ahead of the median: then by the median. If fewer clocks than
//!    those of all voters were compared, [`agreement`](super::agreement) says what takes the median's part. It never decides by
//!    a time that is later than all clocks that may be right.
//! 4. A log that goes further than the clock moves it on to there, by at most [`CLOCK_AHEAD_MAX`], and it runs at half the
//!    speed until the own clock has caught up. A jump of the own clock moves it no further. A log that goes more than that
//!    ahead was written by a server whose clock was wrong: its shard keeps that time, and the others do not follow.
//! 5. Between two comparisons it goes no further than time has passed, and by [`CLOCK_APART_MAX_MS`] at most beyond that: a
//!    clock that is set meanwhile is compared first. A comparison that decides less than an earlier one does not count.
//!
//! Time never goes back.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use switchward_machine::Time;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::agreement::AgreementState;
use super::{Clock, ClockAgreement, Comparison};
use crate::limits::{CLOCK_AHEAD_MAX, CLOCK_APART_MAX_MS, CLOCK_LOOK};

/// See the module.
pub(crate) struct AgreedClock {
    own: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// What a clock remembers.
struct State {
    verdict: AgreementState,
    /// The own clock when the verdict was found; `None` before, and while the server is alone.
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
    /// The own clock then, as far as it was compared.
    own: Time,
    at: Instant,
}

impl Moved {
    /// How long the own clock has run since, milliseconds. A jump does not count: a clock that is set, or compared again, has not
    /// run, and may have been behind only because it was not compared yet.
    fn ran_ms(self, own: Time) -> u64 {
        let passed = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        own.since_ms(self.own).min(passed)
    }

    /// The time now: half as fast as the own clock.
    fn now(self, own: Time) -> Time {
        self.to.after_ms(self.ran_ms(own) / 2)
    }

    /// How long the own clock must run until it is `until`, milliseconds.
    fn wait_ms(self, own: Time, until: Time) -> u64 {
        until.since_ms(self.to).saturating_mul(2).saturating_sub(self.ran_ms(own))
    }
}

impl AgreedClock {
    /// A clock that begins with this knowledge.
    pub(crate) fn over(own: Arc<dyn Clock>, first: Comparison) -> Self {
        let verdict = AgreementState::of(first);
        Self { own, state: Mutex::new(State { verdict, compared: None, last: Time(0), moved: None }) }
    }

    /// Reads the own clock, before it is compared.
    pub(crate) fn reading(&self) -> Reading {
        Reading { own: self.own.now(), at: Instant::now() }
    }

    /// Takes a new comparison of the clock that was read before. One that says less than is known takes nothing back.
    pub(crate) fn compared(&self, comparison: Comparison, reading: Reading) {
        let mut state = self.state.lock();
        if let Some(verdict) = state.verdict.after(comparison) {
            state.verdict = verdict;
            state.compared = (verdict.agreement != ClockAgreement::Alone).then_some(reading);
        }
    }

    /// The latest time that has certainly come: that of the clock, or the lower bound of the others' clocks if a majority says
    /// that this one is behind. Nothing is decided by it, and it may go back.
    pub(crate) fn now_or_median(&self) -> Time {
        let now = self.now();
        let state = self.state.lock();
        let own = state.limited(self.own.now());
        now.max(state.agreed(own).after_ms(state.verdict.agreement.behind_ms()))
    }

    /// What the comparisons until now say.
    pub(crate) fn agreement(&self) -> ClockAgreement {
        self.state.lock().verdict.agreement
    }
}

impl State {
    /// The own clock, as far as it was compared.
    fn limited(&self, own: Time) -> Time {
        self.compared.map_or(own, |compared| own.min(compared.latest()))
    }

    /// The time, by the own clock, as far as the others agree.
    fn agreed(&self, own: Time) -> Time {
        Time(own.0.saturating_sub(self.verdict.agreement.ahead_ms()))
    }

    /// How long the own clock must run until the time is `until`, milliseconds.
    fn wait_ms(&mut self, own: Time, until: Time) -> u64 {
        if until <= self.now(own) {
            return 0;
        }
        let agreed = until.since_ms(self.agreed(own));
        self.moved.map_or(agreed, |moved| agreed.min(moved.wait_ms(own, until)))
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
        if !state.verdict.agreement.is_known() {
            return own;
        }
        let own = state.limited(own);
        state.now(own)
    }

    fn patience(&self, until: Time) -> Duration {
        let mut state = self.state.lock();
        if !state.verdict.agreement.is_known() || !self.own.runs() {
            return self.own.patience(until);
        }
        let own = state.limited(self.own.now());
        Duration::from_millis(state.wait_ms(own, until)).min(CLOCK_LOOK)
    }

    fn runs(&self) -> bool {
        self.own.runs()
    }

    fn subscribe(&self, waiting: Arc<Notify>) {
        self.own.subscribe(waiting);
    }

    fn is_known(&self) -> bool {
        self.agreement().is_known()
    }

    fn not_before(&self, at: Time) {
        let mut state = self.state.lock();
        let agreement = state.verdict.agreement;
        if agreement == ClockAgreement::Alone {
            drop(state);
            return self.own.not_before(at);
        }
        if !agreement.is_known() {
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
        state.moved = Some(Moved { to: at, own, at: Instant::now() });
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClockOffset, ManualClock, judge};
    use super::*;

    const BEGIN: Time = Time(1_750_064_400_000);
    const HOUR: u64 = 3_600_000;
    const YEARS: u64 = 87_600 * HOUR;

    const AGREES: [i64; 2] = [0, 0];

    /// A clock that is moved by hand, and is not taken for one.
    struct Running(ManualClock);

    impl Clock for Running {
        fn now(&self) -> Time {
            self.0.now()
        }
    }

    /// A clock of one of three servers after a first comparison with these offsets of the others.
    fn clock(own: Time, offsets: &[i64]) -> (ManualClock, AgreedClock) {
        let own = ManualClock::new(own);
        let clock = AgreedClock::over(Arc::new(Running(own.clone())), Comparison::UNKNOWN);
        compare(&clock, offsets);
        (own, clock)
    }

    fn compare(clock: &AgreedClock, offsets: &[i64]) {
        compare_of(clock, offsets, 3);
    }

    /// Compares a clock of one of this many voters.
    fn compare_of(clock: &AgreedClock, offsets: &[i64], voters: usize) {
        let offsets: Vec<_> =
            offsets.iter().zip(2..).map(|(ms, server)| ClockOffset { server, ms: *ms }).collect();
        clock.compared(judge(&offsets, voters), clock.reading());
    }

    /// Lets time pass on all clocks.
    async fn pass(own: &ManualClock, ms: u64) {
        own.advance(ms);
        tokio::time::advance(Duration::from_millis(ms)).await;
    }

    /// The others' offsets if this server is ahead.
    fn ahead(by: u64) -> [i64; 2] {
        [-i64::try_from(by).unwrap(); 2]
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_boots_in_another_decade_decides_nothing_and_then_by_the_others_clocks() {
        for by in [HOUR, YEARS] {
            let (own, clock) = clock(BEGIN.after_ms(by), &[]);
            assert!(!clock.is_known());
            assert_eq!(clock.now(), BEGIN.after_ms(by));
            // A log means nothing yet.
            clock.not_before(BEGIN.after_ms(2 * by));
            compare(&clock, &ahead(by));
            assert!(clock.is_known());
            assert_eq!(clock.now(), BEGIN, "no timer fires early");
            pass(&own, 7).await;
            assert_eq!(clock.now(), BEGIN.after_ms(7));
            compare(&clock, &[]);
            assert!(clock.is_known(), "what was compared once stays compared");
        }
    }

    #[test]
    fn a_clock_behind_is_used_as_it_is() {
        let (_, clock) = clock(BEGIN, &[5_000; 2]);
        assert_eq!(clock.now(), BEGIN);
    }

    #[tokio::test(start_paused = true)]
    async fn what_expires_does_so_by_the_median_on_a_server_that_is_behind_a_majority() {
        let hour = i64::try_from(HOUR).unwrap();
        let (own, clock) = clock(BEGIN, &[hour; 2]);
        assert_eq!((clock.now(), clock.now_or_median()), (BEGIN, BEGIN.after_ms(HOUR)));
        // Its clock is set right between two comparisons.
        own.advance(HOUR);
        assert_eq!(clock.now_or_median(), BEGIN.after_ms(HOUR + CLOCK_APART_MAX_MS));
        compare(&clock, &AGREES);
        assert_eq!(clock.now_or_median(), BEGIN.after_ms(HOUR));
        // Ahead of the others, or without a majority, it is the time by which the server decides.
        for (begin, offsets) in [(BEGIN.after_ms(HOUR), &[-hour; 2][..]), (BEGIN, &[hour][..])] {
            let (_, clock) = self::clock(begin, offsets);
            assert_eq!((clock.now_or_median(), clock.now()), (BEGIN, BEGIN), "{offsets:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_never_goes_back() {
        let (own, clock) = clock(BEGIN, &AGREES);
        assert_eq!(clock.now(), BEGIN);
        compare(&clock, &ahead(5_000));
        pass(&own, 3_000).await;
        assert_eq!(clock.now(), BEGIN);
        pass(&own, 3_000).await;
        assert_eq!(clock.now(), BEGIN.after_ms(1_000));
    }

    #[tokio::test(start_paused = true)]
    async fn a_log_moves_it_on_by_an_hour_at_most_and_it_runs_at_half_the_speed() {
        let (own, clock) = clock(BEGIN, &AGREES);
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

    #[tokio::test(start_paused = true)]
    async fn a_log_moves_it_on_no_further_than_the_log_goes_while_its_own_clock_jumps() {
        const LEAP: u64 = 20 * 60_000;
        // All machines have slept. Another server has compared its clock since, and has decided.
        let (own, clock) = clock(BEGIN, &AGREES);
        own.advance(LEAP);
        clock.not_before(BEGIN.after_ms(LEAP));
        assert_eq!(clock.now(), BEGIN.after_ms(LEAP));
        compare(&clock, &AGREES);
        assert_eq!(clock.now(), BEGIN.after_ms(LEAP), "its own clock shows this time");
        pass(&own, 1_000).await;
        assert_eq!(clock.now(), BEGIN.after_ms(LEAP + 1_000));
        // Its own clock is set to a wrong time, while it is moved on.
        clock.not_before(BEGIN.after_ms(LEAP + 60_000));
        own.advance(YEARS);
        compare(&clock, &ahead(YEARS));
        pass(&own, 2_000).await;
        assert_eq!(clock.now(), BEGIN.after_ms(LEAP + 61_000));
    }

    #[test]
    fn a_server_alone_uses_its_own_clock_until_it_is_a_member() {
        let clock = AgreedClock::over(Arc::new(ManualClock::new(BEGIN)), Comparison::ALONE);
        assert!(clock.is_known() && clock.now() == BEGIN);
        compare(&clock, &[]);
        assert!(!clock.is_known(), "it has others now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_set_between_two_comparisons_is_not_followed_before_the_next_one() {
        let (own, clock) = clock(BEGIN, &AGREES);
        own.advance(YEARS);
        assert_eq!(clock.now(), BEGIN.after_ms(CLOCK_APART_MAX_MS));
        pass(&own, 500).await;
        assert_eq!(clock.now(), BEGIN.after_ms(CLOCK_APART_MAX_MS + 500));
        compare(&clock, &ahead(YEARS));
        pass(&own, 10_000).await;
        assert_eq!(clock.now(), BEGIN.after_ms(10_500));
        // It was right, and the others follow.
        compare(&clock, &AGREES);
        assert_eq!(clock.now(), BEGIN.after_ms(YEARS + 10_500));
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_when_the_only_other_server_that_is_right_goes_down() {
        // The second server has booted in 1970.
        let long_ago = -i64::try_from(BEGIN.0).unwrap();
        let (own, clock) = clock(BEGIN, &[long_ago, 0]);
        assert_eq!(clock.now(), BEGIN);
        for minute in 1..=60 {
            pass(&own, 60_000).await;
            compare(&clock, &[long_ago]);
            assert_eq!(clock.agreement(), ClockAgreement::Agrees);
            assert_eq!(clock.now(), BEGIN.after_ms(60_000 * minute));
        }
        // Nothing that was compared since bounds a clock that is set.
        own.advance(YEARS);
        compare(&clock, &[long_ago]);
        assert_eq!(clock.now(), BEGIN.after_ms(HOUR + CLOCK_APART_MAX_MS));
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_when_two_wrong_ones_are_all_that_is_left_of_five() {
        let hour = i64::try_from(HOUR).unwrap();
        for wrong in [hour, -hour] {
            let (own, clock) = clock(BEGIN, &[]);
            compare_of(&clock, &[wrong, wrong, 0, 0], 5);
            // One of the wrong ones: it is barred, and decides by the right time.
            let mistaken = Time(BEGIN.0.saturating_add_signed(wrong));
            let (its_own, its) = self::clock(mistaken, &[]);
            compare_of(&its, &[-wrong, 0, -wrong, -wrong], 5);
            for minute in 1..=10 {
                pass(&own, 60_000).await;
                its_own.advance(60_000);
                compare_of(&clock, &[wrong, wrong], 5);
                compare_of(&its, &[-wrong, 0], 5);
                assert_eq!(clock.agreement(), ClockAgreement::Agrees);
                assert_eq!(clock.now(), BEGIN.after_ms(60_000 * minute));
                assert!(its.agreement().bars_from_leading());
                assert!(its.now() <= clock.now());
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_sleeps_as_long_as_the_agreed_clock_needs() {
        let second = Duration::from_secs(1);
        // The own clock is ahead, and has passed that time already.
        let (own, ahead) = clock(BEGIN.after_ms(HOUR), &ahead(HOUR));
        assert_eq!(ahead.patience(BEGIN.after_ms(1_000)), second);
        assert_eq!(ahead.patience(BEGIN), Duration::ZERO);
        assert_eq!(ahead.patience(BEGIN.after_ms(HOUR)), CLOCK_LOOK);
        pass(&own, 400).await;
        assert_eq!(ahead.patience(BEGIN.after_ms(1_000)), Duration::from_millis(600));
        // Time stands still until the own clock has come as far.
        let (own, slower) = clock(BEGIN, &AGREES);
        assert_eq!(slower.now(), BEGIN);
        compare(&slower, &[-5_000; 2]);
        assert_eq!(slower.patience(BEGIN), Duration::ZERO);
        assert_eq!(slower.patience(BEGIN.after_ms(1_000)), 6 * second);
        pass(&own, 6_000).await;
        assert_eq!(slower.now(), BEGIN.after_ms(1_000));
        // A log has moved it on: it has passed that time already, or runs at half the speed.
        let (own, moved) = clock(BEGIN, &AGREES);
        moved.not_before(BEGIN.after_ms(10_000));
        assert_eq!(moved.patience(BEGIN.after_ms(10_000)), Duration::ZERO);
        assert_eq!(moved.patience(BEGIN.after_ms(11_000)), 2 * second);
        assert_eq!(
            moved.patience(BEGIN.after_ms(25_000)),
            25 * second,
            "the own clock has caught up by then"
        );
        pass(&own, 2_000).await;
        assert_eq!(moved.patience(BEGIN.after_ms(11_000)), Duration::ZERO);
    }

    #[test]
    fn who_waits_for_a_clock_that_is_moved_by_hand_waits_for_its_notification() {
        let own = Arc::new(ManualClock::new(BEGIN.after_ms(HOUR)));
        let clock = AgreedClock::over(own, Comparison::UNKNOWN);
        for offsets in [&[][..], &ahead(HOUR)] {
            compare(&clock, offsets);
            assert_eq!(clock.patience(BEGIN.after_ms(1_000)), CLOCK_LOOK);
        }
        assert!(!clock.runs());
    }
}
