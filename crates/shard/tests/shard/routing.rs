//! Requests go to the shards that own their buckets by the catalogue's map, and servers refuse what was routed by another one.

use bytes::Bytes;
use switchward_engine::session_view;
use switchward_machine::limits::BUCKETS;
use switchward_machine::{Bucket, SessionId, TenantId};
use switchward_shard::{
    Answer, Cluster, Failure, LeaderRequest, Payload, decode_answer, encode_asked, serve,
};
use switchward_state::catalogue::{BucketMap, BucketRange, CatalogueEvent, ClusterMap, MapEpochs};
use switchward_state::{Actor, Command, Decision, Event, Level, Reply, Scope, TurnRecord};
use switchward_testkit::until;
use tokio::runtime::Runtime;

use crate::commands::{DEPLOY_GATE, definition, session, start, tenant};
use crate::server::{BEGIN, Server, Setup};
use crate::three_voters::{callers, install};
use crate::trio::{GROUPS, NODES, Trio};

/// The server that leads all groups.
const LEADER: u64 = NODES[0];

/// A map in which the two groups own buckets in pairs, and not in turn.
fn shuffled(epoch: u64) -> ClusterMap {
    let ranges = (0..BUCKETS).step_by(2);
    let ranges = ranges.map(|first| BucketRange { first, group: 2 - u64::from(first / 2 % 2) });
    let founded = ClusterMap::founded([7; 16], LEADER, GROUPS - 1, Level::FIRST, 3);
    ClusterMap { epoch, buckets: BucketMap::Ranges(ranges.collect()), ..founded }
}

/// Writes a map into the catalogue's log. No command changes the owners of buckets yet.
async fn set_map(trio: &Trio, map: ClusterMap) {
    let turn = TurnRecord {
        tenant: TenantId(0),
        scope: Scope::Catalogue,
        by: Actor::server(),
        request: None,
        reply: Reply::Done,
        events: vec![Event::Catalogue(CatalogueEvent::VotersPlaced(Box::new(map)))],
    };
    let entry = Bytes::from(Decision::new(Level::FIRST, BEGIN, vec![turn]).encode());
    trio.shard(LEADER, 0).group().raft().client_write(Payload(entry)).await.unwrap();
}

/// Three servers, one of which leads all groups.
fn opened(runtime: &Runtime) -> Trio {
    let trio = Trio::patient_passing();
    runtime.block_on(async {
        until("it leads all groups", async || (0..3).all(|group| trio.shard(LEADER, group).leads())).await;
        install(&trio).await;
    });
    trio
}

/// Waits until these servers have the map of this epoch.
async fn know(trio: &Trio, nodes: &[u64], epoch: u64) {
    until("the servers have the map", async || {
        nodes.iter().all(|node| trio.cluster(*node).map_epochs().newest == epoch)
    })
    .await;
}

fn close(mut trio: Trio) {
    NODES.into_iter().for_each(|node| trio.kill(node));
}

/// Keys whose sessions are in another group by the map of [`shuffled`] than in turn.
fn moved_keys(name: &str, count: usize) -> Vec<String> {
    let in_turn = BucketMap::InTurn { groups: GROUPS - 1 };
    let other = shuffled(2).buckets;
    let moves = |key: &String| {
        let bucket = session(key).bucket();
        in_turn.group_of(bucket) != other.group_of(bucket)
    };
    (0..).map(|number| format!("{name} {number}")).filter(moves).take(count).collect()
}

/// Asks a server as another one does whose map has these epochs.
async fn ask(cluster: &Cluster, group: u64, epochs: MapEpochs, request: &LeaderRequest) -> Answer {
    decode_answer(&serve(cluster, group, &encode_asked(epochs, request)).await.unwrap()).unwrap()
}

/// The group on whose replica, on this server, the session is; `None` if there is no such session.
async fn group_with(trio: &Trio, node: u64, key: &str) -> Option<u64> {
    let mut found = None;
    for shard in trio.cluster(node).shards() {
        let rows = shard.read().await.unwrap();
        if session_view(&rows, tenant(key), session(key)).unwrap().is_some() {
            assert_eq!(found.replace(shard.number()), None, "one group has it");
        }
    }
    found
}

