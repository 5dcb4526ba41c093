//! What a group's log keeps for a voter that is away, and for how long.

use bytes::Bytes;
use futures::future::join_all;
use openraft::{RaftMetrics, async_runtime::WatchReceiver};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;
use switchward_machine::TenantId;
use switchward_shard::{LogRetention, Payload, TypeConfig, limits::LOG_BYTES_MAX};
use switchward_state::catalogue::Role;
use switchward_state::session::{Remove, Removing, SessionCommand};
use switchward_state::{Actor, Body, Decision, Level, Reply, Scope, TurnRecord};
use switchward_testkit::until;
use tokio::runtime::Runtime;

use crate::commands::{DEPLOY_GATE, answer, command, definition, session, start, tenant};
use crate::server::BEGIN;
use crate::three_voters::{callers, install, key_in};
use crate::trio::{NODES, Trio};

/// The leader of all groups, and the voter that goes away.
const LEADER: u64 = NODES[0];
const AWAY: u64 = NODES[2];
/// The shard that is written to.
const GROUP: usize = 1;
const LONG_BYTES: usize = 128 * 1024;

/// Writes entries of about this length that change nothing.
async fn fill(trio: &Trio, entries: usize, bytes: usize) {
    let by = Actor { subject: "x".repeat(bytes), role: Role::Agent };
    let turn = TurnRecord {
        tenant: TenantId(1),
        scope: Scope::Shard,
        by,
        request: None,
        reply: Reply::Done,
        events: vec![],
    };
    let entry = Bytes::from(Decision::new(Level::FIRST, BEGIN, vec![turn]).encode());
    let shard = trio.shard(LEADER, GROUP);
    let raft = shard.group().raft();
    // An election may be under way, and a new leader has no majority yet.
    until("the leader has a majority", async || shard.read().await.is_ok()).await;
    for from in (0..entries).step_by(256) {
        let written = (from..entries.min(from + 256)).map(|_| raft.client_write(Payload(entry.clone())));
        for written in join_all(written).await {
            written.unwrap();
        }
    }
}

/// Lets all three have entries that are not yet enough for a purge, and one of them go away. Returns its last entry.
fn left(trio: &mut Trio, runtime: &Runtime) -> u64 {
    const ENOUGH: usize = LOG_BYTES_MAX as usize * 3 / 4;
    runtime.block_on(fill(trio, ENOUGH / LONG_BYTES, LONG_BYTES));
    runtime.block_on(trio.settled());
    let metrics = trio.shard(LEADER, GROUP).group().raft().metrics();
    let last = metrics.borrow_watched().last_log_index.unwrap();
    runtime.block_on(until("the leader knows that all have the last entry", async || {
        knows(&metrics.borrow_watched(), last)
    }));
    trio.kill(AWAY);
    last
}

/// Returns true if every voter has confirmed this entry to the leader. One that has applied it may not have done so yet: the
/// other two are a majority.
fn knows(leader: &RaftMetrics<TypeConfig>, last: u64) -> bool {
    let confirmed = leader.replication.iter().flat_map(BTreeMap::values);
    confirmed.map(|matched| matched.map(|id| id.index)).min() == Some(Some(last))
}

fn purged(trio: &Trio) -> Option<u64> {
    trio.shard(LEADER, GROUP).group().raft().metrics().borrow_watched().purged.map(|id| id.index)
}

/// Opens the voter again, and waits until it has all.
fn back(trio: &mut Trio, runtime: &Runtime) {
    trio.begin(AWAY);
    for replicas in runtime.block_on(trio.settled()) {
        assert!(replicas.iter().all(|digest| *digest == replicas[0]), "{replicas:?}");
    }
    trio.assert_sound();
}

#[test]
fn a_voter_that_was_away_for_thousands_of_entries_catches_up_from_the_log() {
    let mut trio = Trio::patient();
    let runtime = callers();
    let last = left(&mut trio, &runtime);
    runtime.block_on(async {
        fill(&trio, 5_200, 100).await;
        fill(&trio, 100, LONG_BYTES).await;
        until("what all voters have is purged", async || purged(&trio) >= Some(last)).await;
    });
    assert_eq!(purged(&trio), Some(last), "the voter that is away lacks the next entry");
    back(&mut trio, &runtime);
    assert_eq!(trio.network.snapshots(), 0);
}

#[test]
fn a_voter_that_was_away_beyond_the_bounds_gets_a_snapshot() {
    let bounds = [
        LogRetention { bytes_max: LOG_BYTES_MAX / 2, ..LogRetention::default() },
        LogRetention { entries_max: 100, ..LogRetention::default() },
        LogRetention { away_max: Duration::ZERO, ..LogRetention::default() },
    ];
    for retention in bounds {
        let mut trio = Trio::patient_retaining(retention);
        let runtime = callers();
        let last = left(&mut trio, &runtime);
        runtime.block_on(async {
            fill(&trio, 400, LONG_BYTES).await;
            until("the log is purged beyond it", async || purged(&trio) > Some(last)).await;
        });
        back(&mut trio, &runtime);
        assert!(trio.network.snapshots() > 0, "{retention:?}");
    }
}

/// Returns true if these bytes are in a file below a folder.
fn holds(folder: &Path, bytes: &[u8]) -> bool {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().any(|path| match path.is_dir() {
        true => holds(&path, bytes),
        // A file may be removed meanwhile.
        false => fs::read(&path).unwrap_or_default().windows(bytes.len()).any(|window| window == bytes),
    })
}

#[test]
fn erased_data_is_kept_for_no_voter_and_leaves_the_files_of_one_that_was_away() {
    const SECRET: &str = "a-secret-that-is-erased";
    let mut trio = Trio::patient();
    let runtime = callers();
    let key = key_in(&trio, GROUP, "session");
    let mut all = trio.callers();
    let mut begin = start(&definition(DEPLOY_GATE), &key);
    if let Body::Session(SessionCommand::Start(start)) = &mut begin.body {
        start.input = format!("\"{SECRET}\"").into_bytes();
    }
    runtime.block_on(async {
        install(&trio).await;
        all.insist(begin).await.unwrap();
        for (number, word) in ["yes"; 3].into_iter().enumerate() {
            all.insist(answer(&key, &format!("answer {number}"), word)).await.unwrap();
        }
        trio.settled().await;
    });
    trio.kill(AWAY);
    let erase = Body::Session(SessionCommand::Remove(Remove { how: Removing::Erased, ended_by: None }));
    let erase = command(tenant(&key), Scope::Session(session(&key)), Some("erase"), erase);
    runtime.block_on(async {
        all.insist(erase).await.unwrap();
        let leader = trio.cluster(LEADER);
        until("erased data has left the leader's files", async || leader.scrub().await.unwrap()).await;
    });
    assert!(!holds(&trio.path(LEADER), SECRET.as_bytes()));
    assert!(holds(&trio.path(AWAY), SECRET.as_bytes()), "the test shows nothing");
    back(&mut trio, &runtime);
    assert!(trio.path(AWAY).join("SCRUB").exists(), "it owes what it had before the snapshot");
    let returned = trio.cluster(AWAY);
    runtime.block_on(until("it has left the others", async || returned.scrub().await.unwrap()));
    assert!(!holds(&trio.path(AWAY), SECRET.as_bytes()));
}
