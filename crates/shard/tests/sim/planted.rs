//! The simulation finds bugs that are planted: one test for each, within a budget of seeds.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use switchward_shard::planted::Bug;

use crate::process::play;
use crate::seeds::{each, seeds};

/// Each bug must be found by one of these seeds.
const BUDGET: Range<u64> = 0..200;

/// Plays seeds until the bug is found: a run of a seed is wrong with it, and sound without it.
fn find(bug: Bug) {
    let (seeds, found) = (seeds(BUDGET), Mutex::new(BTreeMap::new()));
    each(seeds.clone(), |seed| {
        let wrong = match play(seed, Some(bug.name())) {
            Ok(outcome) => outcome.wrong.into_iter().next(),
            Err(why) => Some(why),
        };
        let Some(wrong) = wrong else { return true };
        let is_sound = play(seed, None).is_ok_and(|outcome| outcome.wrong.is_empty());
        if is_sound {
            found.lock().insert(seed, wrong);
        }
        !is_sound
    });
    match found.into_inner().pop_first() {
        Some((seed, wrong)) => {
            println!("{}: found after {} seeds, by seed {seed}: {wrong}", bug.name(), seed - seeds.start + 1);
        }
        None => panic!("{} was not found within {} seeds", bug.name(), seeds.end - seeds.start),
    }
}

#[test]
fn ack_before_sync() {
    find(Bug::AckBeforeSync);
}

#[test]
fn vote_not_synced() {
    find(Bug::VoteNotSynced);
}

#[test]
fn alone_for_ever() {
    find(Bug::AloneForEver);
}

#[test]
fn read_without_quorum() {
    find(Bug::ReadWithoutQuorum);
}

#[test]
fn decide_before_barrier() {
    find(Bug::DecideBeforeBarrier);
}

#[test]
fn unsettled_forgotten() {
    find(Bug::UnsettledForgotten);
}

#[test]
fn settle_before_confirm_lost() {
    find(Bug::SettleBeforeConfirmLost);
}

#[test]
fn forwarded_twice() {
    find(Bug::ForwardedTwice);
}

#[test]
fn wiped_server_votes() {
    find(Bug::WipedServerVotes);
}

#[test]
fn lower_boot_accepted() {
    find(Bug::LowerBootAccepted);
}

#[test]
fn snapshot_without_requests() {
    find(Bug::SnapshotWithoutRequests);
}

#[test]
fn field_dropped() {
    find(Bug::FieldDropped);
}
