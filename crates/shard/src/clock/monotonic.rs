//! The machine's clock without its jumps.
//!
//! A machine has two clocks: one says what time it is and may be set, the other only counts on, also while the process
//! is stopped and while the machine sleeps. The rule:
//!
//! 1. What time it is is asked once, at the start. From there on time is counted, so a wait of an hour takes an hour,
//!    whatever the machine's clock does meanwhile. What the kernel does to make a clock run a little faster or slower
//!    moves both clocks alike and is no jump.
//! 2. A machine's clock that is set while the server runs is believed when it has stood apart by about the same for
//!    [`CLOCK_BELIEVED`], seen at looks that are no further apart than [`CLOCK_UNSEEN_MAX`]. Until then it is a jump that
//!    may end as it began, and nothing falls due by it.
//! 3. Once believed, a clock ahead is followed at once. A clock behind is followed by running at half the speed until
//!    both agree: time never goes back and never stands still.
//! 4. A log that goes further than the clock ([`Clock::not_before`]) moves it on to there, and it counts from there: what
//!    was asked for after that falls due in its time, instead of after the clock has caught up. Then rule 3 holds.
//!
//! What it cannot know: whether the machine's clock is right when the server starts.

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;
use switchward_machine::Time;

use super::{Clock, SystemClock};
use crate::limits::{CLOCK_AGREES, CLOCK_BELIEVED, CLOCK_SAME, CLOCK_UNSEEN_MAX};

/// The two clocks of a machine.
pub trait RawClocks: Send + Sync + 'static {
    /// The time since 1970; may jump either way.
    fn wall(&self) -> Duration;

    /// Counts on from an arbitrary start; never goes back.
    fn counted(&self) -> Duration;
}

/// The operating system's wall clock and monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct MachineClocks;

impl RawClocks for MachineClocks {
    fn wall(&self) -> Duration {
        Duration::from_millis(SystemClock.now().0)
    }

    fn counted(&self) -> Duration {
        #[cfg(target_os = "linux")]
        let counts = ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let counts = ClockId::Monotonic;
        let count = clock_gettime(counts);
        let (seconds, nanos) = (u64::try_from(count.tv_sec), u32::try_from(count.tv_nsec));
        Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
    }
}

/// See the module.
pub struct MonotonicClock {
    raw: Box<dyn RawClocks>,
    state: Mutex<State>,
}

/// The clock's state.
struct State {
    /// The time, since 1970.
    now: Duration,
    /// The count at that time.
    counted: Duration,
    /// The gap between the clock and the machine's clock, if they differ.
    apart: Option<Apart>,
}

/// A machine's clock that differs from this one.
#[derive(Debug, Clone, Copy)]
struct Apart {
    /// How far it is ahead or behind.
    gap: Gap,
    /// When the gap was first seen, by the count.
    since: Duration,
    /// When the gap was last seen, by the count.
    seen: Duration,
}

#[derive(Debug, Clone, Copy)]
enum Gap {
    Ahead(Duration),
    Behind(Duration),
}

impl MonotonicClock {
    /// Creates a clock that starts at the machine's time.
    #[must_use]
    pub fn new() -> Self {
        Self::over(Box::new(MachineClocks))
    }

    /// The same over other raw clocks.
    #[must_use]
    pub fn over(raw: Box<dyn RawClocks>) -> Self {
        let state = State { now: raw.wall(), counted: raw.counted(), apart: None };
        Self { raw, state: Mutex::new(state) }
    }
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Time {
        let mut state = self.state.lock();
        state.look(self.raw.wall(), self.raw.counted());
        Time(u64::try_from(state.now.as_millis()).unwrap_or(u64::MAX))
    }

    fn not_before(&self, at: Time) {
        let mut state = self.state.lock();
        state.look(self.raw.wall(), self.raw.counted());
        state.now = state.now.max(Duration::from_millis(at.0));
    }
}

impl State {
    fn look(&mut self, wall: Duration, counted: Duration) {
        let passed = counted.saturating_sub(self.counted);
        self.counted = self.counted.max(counted);
        self.now = self.now.saturating_add(passed);
        let gap = if wall >= self.now { Gap::Ahead(wall - self.now) } else { Gap::Behind(self.now - wall) };
        let Some(apart) = self.stands_apart(gap) else { return };
        if self.counted.saturating_sub(apart.since) < CLOCK_BELIEVED {
            return;
        }
        match gap {
            Gap::Ahead(by) => {
                self.now = self.now.saturating_add(by);
                self.apart = None;
            }
            Gap::Behind(by) => {
                let held = (passed / 2).min(by);
                self.now = self.now.saturating_sub(held);
                self.apart = Some(Apart { gap: Gap::Behind(by - held), ..apart });
            }
        }
    }

    /// Records the gap to the machine's clock; `None` if both agree.
    fn stands_apart(&mut self, gap: Gap) -> Option<Apart> {
        let now = self.counted;
        let known = self
            .apart
            .filter(|apart| apart.gap.same(gap) && now.saturating_sub(apart.seen) <= CLOCK_UNSEEN_MAX);
        self.apart =
            (!gap.is_none()).then(|| Apart { gap, since: known.map_or(now, |apart| apart.since), seen: now });
        self.apart
    }
}

impl Gap {
    fn is_none(self) -> bool {
        match self {
            Self::Ahead(by) | Self::Behind(by) => by <= CLOCK_AGREES,
        }
    }

