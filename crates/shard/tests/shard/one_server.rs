//! One server with four shards: what was acknowledged outlives its shutdown and its crashes.

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use std::sync::atomic::Ordering;
use switchward_engine::session_view;
use switchward_machine::{Digest, Status};
use switchward_shard::{Failure, Group, Shard};
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command, Reply};
use switchward_store::{DataDir, StoreError};
use switchward_testkit::{PATIENCE, until};

use crate::commands::{
    DEPLOY_GATE, TENANTS, answer, create_tenants, definition, deploys, moved, session, start, tenant,
};
use crate::runs::each_seed;
use crate::server::{Server, Setup};

/// The digest of every group's rows.
pub(crate) fn digests(server: &Server) -> Vec<Digest> {
    server.cluster().all().map(|shard| Digest(shard.group().digest().unwrap())).collect()
}

/// Entries that the server has decided since it was opened.
fn decided(server: &Server) -> u64 {
    let entries = |shard: &Shard| shard.group().metrics().entries.load(Ordering::Relaxed);
    server.cluster().all().map(entries).sum()
}

fn execute(server: &Server, command: Command) -> Result<Reply, Failure> {
    server.run(server.cluster().execute(command))
}

fn status(server: &Server, key: &str) -> (Status, u64, String) {
    let id = session(key);
    let view = server.run(server.cluster().shard_of(id.bucket()).read()).unwrap();
    let found = view.consistent(|view| session_view(view, tenant(key), id)).unwrap().unwrap();
    (found.session.status, found.session.sequence, found.at().to_owned())
}

/// The commands of a session of the deploy gate, step by step.
fn walk(key: &str) -> Vec<Command> {
    let gate = definition(DEPLOY_GATE);
    let answers = ["yes", "n/a", "yes"];
    let step = |(at, word): (usize, &&str)| answer(key, &format!("{key} answer {at}"), word);
    [start(&gate, key)].into_iter().chain(answers.iter().enumerate().map(step)).collect()
}

pub(crate) fn prepare(server: &Server) {
    let gate = definition(DEPLOY_GATE);
    let made = create_tenants().map(|command| match execute(server, command) {
        Ok(Reply::Tenant(tenant)) => tenant.id,
        other => panic!("the tenant was not created: {other:?}"),
    });
    assert_eq!(made, TENANTS);
    for command in deploys(&gate, DEPLOY_GATE) {
        let deployed = execute(server, command).unwrap();
        assert!(matches!(deployed, Reply::Version { number: 1, created: true, .. }), "{deployed:?}");
    }
}

#[test]
fn a_session_outlives_every_end_of_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let mut server = Server::open(&setup);
    prepare(&server);
    let mut replies = Vec::new();
    for (at, step) in walk("one").into_iter().enumerate() {
        replies.push((step.clone(), execute(&server, step)));
        let before = digests(&server);
        if at % 2 == 0 {
            server.crash()
        } else {
            server.shut_down()
        }
        server = Server::open(&setup);
        assert_eq!(digests(&server), before);
        for (step, reply) in &replies {
            assert_eq!(execute(&server, step.clone()), *reply, "the same request has the same reply");
        }
        assert_eq!(decided(&server), 0, "a repeated request makes no entry");
    }
    assert_eq!(status(&server, "one"), (Status::Completed, 12, "traffic-check".into()));
}

#[test]
fn a_shard_at_rest_writes_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let server = Server::open(&setup);
    prepare(&server);
    for step in walk("one") {
        execute(&server, step).unwrap();
    }
    let dirty = || server.cluster().all().map(|shard| shard.group().dirty_bytes()).sum::<usize>();
    assert!(dirty() > 0);
    server.run(async {
        until("the rows are written", async || dirty() == 0).await;
    });
    let before = digests(&server);
    server.crash();
    assert_eq!(digests(&Server::open(&setup)), before);
}

#[test]
fn checkpoints_and_purges_at_odd_moments_lose_nothing() {
    const STEPS: usize = 60;
    each_seed(1, 2, |rng| {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup { cache_bytes: 4096, ..Setup::new(folder.path()) };
        let mut server = Server::open(&setup);
        prepare(&server);
        let mut walks: Vec<_> = (0..12).map(|key| walk(&format!("walk {key}")).into_iter()).collect();
        let mut replies = Vec::new();
        for _ in 0..STEPS {
            let walk = rng.below(walks.len());
            let Some(step) = walks[walk].next() else { continue };
            replies.push((step.clone(), execute(&server, step)));
            let group = rng.below(5);
            let group = |server: &Server| server.cluster().all().nth(group).unwrap().group().clone();
            match rng.below(8) {
                0 | 1 => group(&server).checkpoint().unwrap(),
                2 => server.run(purge(&group(&server))),
                3 => {
                    let before = digests(&server);
                    server.crash();
                    server = Server::open(&setup);
                    assert_eq!(digests(&server), before);
                }
                _ => {}
            }
        }
        server.crash();
        server = Server::open(&setup);
        for (step, reply) in replies {
            assert_eq!(execute(&server, step), reply);
        }
    });
}

