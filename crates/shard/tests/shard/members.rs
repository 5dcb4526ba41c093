//! Members come and go: what a server may say depends on the membership in force.

use futures::future::join;
use openraft::BasicNode;
use std::collections::BTreeSet;
use switchward_shard::Failure;
use switchward_testkit::{PATIENCE, until};

use crate::commands::{DEPLOY_GATE, answer, definition, start};
use crate::three_voters::{callers, hand_over, install, key_in};
use crate::trio::{GROUPS, NODES, Trio};

/// Adds the second and the third server to every group of the first one.
async fn grow(trio: &Trio) {
    for group in 0..usize::try_from(GROUPS).unwrap() {
        let raft = trio.shard(NODES[0], group).group().raft();
        for node in &NODES[1..] {
            raft.add_learner(*node, BasicNode::default(), true).await.unwrap();
        }
        raft.change_membership(BTreeSet::from(NODES), false).await.unwrap();
    }
}

#[test]
fn a_server_that_is_no_longer_alone_answers_nothing_without_a_majority() {
    let trio = Trio::growing();
    let runtime = callers();
    let (key, missing) = (key_in(&trio, 1, "session"), key_in(&trio, 1, "missing"));
    let (lonely, others) = (trio.cluster(NODES[0]).clone(), &NODES[1..]);
    runtime.block_on(async {
        install(&trio).await;
        lonely.execute(start(&definition(DEPLOY_GATE), &key)).await.unwrap();
        grow(&trio).await;
        lonely.execute(answer(&key, "with all three", "yes")).await.unwrap();
        trio.network.isolate(NODES[0], others);
        // The others may know better from now on.
        let new = trio.leader(1, Some(NODES[0])).await;
        trio.cluster(new).execute(answer(&key, "without the first", "yes")).await.unwrap();
        let refused = lonely.execute(answer(&missing, "refused", "yes"));
        let (refused, read) = join(refused, trio.shard(NODES[0], 1).read()).await;
        assert_eq!((refused, read.err()), (Err(Failure::Electing), Some(Failure::Electing)));
        trio.network.heal();
        for replicas in trio.settled().await {
            assert!(replicas.iter().all(|digest| *digest == replicas[0]), "{replicas:?}");
        }
    });
    trio.assert_sound();
}

#[test]
fn a_leader_without_a_majority_stops_its_tasks_and_says_so() {
    let trio = Trio::open();
    let runtime = callers();
    let key = key_in(&trio, 1, "session");
    runtime.block_on(async {
        install(&trio).await;
        let old = trio.leader(1, None).await;
        let shard = trio.shard(old, 1);
        trio.cluster(old).execute(start(&definition(DEPLOY_GATE), &key)).await.unwrap();
        until("the leader leads", async || shard.leads()).await;
        let mut changes = shard.watch_leadership();
        let others: Vec<u64> = NODES.into_iter().filter(|node| *node != old).collect();
        trio.network.isolate(old, &others);
        let stops = async {
            while shard.leads() {
                assert!(changes.changed().await);
            }
        };
        tokio::time::timeout(PATIENCE, stops).await.expect("it notices that it has no majority");
        let new = trio.leader(1, Some(old)).await;
        until("the new leader leads", async || trio.shard(new, 1).leads()).await;
        until("the old leader hands out no timers", async || shard.timer_counts().waiting == 0).await;
        // By its own vote it is still the leader.
        assert!(!shard.leads());
        trio.network.heal();
        let again = trio.leader(1, None).await;
        until("a leader leads again", async || trio.shard(again, 1).leads()).await;
    });
    trio.assert_sound();
}

#[test]
fn a_leader_that_was_removed_leads_nothing() {
    let trio = Trio::open();
    let runtime = callers();
    runtime.block_on(async {
        let old = trio.leader(1, None).await;
        hand_over(&trio, 1, old).await;
        let shard = trio.shard(old, 1);
        until("the leader leads", async || shard.leads()).await;
        let others: BTreeSet<u64> = NODES.into_iter().filter(|node| *node != old).collect();
        shard.group().raft().change_membership(others, false).await.unwrap();
        until("the old leader does not lead", async || !shard.leads()).await;
        let new = trio.leader(1, Some(old)).await;
        until("another server leads", async || trio.shard(new, 1).leads()).await;
    });
    trio.assert_sound();
}
