//! An entry that a replica cannot apply costs the server that replica and nothing else.

use bytes::Bytes;
use switchward_shard::{Failure, Payload};
use switchward_testkit::until;

use crate::commands::{DEPLOY_GATE, answer, definition, moved, session, start};
use crate::one_server::prepare;
use crate::server::{Server, Setup};
use crate::three_voters::{callers, hand_over, install, key_in};
use crate::trio::{NODES, Trio, at};

#[test]
fn a_follower_that_cannot_apply_an_entry_fails_alone() {
    let mut trio = Trio::open();
    let runtime = callers();
    let (one, two) = (key_in(&trio, 1, "one"), key_in(&trio, 2, "two"));
    let gate = definition(DEPLOY_GATE);
    let mut callers = trio.callers();
    let follower = runtime.block_on(async {
        install(&trio).await;
        let leader = trio.leader(1, None).await;
        let follower = NODES.into_iter().find(|node| *node != leader).unwrap();
        trio.spoiled[at(follower)].begin(1);
        callers.insist(start(&gate, &one)).await.unwrap();
        let failed = trio.shard(follower, 1);
        until("the replica has failed", async || failed.group().failed().is_some()).await;
        let why = failed.group().failed().unwrap_or_default();
        assert!(why.starts_with("cannot apply entry "), "{why}");
        assert_eq!(failed.read().await.err(), Some(Failure::Stopped));
        let refused = trio.cluster(follower).execute(answer(&one, "refused", "yes")).await;
        assert_eq!(refused, Err(Failure::Stopped));
        assert!(!failed.leads() && trio.cluster(follower).failed() == 1);
        // The other two have a majority, and the other shards of the server go on.
        callers.insist(answer(&one, "by two", "yes")).await.unwrap();
        hand_over(&trio, 2, follower).await;
        until("it leads another shard", async || trio.shard(follower, 2).read().await.is_ok()).await;
        trio.cluster(follower).execute(start(&gate, &two)).await.unwrap();
        follower
    });
    trio.assert_sound();
    // With a version that can apply the entry, the replica catches up.
    trio.spoiled[at(follower)].end();
    trio.kill(follower);
    trio.begin(follower);
    for replicas in runtime.block_on(trio.settled()) {
        assert!(replicas.iter().all(|digest| *digest == replicas[0]), "{replicas:?}");
    }
    assert_eq!(trio.cluster(follower).failed(), 0);
    trio.assert_sound();
}

#[test]
fn a_server_whose_replica_has_failed_finds_the_leader_after_it_has_moved() {
    let mut trio = Trio::patient_passing();
    let runtime = callers();
    let key = key_in(&trio, 1, "moved");
    let [leader, failing, next] = NODES;
    runtime.block_on(async {
        until("it leads all groups", async || (0..3).all(|group| trio.shard(leader, group).leads())).await;
        install(&trio).await;
        trio.spoiled[at(failing)].begin(1);
        trio.cluster(leader).execute(start(&definition(DEPLOY_GATE), &key)).await.unwrap();
        let failed = trio.shard(failing, 1);
        until("the replica has failed", async || failed.group().failed().is_some()).await;
        let through = |request: &str| trio.cluster(failing).execute(answer(&key, request, "yes"));
        through("the leader that was known").await.unwrap();
        for (from, to) in [(leader, next), (next, leader)] {
            assert_eq!(trio.shard(from, 1).hand_over(Some(to)).await, Ok(to));
            until("it leads", async || trio.shard(to, 1).leads()).await;
            through(&format!("server {to} leads")).await.unwrap();
        }
        assert_eq!(failed.read().await.err(), Some(Failure::Stopped), "its rows are too old");
    });
    NODES.into_iter().for_each(|node| trio.kill(node));
}

/// The keys of a session in the first shard and of one in the second.
fn keys(server: &Server) -> [String; 2] {
    [0, 1].map(|shard| {
        let shard = server.cluster().shards()[shard].number();
        let lives = |key: &String| server.cluster().shard_of(session(key).bucket()).number() == shard;
        (0..).map(|number| format!("session {number}")).find(lives).unwrap()
    })
}

#[test]
fn a_single_server_goes_on_without_the_shard_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let server = Server::open(&setup);
    prepare(&server);
    let gate = definition(DEPLOY_GATE);
    let [lost, kept] = keys(&server);
    for key in [&lost, &kept] {
        server.run(server.cluster().execute(start(&gate, key))).unwrap();
    }
    let raft = server.cluster().shards()[0].group().raft();
    let written = server.run(raft.client_write(Payload(Bytes::from_static(b"no decision"))));
    assert!(written.is_err(), "{written:?}");
    let check = |server: &Server, request: &str| {
        assert_eq!(server.cluster().failed(), 1);
        let step = |key: &str| server.run(server.cluster().execute(answer(key, request, "yes")));
        assert_eq!(step(&lost), Err(Failure::Stopped));
        moved(step(&kept));
        let read = server.run(server.cluster().shards()[0].read());
        assert_eq!(read.err(), Some(Failure::Stopped));
        server.assert_sound();
    };
    check(&server, "before the restart");
    // The entry is in the log, so the next start finds it again.
    server.crash();
    let server = Server::open(&setup);
    check(&server, "after the restart");
    server.shut_down();
}
