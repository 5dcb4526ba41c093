//! The simulation finds bugs that are planted in the engine: one test for each, within a budget of seeds.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use switchward_state::planted::Bug;
use switchward_state::seal::KeyRing;
use switchward_state::{Key, Row, View, ViewError};
use switchward_testkit::{Rows, caught};

use crate::phases::{installed, play};
use crate::seeds::named;

/// Each bug must be found by one of these seeds.
const BUDGET: Range<u64> = 0..200;

/// Rows that plant a bug in what is decided and applied on them.
pub(crate) struct Planted<'r> {
    pub(crate) rows: &'r Rows,
    pub(crate) bug: Option<Bug>,
}

impl View for Planted<'_> {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        self.rows.row(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        self.rows.scan(prefix, after, visit)
    }

    fn ring(&self) -> &KeyRing {
        self.rows.ring()
    }

    fn planted(&self) -> Option<Bug> {
        self.bug
    }
}

/// Plays seeds until the bug is found: a run of a seed is wrong with it, and sound without it. All seeds that `ORDER_SEEDS`
/// names are played, to count those that find it.
#[expect(clippy::disallowed_macros, reason = "`make planted` shows what was found")]
fn find(bug: Bug) {
    let (seeds, mut found, rows) = (named(), Vec::new(), installed());
    let (stops, seeds) = (seeds.is_none(), seeds.unwrap_or(BUDGET));
    for seed in seeds.clone() {
        let Err(wrong) = caught(|| play(&rows, seed, Some(bug))) else { continue };
        if caught(|| play(&rows, seed, None)).is_err() {
            continue;
        }
        found.push((seed, wrong));
        if stops {
            break;
        }
    }
    let Some((seed, wrong)) = found.first() else {
        panic!("{} was not found within {} seeds", bug.name(), seeds.end - seeds.start)
    };
    let tried = if stops { seed + 1 } else { seeds.end } - seeds.start;
    println!("{}: {} of {tried} seeds find it, the first is {seed}: {wrong}", bug.name(), found.len());
}

#[test]
fn request_forgotten() {
    find(Bug::RequestForgotten);
}

#[test]
fn clock_back() {
    find(Bug::ClockBack);
}

#[test]
fn timer_unchecked() {
    find(Bug::TimerUnchecked);
}

#[test]
fn deferred_by_another_attempt() {
    find(Bug::DeferredByAnotherAttempt);
}

#[test]
fn failed_by_another_round() {
    find(Bug::FailedByAnotherRound);
}

#[test]
fn attempt_not_counted() {
    find(Bug::AttemptNotCounted);
}

#[test]
fn confirmed_twice() {
    find(Bug::ConfirmedTwice);
}

#[test]
fn confirmed_after_report() {
    find(Bug::ConfirmedAfterReport);
}

#[test]
fn settle_lost() {
    find(Bug::SettleLost);
}

#[test]
fn estimate_held() {
    find(Bug::EstimateHeld);
}

#[test]
fn freed_early() {
    find(Bug::FreedEarly);
}

#[test]
fn free_call_not_settled() {
    find(Bug::FreeCallNotSettled);
}

#[test]
fn pending_not_counted() {
    find(Bug::PendingNotCounted);
}

#[test]
fn reservation_permanent() {
    find(Bug::ReservationPermanent);
}
