//! A bucket gets another owner while somebody reads it for long. Only the map changes here: the rows stay where they are.

use std::time::Duration;
use switchward_api::v1;
use switchward_machine::{Bucket, TenantId, limits::BUCKETS};
use switchward_shard::Payload;
use switchward_state::catalogue::{BucketMap, BucketRange, CatalogueEvent, ClusterMap, ServerState};
use switchward_state::{Actor, Decision, Event, Level, Reply, Scope, TurnRecord};
use switchward_testkit::until;
use tonic::{Code, Status};

use crate::ending::id_of;
use crate::harness::Harness;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::servers::{Watch, event, next, watch};
use crate::watching::history;

/// Long before a heartbeat of a watch.
const SOON: Duration = Duration::from_secs(10);

/// Writes a map into the catalogue's log by which a bucket belongs to this group. No command moves buckets yet.
async fn move_to(node: &Node, bucket: Bucket, group: u64) {
    if node.cluster.map().expect("rows that can be read").is_none() {
        node.spare_server(ServerState::Active).await;
    }
    let map = node.cluster.map().expect("rows that can be read").expect("a map");
    let owner =
        |number| Bucket::new(number).and_then(|bucket| map.buckets.group_of(bucket)).expect("an owner");
    let range = |first| {
        let group = if first == bucket.number() { group } else { owner(first) };
        BucketRange { first, group }
    };
    let (epoch, ranges) = (map.epoch + 1, (0..BUCKETS).map(range).collect());
    let moved = ClusterMap { epoch, buckets: BucketMap::Ranges(ranges), ..map.clone() };
    let turn = TurnRecord {
        tenant: TenantId(0),
        scope: Scope::Catalogue,
        by: Actor::server(),
        request: None,
        reply: Reply::Done,
        events: vec![Event::Catalogue(CatalogueEvent::VotersPlaced(Box::new(moved)))],
    };
    let entry = Decision::new(Level::FIRST, node.cluster.now(), vec![turn]).encode();
    let leader = node.leading(node.cluster.catalogue());
    leader.group().raft().client_write(Payload(entry.into())).await.expect("it is in the log");
    let known = async || node.clusters().all(|cluster| cluster.map_epochs().newest == epoch);
    until("every server has the map", known).await;
}

/// The refusal with which a watch ends.
async fn end(watch: &mut Watch) -> Status {
    let end = async {
        loop {
            match next(watch).await {
                Ok(update) => assert!(update.is_none(), "nothing happens: {update:?}"),
                Err(status) => return status,
            }
        }
    };
    tokio::time::timeout(SOON, end).await.expect("soon")
}

/// A watch of a session that has sent everything so far, and the last sequence.
async fn watched(harness: &Harness, session: &v1::Session) -> (Watch, u64) {
    let mut watch = watch(harness, 0, &session.name, 0).await;
    let events = history(harness, &session.name).await;
    for expected in &events {
        assert_eq!(event(&mut watch).await, *expected);
    }
    (watch, events.last().expect("an event").sequence)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_ends_when_its_bucket_moves_and_goes_on_at_the_owner_without_a_gap() {
    let harness = Harness::start().await;
    let (moves, stays) = (harness.session().await, harness.session().await);
    let bucket = id_of(&moves).bucket();
    assert_ne!(bucket, id_of(&stays).bucket());
    harness.node.quiet().await;
    let (mut first, last) = watched(&harness, &moves).await;
    let (mut open, _) = watched(&harness, &stays).await;
    let owner = harness.node.cluster.shard_of(bucket).number();
    let groups = u64::try_from(harness.node.cluster.shards().len()).expect("few");
    move_to(&harness.node, bucket, owner % groups + 1).await;
    let end = end(&mut first).await;
    assert_eq!((end.code(), Refusal::of(&end).reason.as_str()), (Code::Unavailable, "SHARD_ELECTING"));
    move_to(&harness.node, bucket, owner).await;
    harness.answer(&moves.name, "go").await;
    let mut second = watch(&harness, 0, &moves.name, last + 1).await;
    assert_eq!(event(&mut second).await.sequence, last + 1);
    harness.answer(&stays.name, "go").await;
    assert_eq!(event(&mut open).await.r#type, "session.answered", "another bucket has moved");
    harness.node.end().await;
}
