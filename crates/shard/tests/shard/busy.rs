//! A server whose threads are all busy, and what does not wait for them.

use std::collections::BTreeSet;
use std::sync::mpsc;
use switchward_testkit::{PATIENCE, until};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::ensemble::Ensemble;
use crate::joining::callers;

const GROUP: usize = 1;
/// The one of the three servers that has no threads for Raft alone.
const SHARING: u64 = 2;

/// Holds up all threads of a runtime until what it returns is dropped.
fn hold_up(runtime: &Runtime) -> Vec<mpsc::Sender<()>> {
    let (begun, threads) = mpsc::channel();
    let block = |_| {
        let (release, waits) = mpsc::channel::<()>();
        let begun = begun.clone();
        runtime.spawn(async move {
            begun.send(()).unwrap();
            // Nothing is ever sent.
            let _released = waits.recv();
        });
        release
    };
    let releases: Vec<_> = (0..runtime.metrics().num_workers()).map(block).collect();
    for _ in &releases {
        threads.recv_timeout(PATIENCE).expect("a thread is held up");
    }
    releases
}

#[test]
fn a_leader_writes_entries_although_its_server_is_too_busy_for_anything_else() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    let members = BTreeSet::from([1_u64, 2, 3]);
    let (leader, raft) = runtime.block_on(async {
        let mut leader = ensemble.leader(GROUP).await;
        if leader == SHARING {
            leader = ensemble.shard(leader, GROUP).hand_over(Some(1)).await.unwrap();
        }
        let raft = ensemble.shard(leader, GROUP).group().raft().clone();
        until("the last change of the members is complete", async || {
            raft.change_membership(members.clone(), false).await.is_ok()
        })
        .await;
        (leader, raft)
    });
    let held = hold_up(ensemble.runtime(leader));
    // It goes to the disk and to the other servers, and is applied, before it is answered.
    let entry = async { timeout(PATIENCE, raft.change_membership(members, false)).await };
    let written = runtime.block_on(entry);
    drop(held);
    written.expect("it waits for no thread of its server").unwrap();
    ensemble.assert_sound();
}
