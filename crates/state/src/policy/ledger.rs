//! Ledgers: counters that span sessions. One row for each rule's capability of a process and role, so that
//! editing a definition keeps the counters of the rules that it keeps (`tests/corpus/checkpoint/sentences.tsv#1b-7b`).

use minicbor::{CborLen, Decode, Encode};
use std::cmp::Ordering;
use switchward_machine::{Digest, Limit, Micros, Period, Time};

use crate::limits::RESERVATION_LAPSE_MS;
use crate::policy::period;

/// The counters of one rule. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct LedgerRow {
    /// When calls were permitted, oldest first; kept for the longest window seen.
    #[n(0)]
    pub calls: Vec<Time>,
    /// The longest window that asked for it, milliseconds.
    #[n(1)]
    pub window_ms: u64,
    /// Calls that are reserved, and reserved money of permitted calls; by the call's name.
    #[n(2)]
    pub reservations: Vec<Reservation>,
    /// Money reported, per kind of period, in the period it names.
    #[n(3)]
    pub spent: Vec<Spent>,
}

/// One call that holds something.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Reservation {
    /// Its name.
    #[n(0)]
    pub call: Digest,
    /// When it was made.
    #[n(1)]
    pub at: Time,
    /// Money held until it is reported.
    #[n(2)]
    pub estimate: Micros,
    /// Whether the call was permitted; then it stands in `calls` too, and does not lapse.
    #[n(3)]
    pub confirmed: bool,
}

/// Money of one period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Spent {
    /// The kind of period.
    #[n(0)]
    pub period: Period,
    /// Its beginning.
    #[n(1)]
    pub start: Time,
    /// What was reported in it.
    #[n(2)]
    pub micros: Micros,
}

/// What a limit leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitLeft {
    /// This many further calls.
    Calls(u64),
    /// This much further money.
    Money(Micros),
    /// None, until this time at the earliest.
    Full(Time),
}

impl LedgerRow {
    /// What this limit leaves for a call that is believed to cost `estimate`. Reservations count as calls and as
    /// money spent (`tests/corpus/checkpoint/sentences.tsv#7-8d`).
    pub(crate) fn left(&self, limit: Limit, estimate: Micros, now: Time) -> LimitLeft {
        match limit {
            Limit::Rate { max, window_ms } => self.rate_left(max, window_ms, now),
            Limit::Money { max, period } => self.money_left(max, period, estimate, now),
        }
    }

    fn rate_left(&self, max: u64, window_ms: u64, now: Time) -> LimitLeft {
        let inside = |at: Time| now.since_ms(at) < window_ms;
        let pending = self.reservations.iter().filter(|held| !held.confirmed && held.live(now));
        let mut times: Vec<Time> = pending.map(|held| held.at).collect();
        times.extend(self.calls.iter().copied().filter(|at| inside(*at)));
        let used = u64::try_from(times.len()).unwrap_or(u64::MAX);
        if used < max {
            return LimitLeft::Calls(max - used);
        }
        // When this call leaves the window, the next one is allowed.
        times.sort_unstable();
        let leaver = usize::try_from(used - max).ok().and_then(|at| times.get(at).copied());
        LimitLeft::Full(leaver.map_or(now, |at| at.after_ms(window_ms)))
    }

    fn money_left(&self, max: Micros, period: Period, estimate: Micros, now: Time) -> LimitLeft {
        let start = period::start(period, now);
        let held = self.reservations.iter().filter(|held| held.confirmed || held.live(now));
        let used = held.fold(self.spent_in(period, start), |sum, held| sum.plus(held.estimate));
        if used >= max || used.plus(estimate) > max {
            return LimitLeft::Full(period::next(period, now));
        }
        LimitLeft::Money(max.minus(used))
    }

    fn spent_in(&self, period: Period, start: Time) -> Micros {
        let of = self.spent.iter().find(|spent| spent.period == period && spent.start == start);
        of.map_or(Micros(0), |spent| spent.micros)
    }

    /// Adds money to the period of each kind that `at` lies in; what lies before the present period is gone.
    pub(crate) fn spend(&mut self, micros: Micros, at: Time) {
        for period in [Period::Hour, Period::Day, Period::Month] {
            let start = period::start(period, at);
            let Some(spent) = self.spent.iter_mut().find(|spent| spent.period == period) else {
                self.spent.push(Spent { period, start, micros });
                continue;
            };
            match spent.start.cmp(&start) {
                Ordering::Less => *spent = Spent { period, start, micros },
                Ordering::Equal => spent.micros = spent.micros.plus(micros),
                Ordering::Greater => {}
            }
        }
    }

    /// Holds a call, instead of what was held for it before.
    pub(crate) fn hold(&mut self, held: Reservation) {
        self.reservations.retain(|known| known.call != held.call);
        let at = self.reservations.partition_point(|known| known.call < held.call);
        self.reservations.insert(at, held);
    }

    /// Forgets calls that no window sees any more.
    pub(crate) fn prune(&mut self, now: Time) {
        let window = self.window_ms;
        self.calls.retain(|at| now.since_ms(*at) < window);
    }

    /// The row without the reservations that nobody confirmed, for the bug that they do not count.
    #[cfg(feature = "planted")]
    pub(crate) fn confirmed_only(&self) -> Self {
        let mut row = self.clone();
        row.reservations.retain(|held| held.confirmed);
        row
    }

    /// When the oldest reservation that nobody confirmed lapses.
    pub fn lapses(&self) -> Option<Time> {
        let pending = self.reservations.iter().filter(|held| !held.confirmed);
        pending.map(|held| held.at.after_ms(RESERVATION_LAPSE_MS)).min()
    }
}

impl Reservation {
    /// Returns true if it has not lapsed.
    #[must_use]
    pub fn live(&self, now: Time) -> bool {
        now.since_ms(self.at) < RESERVATION_LAPSE_MS
    }
}
