//! Virtual clocks: each server has one, which is ahead or behind and may jump.

use switchward_machine::Time;
use switchward_testkit::Rng;

/// The time at the start of a run: twenty minutes after a full hour, so that no period of a budget ends within the run.
const BEGIN: Time = Time(1_782_000_000_000 + 20 * 60_000);
/// How far clocks differ without a fault, milliseconds.
const SKEW_MS: i64 = 500;
/// How far a clock may be behind and ahead after jumps, milliseconds. A run lasts less than two minutes: together that is
/// less than the time after which a reservation lapses, less the time for which it can be used.
const BEHIND_MS: i64 = -120_000;
const AHEAD_MS: i64 = 240_000;

/// The clocks of all servers.
pub(crate) struct Clocks {
    /// How far each is ahead, milliseconds.
    ahead: Vec<i64>,
}

/// How a clock jumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    Ahead,
    Back,
}

impl Clocks {
    /// Draws the clocks of this number of servers.
    pub(crate) fn new(rng: &mut Rng, servers: usize) -> Self {
        let skew = |rng: &mut Rng| i64::try_from(rng.below(2 * 500 + 1)).unwrap() - SKEW_MS;
        Self { ahead: (0..servers).map(|_| skew(rng)).collect() }
    }

    /// What the clock of a server shows this long after the start, milliseconds.
    pub(crate) fn read(&self, server: usize, now: u64) -> Time {
        Time((BEGIN.0 + now).saturating_add_signed(self.ahead[server]))
    }

    /// Sets all clocks to one time, which no shard has passed.
    pub(crate) fn agree(&mut self) {
        self.ahead.fill(AHEAD_MS);
    }

    /// Moves a clock by a few seconds or by minutes, and returns the direction.
    pub(crate) fn jump(&mut self, rng: &mut Rng, server: usize) -> Jump {
        let most = *rng.pick(&[3_000, 20_000, AHEAD_MS]);
        let to = i64::try_from(rng.below(usize::try_from(2 * most).unwrap())).unwrap() - most;
        let to = to.clamp(BEHIND_MS, AHEAD_MS);
        let jump = if to < self.ahead[server] { Jump::Back } else { Jump::Ahead };
        self.ahead[server] = to;
        jump
    }
}