    /// Returns true if both gaps are about the same.
    fn same(self, other: Self) -> bool {
        match (self, other) {
            (Self::Ahead(one), Self::Ahead(two)) | (Self::Behind(one), Self::Behind(two)) => {
                one.abs_diff(two) <= CLOCK_SAME
            }
            (Self::Ahead(_), Self::Behind(_)) | (Self::Behind(_), Self::Ahead(_)) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const BEGIN: Duration = Duration::from_secs(1_750_064_400);
    const HOUR: Duration = Duration::from_secs(3_600);
    const LOOK: Duration = Duration::from_secs(20);

    /// A machine's clocks, moved by hand.
    #[derive(Clone)]
    struct Moved(Arc<Mutex<(Duration, Duration)>>);

    impl RawClocks for Moved {
        fn wall(&self) -> Duration {
            self.0.lock().0
        }

        fn counted(&self) -> Duration {
            self.0.lock().1
        }
    }

    impl Moved {
        fn new() -> (Self, MonotonicClock) {
            let moved = Self(Arc::new(Mutex::new((BEGIN, Duration::from_secs(7)))));
            (moved.clone(), MonotonicClock::over(Box::new(moved)))
        }

        /// Lets time pass on both clocks.
        fn pass(&self, by: Duration) {
            let mut both = self.0.lock();
            both.0 += by;
            both.1 += by;
        }

        fn set(&self, wall: Duration) {
            self.0.lock().0 = wall;
        }
    }

    fn since_begin(clock: &MonotonicClock) -> Duration {
        Duration::from_millis(clock.now().0) - BEGIN
    }

    /// Lets time pass in steps; returns what the clock said at each.
    fn pass(moved: &Moved, clock: &MonotonicClock, time: Duration) -> Vec<Duration> {
        let looks = time.as_secs() / LOOK.as_secs();
        (0..looks)
            .map(|_| {
                moved.pass(LOOK);
                since_begin(clock)
            })
            .collect()
    }

    #[test]
    fn a_jump_that_ends_moves_nothing() {
        for to in [BEGIN + HOUR, BEGIN - HOUR] {
            let (moved, clock) = Moved::new();
            moved.set(to);
            let said = pass(&moved, &clock, CLOCK_BELIEVED - LOOK);
            moved.set(BEGIN + CLOCK_BELIEVED - LOOK);
            let after = pass(&moved, &clock, HOUR);
            let all: Vec<_> = said.into_iter().chain(after).collect();
            let counted: Vec<_> = (1u32..).map(|look| LOOK * look).take(all.len()).collect();
            assert_eq!(all, counted);
        }
    }

    #[test]
    fn a_clock_that_stands_ahead_is_followed_after_its_time_and_not_before() {
        let (moved, clock) = Moved::new();
        moved.set(BEGIN + HOUR);
        assert_eq!(since_begin(&clock), Duration::ZERO);
        let said = pass(&moved, &clock, CLOCK_BELIEVED);
        let (last, before) = said.split_last().unwrap();
        assert_eq!(before.last(), Some(&(CLOCK_BELIEVED - LOOK)));
        assert_eq!(*last, CLOCK_BELIEVED + HOUR);
    }

    #[test]
    fn a_clock_that_stands_behind_is_followed_at_half_the_speed() {
        let (moved, clock) = Moved::new();
        moved.set(BEGIN - HOUR);
        let said = pass(&moved, &clock, CLOCK_BELIEVED + 3 * HOUR);
        assert!(said.windows(2).all(|two| two[0] < two[1]), "time never stops");
        assert_eq!(*said.last().unwrap(), CLOCK_BELIEVED + 2 * HOUR, "both clocks agree in the end");
        let half = said[usize::try_from((CLOCK_BELIEVED + HOUR).as_secs() / LOOK.as_secs()).unwrap()];
        assert!(half.abs_diff(CLOCK_BELIEVED + HOUR / 2) <= LOOK, "{half:?}");
    }

    #[test]
    fn two_jumps_that_nobody_saw_end_are_not_one_that_stood() {
        let (moved, clock) = Moved::new();
        moved.set(BEGIN + HOUR);
        assert_eq!(since_begin(&clock), Duration::ZERO);
        moved.pass(CLOCK_BELIEVED * 2);
        assert_eq!(since_begin(&clock), CLOCK_BELIEVED * 2, "the clock was not checked in between");
        let said = pass(&moved, &clock, CLOCK_BELIEVED);
        assert_eq!(*said.last().unwrap(), CLOCK_BELIEVED * 3 + HOUR);
        // A clock that jumps again and again is never believed.
        let (moved, clock) = Moved::new();
        for jump in 1..200u32 {
            moved.set(BEGIN + HOUR * (1 + jump % 2) + LOOK * jump);
            moved.pass(LOOK);
            assert_eq!(since_begin(&clock), LOOK * jump);
        }
    }

    #[test]
    fn a_log_that_goes_further_moves_the_clock_on_and_it_runs() {
        let (moved, clock) = Moved::new();
        clock.not_before(Time(u64::try_from((BEGIN + HOUR).as_millis()).unwrap()));
        assert_eq!(since_begin(&clock), HOUR);
        moved.pass(LOOK);
        assert_eq!(since_begin(&clock), HOUR + LOOK);
        clock.not_before(Time(5));
        assert_eq!(since_begin(&clock), HOUR + LOOK, "an earlier time changes nothing");
    }

    #[test]
    fn the_machines_clocks_agree_with_the_systems() {
        let (before, clock) = (SystemClock.now(), MonotonicClock::new());
        let (now, after) = (clock.now(), SystemClock.now());
        assert!(before.0 <= now.0 + 1 && now.0 <= after.0 + 1, "{before:?} {now:?} {after:?}");
        assert!(MachineClocks.counted() > Duration::ZERO);
    }
}
