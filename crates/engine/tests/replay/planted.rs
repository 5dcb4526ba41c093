//! Deliberate impurities: a replay that depends on anything but its decisions is detected.

use std::sync::Arc;
use switchward_engine::evolve;
use switchward_machine::Time;
use switchward_state::{Changes, Decision, Row, View, ViewError};

use crate::harness::{Evolve, Mode, play};

/// The labels of a session in hash order.
#[expect(clippy::disallowed_types, reason = "planted to be found")]
fn in_hash_order(decision: &Decision, view: &dyn View) -> Result<Changes, ViewError> {
    use std::collections::HashSet;
    let mut changes = evolve(decision, view)?;
    for row in changes.iter_mut().filter_map(|(_, row)| row.as_mut()) {
        if let Row::Session(session) = Arc::make_mut(row) {
            let labels: HashSet<_> = session.labels.drain(..).collect();
            session.labels.extend(labels);
        }
    }
    Ok(changes)
}

/// The time of a clock instead of the decision's.
#[expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "planted to be found")]
fn by_the_clock(decision: &Decision, view: &dyn View) -> Result<Changes, ViewError> {
    use std::time::{SystemTime, UNIX_EPOCH};
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = Time(u64::try_from(now).unwrap_or(u64::MAX));
    let mut changes = evolve(decision, view)?;
    for row in changes.iter_mut().filter_map(|(_, row)| row.as_mut()) {
        if let Row::Session(session) = Arc::make_mut(row) {
            session.updated = now;
        }
    }
    Ok(changes)
}

#[track_caller]
fn found(planted: Evolve) {
    let broken = play(1, 60, Mode::Live, planted).expect_err("the replay differs, and nobody noticed");
    assert!(broken.starts_with("a replay builds other rows"), "{broken}");
}

#[test]
fn a_hash_order_in_evolve_is_found() {
    found(in_hash_order);
}

#[test]
fn a_clock_in_evolve_is_found() {
    found(by_the_clock);
}
