//! A leader that has become a learner.

use std::collections::BTreeSet;
use switchward_testkit::until;

use crate::commands::{DEPLOY_GATE, definition, start};
use crate::ensemble::{Ensemble, insist};
use crate::joining::callers;

const GROUP: usize = 1;

/// openraft lets a leader go on that became a learner, and its heartbeats keep the voters from electing.
#[test]
fn a_leader_that_votes_no_longer_hands_over() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    runtime.block_on(async {
        let leader = ensemble.leader(GROUP).await;
        let others: BTreeSet<u64> = (1..=3).filter(|server| *server != leader).collect();
        let raft = ensemble.shard(leader, GROUP).group().raft();
        let change = async || raft.change_membership(others.clone(), true).await.is_ok();
        until("the voters are the other two", change).await;
        until("another one leads", async || ensemble.leader(GROUP).await != leader).await;
        insist(ensemble.cluster(leader), start(&definition(DEPLOY_GATE), "voteless")).await;
    });
    ensemble.assert_sound();
}