#[test]
fn commands_and_reads_follow_a_map_that_does_not_deal_in_turn() {
    let runtime = callers();
    let trio = opened(&runtime);
    runtime.block_on(async {
        set_map(&trio, shuffled(2)).await;
        know(&trio, &NODES, 2).await;
        let map = shuffled(2);
        for (at, key) in moved_keys("by the map", 6).iter().enumerate() {
            let node = NODES[at % NODES.len()];
            let cluster = trio.cluster(node);
            let group = map.buckets.group_of(session(key).bucket());
            assert_eq!(Some(cluster.shard_of(session(key).bucket()).number()), group);
            cluster.execute(start(&definition(DEPLOY_GATE), key)).await.unwrap();
            assert_eq!(group_with(&trio, node, key).await, group);
            let rows = cluster.read_of(session(key).bucket()).await.unwrap();
            assert!(session_view(&rows, tenant(key), session(key)).unwrap().is_some());
        }
    });
    close(trio);
}

#[test]
fn what_was_routed_by_an_older_map_is_refused_and_not_executed() {
    let runtime = callers();
    let trio = opened(&runtime);
    runtime.block_on(async {
        let stale = trio.cluster(LEADER).map_epochs();
        assert_eq!(stale, MapEpochs { since: 1, newest: 1 });
        set_map(&trio, shuffled(2)).await;
        know(&trio, &NODES, 2).await;
        let refused = Answer::Failed(Failure::OtherMap { epoch: 2 });
        let key = &moved_keys("stale", 1)[0];
        let command: Command = start(&definition(DEPLOY_GATE), key);
        for group in [1, 2] {
            let submit = LeaderRequest::Submit(command.clone().into());
            assert_eq!(ask(trio.cluster(LEADER), group, stale, &submit).await, refused);
            assert_eq!(ask(trio.cluster(LEADER), group, stale, &LeaderRequest::ReadIndex).await, refused);
        }
        assert_eq!(group_with(&trio, LEADER, key).await, None);
        // A server with an old map must be able to learn of the newer one.
        let of_catalogue = ask(trio.cluster(LEADER), 0, stale, &LeaderRequest::ReadIndex).await;
        assert!(matches!(of_catalogue, Answer::ReadIndex(_)), "{of_catalogue:?}");
        // A later epoch at which no bucket has moved makes no difference.
        set_map(&trio, shuffled(3)).await;
        know(&trio, &NODES, 3).await;
        let alike = MapEpochs { since: 2, newest: 2 };
        let answered = ask(trio.cluster(LEADER), 1, alike, &LeaderRequest::ReadIndex).await;
        assert!(matches!(answered, Answer::ReadIndex(_)), "{answered:?}");
        // By the same map, a group takes only what is in its buckets.
        let owner = trio.cluster(LEADER).shard_of(session(key).bucket()).number();
        let submit = LeaderRequest::Submit(command.into());
        let wrong = ask(trio.cluster(LEADER), 3 - owner, alike, &submit).await;
        assert_eq!(wrong, Answer::Failed(Failure::OtherMap { epoch: 3 }));
    });
    close(trio);
}

#[test]
fn a_server_waits_for_the_newer_map_of_a_sender_and_not_for_ever() {
    let runtime = callers();
    let trio = opened(&runtime);
    runtime.block_on(async {
        let (newer, request) = (MapEpochs { since: 2, newest: 2 }, LeaderRequest::ReadIndex);
        let asked = || ask(trio.cluster(LEADER), 1, newer, &request);
        assert_eq!(asked().await, Answer::Failed(Failure::OtherMap { epoch: 1 }));
        until("it is answered in time", async || {
            let (answered, ()) = tokio::join!(asked(), set_map(&trio, shuffled(2)));
            matches!(answered, Answer::ReadIndex(_))
        })
        .await;
    });
    close(trio);
}

