//! Three voters: what a majority has acknowledged survives the loss of any server.

use futures::future::join_all;
use openraft::{RaftMetrics, async_runtime::WatchReceiver as _};
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;
use switchward_engine::session_view;
use switchward_machine::Status;
use switchward_shard::{Failure, TypeConfig};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::{Body, Command, Key, Kind, Reason, Reply, Scope, View};
use switchward_testkit::{PATIENCE, until, until_blocking};
use tokio::runtime::{Builder, Runtime};

use crate::commands::{DEPLOY_GATE, TENANTS, answer, command, definition, moved, session, start, tenant};
use crate::live::Answered;
use crate::one_server::purge;
use crate::runs::each_seed;
use crate::trio::{Callers, GROUPS, NODES, Trio};

/// Kills of a leader in one run.
const KILLS: usize = 20;
/// Callers who work meanwhile.
const CALLERS: usize = 16;
/// Whole runs, each with its seed; more by `SHARD_TEST_RUNS`.
const RUNS: u64 = 1;
/// Longer than several waits of these servers before an election.
const SEVERAL_ELECTIONS: Duration = Duration::from_millis(1_500);

pub(crate) fn callers() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Installs the machine in every shard.
pub(crate) async fn install(trio: &Trio) {
    let body = InstallMachine { machine: Arc::new(definition(DEPLOY_GATE).machine) };
    let groups = 1..usize::try_from(GROUPS).unwrap();
    for (group, tenant) in groups.flat_map(|group| TENANTS.map(|tenant| (group, tenant))) {
        until("the machine is installed", async || {
            let leader = trio.leader(group, None).await;
            let install = command(
                tenant,
                Scope::Shard,
                None,
                Body::Catalogue(CatalogueCommand::InstallMachine(body.clone())),
            );
            trio.shard(leader, group).submit(install).await == Ok(Reply::Done)
        })
        .await;
    }
}

/// A key whose session is in the given shard.
pub(crate) fn key_in(trio: &Trio, group: usize, name: &str) -> String {
    let node = trio.living().next().unwrap();
    let lives = |key: &String| {
        let shard = trio.cluster(node).shard_of(session(key).bucket());
        std::ptr::eq(shard, trio.shard(node, group))
    };
    (0..).map(|number| format!("{name} {number}")).find(lives).unwrap()
}

/// Walks a session through the whole gate, step by step, and returns the answers.
async fn walk(callers: &mut Callers, key: &str, done: &AtomicUsize) -> Vec<(Command, Answered)> {
    let gate = definition(DEPLOY_GATE);
    let mut steps = vec![start(&gate, key)];
    steps.extend((0..3).map(|at| answer(key, &format!("{key} answer {at}"), "yes")));
    let mut answered = Vec::new();
    for step in steps {
        answered.push((step.clone(), callers.insist(step).await));
        done.fetch_add(1, Ordering::Relaxed);
    }
    answered
}

/// The outcome of a session: status, sequence, rows of history.
fn outcome(view: &impl View, key: &str) -> (Status, u64, usize) {
    let (id, tenant) = (session(key), tenant(key));
    let found = session_view(view, tenant, id).unwrap().unwrap();
    let mut rows = 0;
    let count = &mut |_: &_, _: &_| {
        rows += 1;
        std::ops::ControlFlow::Continue(())
    };
    view.scan(&Key::prefix_of_session(tenant, id, Kind::History), None, count).unwrap();
    (found.session.status, found.session.sequence, rows)
}

#[test]
fn leaders_are_killed_under_load_and_nothing_is_lost() {
    each_seed(1, RUNS, |rng| {
        let mut trio = Trio::open();
        let runtime = callers();
        runtime.block_on(install(&trio));
        let (done, next) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let stop = Arc::new(AtomicUsize::new(usize::MAX));
        let work = |_| {
            let (mut callers, done, next, stop) = (trio.callers(), done.clone(), next.clone(), stop.clone());
            runtime.spawn(async move {
                let mut walks = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= stop.load(Ordering::Relaxed) {
                        return walks;
                    }
                    let key = format!("walk {number}");
                    let answered = walk(&mut callers, &key, &done).await;
                    walks.push((key, answered));
                }
            })
        };
        let working: Vec<_> = (0..CALLERS).map(work).collect();
        for _ in 0..KILLS {
            let leader = runtime.block_on(trio.leader(1 + rng.below(2), None));
            trio.kill(leader);
            // Either the two others continue, or the third one restores a majority.
            if rng.once_in(2) {
                let before = done.load(Ordering::Relaxed);
                let enough = || done.load(Ordering::Relaxed) >= before + CALLERS;
                until_blocking("the two others go on", enough);
            }
            trio.begin(leader);
        }
        stop.store(0, Ordering::Relaxed);
        let walks = runtime.block_on(join_all(working)).into_iter().flat_map(Result::unwrap);
        let walks: Vec<_> = walks.collect();
        assert!(walks.len() >= KILLS, "too little load: {} sessions", walks.len());
        println!("{} sessions under {KILLS} kills", walks.len());
        verify(&trio, &runtime, &walks);
    });
}

