//! The rows of replicas, compared by the product's own verification: all replicas of a group hold the same ones at each entry.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use switchward_api::v1::{self, ClusterReplicaComparison as Comparison};
use tokio::time::sleep;

use super::calls::{Answer, Caller, Repeat};
use super::plan::SERVERS;
use super::workload::Shared;

/// The catalogue and the shards.
const GROUPS: [u64; 3] = [0, 1, 2];
/// The pause between two comparisons while faults go on.
const BETWEEN: Duration = Duration::from_secs(5);
/// The longest wait at rest until all replicas of a group are compared.
const COMPARED_MAX: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// Compares the replicas of all groups that can be reached, until `stop` is set.
pub(crate) async fn watch(shared: Arc<Shared>, mut person: Caller) {
    let mut last = Instant::now();
    while !shared.stop.load(Ordering::Relaxed) {
        sleep(LOOK).await;
        if last.elapsed() < BETWEEN {
            continue;
        }
        last = Instant::now();
        for group in GROUPS {
            if shared.stop.load(Ordering::Relaxed) {
                return;
            }
            let Ok(compared) = person.line().verify(group).await else { continue };
            let mut records = shared.records.lock();
            records.seen.add("groups compared under faults");
            records.wrong.extend(different(compared.get_ref()));
        }
    }
}

/// Compares all replicas of all groups at rest. Returns what is wrong.
pub(crate) async fn at_rest(shared: &Shared, person: &mut Caller) -> Vec<String> {
    let mut wrong = Vec::new();
    for group in GROUPS {
        let begun = Instant::now();
        loop {
            let answered = person.insist(Repeat::All, |way| way.verify(group)).await;
            if let Answer::Done(compared) = &answered {
                let different = different(compared);
                if different.is_some() {
                    wrong.extend(different);
                    break;
                }
                if agree(compared) {
                    shared.records.lock().seen.add("groups compared at rest");
                    break;
                }
            }
            if begun.elapsed() > COMPARED_MAX {
                wrong.push(format!("the replicas of group {group} cannot be compared: {answered:?}"));
                break;
            }
            sleep(LOOK).await;
        }
    }
    wrong
}

/// Says which replicas differ, if any do.
fn different(compared: &v1::VerifyGroupResponse) -> Option<String> {
    let differs = compared.replicas.iter().any(|one| one.comparison() == Comparison::Differs);
    differs.then(|| format!("the rows of replicas differ: {compared:?}"))
}

/// Returns true if the replicas of all servers have one digest.
fn agree(compared: &v1::VerifyGroupResponse) -> bool {
    compared.replicas.len() == SERVERS.len()
        && compared.replicas.iter().all(|one| one.comparison() == Comparison::Agrees)
}

#[test]
fn replicas_agree_if_all_have_one_digest() {
    let compared = |comparisons: &[Comparison]| {
        let replica =
            |one: &Comparison| v1::ClusterReplicaDigest { comparison: (*one).into(), ..Default::default() };
        v1::VerifyGroupResponse { replicas: comparisons.iter().map(replica).collect(), ..Default::default() }
    };
    for (comparisons, expected) in [
        ([Comparison::Agrees; 3].as_slice(), (true, false)),
        ([Comparison::Agrees; 2].as_slice(), (false, false)),
        ([Comparison::Agrees, Comparison::Unreachable, Comparison::Agrees].as_slice(), (false, false)),
        ([Comparison::Agrees, Comparison::Agrees, Comparison::Differs].as_slice(), (false, true)),
    ] {
        let compared = compared(comparisons);
        assert_eq!((agree(&compared), different(&compared).is_some()), expected, "{comparisons:?}");
    }
}