/// Waits until this server leads a shard, with everything that it had applied.
pub(crate) async fn led(shard: &Shard) {
    let mut changes = shard.group().raft().metrics();
    let elected = async {
        while shard.read().await.is_err_and(|failure| failure == Failure::Electing) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, elected).await.expect("this server leads");
}

/// Purges everything that the state store holds, and waits until it is gone.
pub(crate) async fn purge(group: &Group) {
    let raft = group.raft();
    let last = raft.metrics().borrow_watched().last_applied.map_or(0, |last| last.index);
    raft.trigger().snapshot().await.unwrap();
    let built = |at: u64| move |id: Option<u64>| id.is_some_and(|id| id >= at);
    let built = built(last);
    raft.wait(None).metrics(|now| built(now.snapshot.map(|id| id.index)), "it is flushed").await.unwrap();
    raft.trigger().purge_log(last).await.unwrap();
    raft.wait(None).metrics(|now| built(now.purged.map(|id| id.index)), "it is purged").await.unwrap();
}

/// The rows on disk are early ones here, and most comes from the log: a server that answers before it has replayed
/// the log answers wrongly.
#[test]
fn nothing_is_answered_before_a_long_log_is_replayed() {
    const SESSIONS: usize = 1_500;
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let server = Server::open(&setup);
    prepare(&server);
    let gate = definition(DEPLOY_GATE);
    let key = |number: usize| format!("session {number}");
    for from in (0..SESSIONS).step_by(50) {
        let all = (from..from + 50).map(|number| server.cluster().execute(start(&gate, &key(number))));
        assert!(server.run(join_all(all)).iter().all(Result::is_ok));
        if from == 0 {
            server.cluster().all().for_each(|shard| shard.group().checkpoint().unwrap());
        }
    }
    let before = digests(&server);
    let last = SESSIONS - 1;
    let begun = execute(&server, start(&gate, &key(last)));
    server.crash();
    let server = Server::open(&setup);
    let step = execute(&server, answer(&key(last), "first after the crash", "yes"));
    assert_eq!(moved(step), 6);
    let again = execute(&server, start(&gate, &key(last - 1)));
    assert_eq!(moved(again), 3);
    assert_eq!(
        execute(&server, start(&gate, &key(last))),
        begun,
        "the same answer, although it has moved on"
    );
    server.crash();
    let server = Server::open(&setup);
    let after = digests(&server);
    let differing = before.iter().zip(&after).filter(|(before, after)| before != after).count();
    assert_eq!(differing, 1, "only one session has moved");
}

#[test]
fn a_data_folder_has_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&Setup::new(folder.path()));
    assert!(matches!(DataDir::open(folder.path()), Err(StoreError::InUse { .. })));
    server.shut_down();
    DataDir::open(folder.path()).unwrap();
}

#[test]
fn a_folder_keeps_its_number_of_shards() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    Server::open(&setup).shut_down();
    let server = Server::open(&Setup { shards: 9, ..setup.clone() });
    assert_eq!(server.cluster().shards().len(), 4);
    server.shut_down();
    std::fs::write(folder.path().join("SHARDS"), "0").unwrap();
    assert!(Server::try_open(&setup).is_err());
}

#[test]
fn a_server_that_goes_down_answers_what_it_took_and_refuses_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let server = Server::open(&setup);
    prepare(&server);
    let gate = definition(DEPLOY_GATE);
    let keys: Vec<String> = (0..400).map(|number| format!("session {number}")).collect();
    let cluster = server.cluster().clone();
    let results = server.run(async {
        let started = join_all(keys.iter().map(|key| cluster.execute(start(&gate, key))));
        let (results, down) = futures::join!(started, cluster.shutdown());
        down.unwrap();
        results
    });
    let late = server.run(cluster.execute(start(&gate, "late")));
    assert_eq!(late, Err(Failure::Draining));
    drop(cluster);
    server.crash();
    let server = Server::open(&setup);
    for (key, result) in keys.iter().zip(results) {
        let id = session(key);
        let view = server.run(server.cluster().shard_of(id.bucket()).read()).unwrap();
        let found = session_view(&view, tenant(key), id).unwrap();
        match result {
            Ok(_) => assert!(found.is_some(), "{key} was acknowledged"),
            Err(failure) => assert_eq!(failure, Failure::Draining),
        }
    }
}

/// Together these starts are more than the log takes as one record.
#[test]
fn a_batch_that_is_too_long_for_one_entry_becomes_several() {
    const STARTS: usize = 1_200;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&Setup { shards: 1, ..Setup::new(folder.path()) });
    prepare(&server);
    let gate = definition(DEPLOY_GATE);
    let input = format!("\"{}\"", "x".repeat(60_000)).into_bytes();
    let big = |number: usize| {
        let mut start = start(&gate, &format!("session {number}"));
        if let Body::Session(SessionCommand::Start(start)) = &mut start.body {
            start.input.clone_from(&input);
        }
        server.cluster().execute(start)
    };
    let results = server.run(join_all((0..STARTS).map(big)));
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
    let entries = server.cluster().shards()[0].group().metrics().entries.load(Ordering::Relaxed);
    // Two of them fit into a batch even of a shard that several tenants use.
    assert!((8..=STARTS as u64 * 2 / 3).contains(&entries), "{entries} entries");
    server.assert_sound();
}