fn verify(trio: &Trio, runtime: &Runtime, walks: &[(String, Vec<(Command, Answered)>)]) {
    let mut callers = trio.callers();
    for (key, answered) in walks {
        for (step, answer) in answered {
            assert!(answer.is_ok(), "{key}: {answer:?}");
            assert_eq!(runtime.block_on(callers.insist(step.clone())), *answer, "{key}");
        }
    }
    for replicas in runtime.block_on(trio.settled()) {
        assert!(replicas.iter().all(|digest| *digest == replicas[0]), "{replicas:?}");
    }
    for (key, _) in walks {
        for node in NODES {
            let view = trio.cluster(node).shard_of(session(key).bucket()).read_stale();
            assert_eq!(outcome(&view, key), (Status::Completed, 12, 4), "{key} on server {node}");
        }
    }
    trio.assert_sound();
}

#[test]
fn a_server_that_was_away_too_long_gets_a_snapshot() {
    let mut trio = Trio::open();
    let runtime = callers();
    runtime.block_on(install(&trio));
    let done = AtomicUsize::new(0);
    let mut callers = trio.callers();
    let mut walks = Vec::new();
    for number in 0..4 {
        let key = format!("before {number}");
        let answered = runtime.block_on(walk(&mut callers, &key, &done));
        walks.push((key, answered));
    }
    let away = runtime.block_on(async {
        let leader = trio.leader(1, None).await;
        NODES.into_iter().find(|node| *node != leader).unwrap()
    });
    trio.kill(away);
    for number in 0..20 {
        let key = format!("meanwhile {number}");
        let answered = runtime.block_on(walk(&mut callers, &key, &done));
        walks.push((key, answered));
    }
    for node in NODES.into_iter().filter(|node| *node != away) {
        for group in 0..usize::try_from(GROUPS).unwrap() {
            runtime.block_on(purge(trio.shard(node, group).group()));
        }
    }
    // Entries that come while the snapshot is under way are in the file already, or follow in the log.
    let key = key_in(&trio, 1, "after");
    let answered = runtime.block_on(walk(&mut callers, &key, &done));
    walks.push((key, answered));
    assert_eq!(trio.network.snapshots(), 0);
    trio.begin(away);
    verify(&trio, &runtime, &walks);
    assert!(trio.network.snapshots() >= 2, "{} snapshots", trio.network.snapshots());
    let streams = trio.network.streams() as u64;
    assert!(streams > trio.network.snapshots(), "no entries went over a stream of their own");
    // The rows that it received are its own from now on.
    trio.kill(away);
    trio.begin(away);
    verify(&trio, &runtime, &walks);
}

/// Makes this server lead a group.
pub(crate) async fn hand_over(trio: &Trio, group: usize, to: u64) {
    let from = trio.leader(group, None).await;
    if from != to {
        trio.shard(from, group).group().raft().trigger().transfer_leader(to).await.unwrap();
        let raft = trio.shard(to, group).group().raft();
        raft.wait(None).current_leader(to, "the server is the leader").await.unwrap();
    }
}