#[test]
fn a_server_that_is_behind_routes_again_once_it_has_the_newer_map() {
    let runtime = callers();
    let trio = opened(&runtime);
    runtime.block_on(async {
        let [_, behind, other] = NODES;
        trio.network.withhold(behind);
        set_map(&trio, shuffled(2)).await;
        know(&trio, &[LEADER, other], 2).await;
        let key = moved_keys("again", 1).remove(0);
        let command = start(&definition(DEPLOY_GATE), &key);
        let refused = trio.cluster(behind).execute(command.clone()).await;
        assert_eq!(refused, Err(Failure::OtherMap { epoch: 2 }), "the newer map does not come");
        assert_eq!(group_with(&trio, LEADER, &key).await, None, "nothing was executed");
        let heal = async {
            tokio::task::yield_now().await;
            trio.network.heal();
        };
        let (executed, ()) = tokio::join!(trio.cluster(behind).execute(command.clone()), heal);
        // On a busy machine the entries may come too late for this one.
        if executed.is_err() {
            know(&trio, &[behind], 2).await;
            trio.cluster(behind).execute(command).await.unwrap();
        }
        let owner = shuffled(2).buckets.group_of(session(&key).bucket());
        assert_eq!(group_with(&trio, LEADER, &key).await, owner);
    });
    close(trio);
}

#[test]
fn who_has_read_for_long_learns_of_a_move_before_this_server_does() {
    let runtime = callers();
    let trio = opened(&runtime);
    runtime.block_on(async {
        let cluster = trio.cluster(NODES[1]);
        let moves = session(&moved_keys("for long", 1)[0]).bucket();
        let stays = Bucket::new(1).unwrap();
        let in_turn = BucketMap::InTurn { groups: GROUPS - 1 };
        assert_eq!(in_turn.group_of(stays), shuffled(2).buckets.group_of(stays));
        let epoch = cluster.map_epochs().newest;
        assert_eq!(cluster.confirm_owners([moves, stays], epoch).await, Ok(()));
        set_map(&trio, shuffled(2)).await;
        let moved = cluster.confirm_owners([stays, moves], epoch).await;
        assert_eq!(moved, Err(Failure::OtherMap { epoch: 2 }));
        assert_eq!(cluster.confirm_owners([stays], epoch).await, Ok(()));
        assert_eq!(cluster.confirm_owners([moves], 2).await, Ok(()), "it has not moved again");
    });
    close(trio);
}

#[test]
fn a_command_for_this_server_alone_is_not_passed_on() {
    let runtime = callers();
    let trio = opened(&runtime);
    runtime.block_on(async {
        let (follower, key) = (NODES[1], "here alone");
        let shard = trio.cluster(follower).shard_of(session(key).bucket());
        let command: Command = start(&definition(DEPLOY_GATE), key);
        assert_eq!(shard.submit_here(command.clone().into()).await, Err(Failure::Electing));
        // Nor is one that another server has passed on: it goes to one other server at most.
        let (epochs, group) = (trio.cluster(follower).map_epochs(), shard.number());
        for passed_on in [LeaderRequest::Submit(command.clone().into()), LeaderRequest::ReadIndex] {
            let answered = ask(trio.cluster(follower), group, epochs, &passed_on).await;
            assert_eq!(answered, Answer::Failed(Failure::Electing));
        }
        assert_eq!(group_with(&trio, LEADER, key).await, None);
        trio.cluster(follower).execute(command).await.unwrap();
        assert_eq!(group_with(&trio, LEADER, key).await, Some(shard.number()));
    });
    close(trio);
}

#[test]
fn a_server_alone_has_the_map_that_a_new_cluster_begins_with() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&Setup::new(folder.path()));
    let cluster = server.cluster();
    assert_eq!(cluster.map_epochs(), MapEpochs { since: 1, newest: 1 });
    let groups = u64::try_from(cluster.shards().len()).unwrap();
    let map = BucketMap::InTurn { groups };
    for bucket in (0..BUCKETS).map(|number| Bucket::new(number).unwrap()) {
        assert_eq!(Some(cluster.shard_of(bucket).number()), map.group_of(bucket));
    }
    let id = SessionId::from_key(TenantId(1), "an id has its bucket in its first bits");
    assert!(id.bucket().number() < BUCKETS);
    server.shut_down();
}