#[test]
fn a_leader_without_a_majority_promises_nothing() {
    let trio = Trio::open();
    let runtime = callers();
    let (key, missing) = (key_in(&trio, 1, "session"), key_in(&trio, 2, "missing"));
    let mut callers = trio.callers();
    let (old, others) = runtime.block_on(async {
        install(&trio).await;
        callers.insist(start(&definition(DEPLOY_GATE), &key)).await.unwrap();
        let old = trio.leader(1, None).await;
        hand_over(&trio, 2, old).await;
        trio.shard(old, 2).read().await.unwrap();
        (old, NODES.into_iter().filter(|node| *node != old).collect::<Vec<_>>())
    });
    let step = |request: &str, word: &str| {
        let body = Answer { state: Some("env-check".into()), answer: word.into(), note: String::new() };
        command(
            tenant(&key),
            Scope::Session(session(&key)),
            Some(request),
            Body::Run(RunCommand::Answer(body)),
        )
    };
    trio.network.isolate(old, &others);
    let lonely = trio.cluster(old).clone();
    let (lost, refused, read) = runtime.block_on(async {
        let (lost, refused, taken) = futures::join!(
            // Written by the old leader, and never by a majority.
            lonely.execute(step("lost", "no")),
            // Refused by the rows of the old leader, and perhaps not by those that the others have by now.
            lonely.execute(answer(&missing, "refused", "yes")),
            async {
                let new = trio.leader(1, Some(old)).await;
                trio.cluster(new).execute(step("taken", "yes")).await
            },
        );
        assert!(taken.is_ok(), "{taken:?}");
        let again = lonely.execute(step("lost", "no")).await;
        assert_eq!(
            again,
            Err(Failure::Electing),
            "nothing is decided before its own entry is committed, or not"
        );
        let read = trio.shard(old, 1).read().await.err();
        trio.network.heal();
        (lost, refused, read)
    });
    let electing = Failure::Electing;
    let unknown = Err(Failure::OutcomeUnknown);
    assert_eq!((lost, refused, read), (unknown, Err(electing.clone()), Some(electing)));
    let again = runtime.block_on(callers.insist(step("lost", "no"))).unwrap_err();
    assert_eq!(again.reason, Reason::SequenceConflict, "the session has moved on without the lost answer");
    for replicas in runtime.block_on(trio.settled()) {
        assert!(replicas.iter().all(|digest| *digest == replicas[0]));
    }
    trio.assert_sound();
}

#[test]
fn leadership_can_be_handed_over() {
    let trio = Trio::open();
    let runtime = callers();
    let key = key_in(&trio, 2, "session");
    let mut callers = trio.callers();
    runtime.block_on(async {
        install(&trio).await;
        let begun = callers.insist(start(&definition(DEPLOY_GATE), &key)).await.unwrap();
        let before = callers.insist(answer(&key, "before", "yes")).await.unwrap();
        let old = trio.leader(2, None).await;
        let new = NODES.into_iter().find(|node| *node != old).unwrap();
        hand_over(&trio, 2, new).await;
        let again = callers.insist(answer(&key, "before", "yes")).await.unwrap();
        assert_eq!(again, before, "another leader gives the same answer");
        assert_eq!(callers.insist(start(&definition(DEPLOY_GATE), &key)).await.unwrap(), begun);
        let reply = callers.insist(answer(&key, "after", "yes")).await.unwrap();
        assert_eq!(moved(Ok(reply)), 9);
        trio.shard(new, 2).read().await.unwrap();
    });
    trio.assert_sound();
}

/// Otherwise its term would depose the leader when it is back.
#[test]
fn a_server_that_is_cut_off_raises_no_term() {
    let trio = Trio::open();
    let runtime = callers();
    runtime.block_on(async {
        let leader = trio.leader(1, None).await;
        let away = NODES.into_iter().find(|node| *node != leader).unwrap();
        let raft = trio.shard(away, 1).group().raft();
        let led = |now: &RaftMetrics<TypeConfig>| now.current_leader.is_some();
        raft.wait(Some(PATIENCE)).metrics(led, "it knows a leader").await.unwrap();
        let others: Vec<u64> = NODES.into_iter().filter(|node| *node != away).collect();
        trio.network.isolate(away, &others);
        let before = raft.metrics().borrow_watched().current_term;
        let higher = |now: &RaftMetrics<TypeConfig>| now.current_term > before;
        let stood = raft.wait(Some(SEVERAL_ELECTIONS)).metrics(higher, "it has raised the term").await;
        assert!(stood.is_err(), "{stood:?}");
        trio.network.heal();
        for replicas in trio.settled().await {
            assert!(replicas.iter().all(|digest| *digest == replicas[0]), "{replicas:?}");
        }
    });
    trio.assert_sound();
}
