//! The stream of work, and the poll that waits: they live as long as the server and the key do, and no longer.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use prost::Message as _;
use switchward_api::v1;
use switchward_api::v1::worker_service_client::WorkerServiceClient;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use crate::told::{Told, refused};
use crate::ways::Way;
use crate::world::World;

/// How long a test waits for what must come at once.
const SOON: Duration = Duration::from_secs(10);
/// How long silence may last, and a slow machine may make of it.
const PATIENCE: Duration = Duration::from_secs(60);
const MINUTE_MS: u64 = 60_000;

type Stream = Streaming<v1::StreamWorkResponse>;

fn wanted(queue: &str) -> Option<v1::WorkWanted> {
    Some(v1::WorkWanted { queues: vec![queue.to_owned()], ..v1::WorkWanted::default() })
}

/// A stream of the work of one definition, with room for two items.
async fn open(world: &World, secret: &str, queue: &str) -> Stream {
    let endpoint = Channel::from_shared(format!("http://{}", world.node.line.address)).expect("an address");
    let mut client = WorkerServiceClient::new(endpoint.connect().await.expect("a connection"));
    let message = v1::StreamWorkRequest { wanted: wanted(queue), max_items: 2, ..Default::default() };
    let mut request = Request::new(message);
    let header = format!("Bearer {secret}").parse().expect("a header");
    request.metadata_mut().insert("authorization", header);
    client.stream_work(request).await.expect("a stream").into_inner()
}

async fn next(stream: &mut Stream) -> Result<Option<v1::WorkItem>, Status> {
    let message = tokio::time::timeout(SOON, stream.next()).await.expect("something comes soon");
    message.expect("the stream goes on").map(|message| message.item)
}

async fn item(stream: &mut Stream) -> v1::WorkItem {
    next(stream).await.expect("no refusal").expect("work")
}

/// How the stream ends, which must be soon, and with nothing before it.
async fn end(stream: &mut Stream) -> Status {
    let end = next(stream).await.expect_err("it ends");
    assert!(stream.next().await.is_none(), "nothing comes after the end");
    end
}

/// A worker's key that lives for a minute, or for ever: its name and its secret.
async fn key(world: &World, expires: bool) -> (String, String) {
    let now = switchward_shard::Clock::now(&world.node.clock).0 + MINUTE_MS;
    let seconds = i64::try_from(now / 1000).expect("a time");
    let create = v1::CreateApiKeyRequest {
        role: v1::KeyRole::Worker.into(),
        expire_time: expires.then_some(prost_types::Timestamp { seconds, nanos: 0 }),
        ..v1::CreateApiKeyRequest::default()
    };
    let made: v1::CreateApiKeyResponse = world.ask("admin", "CreateApiKey", &create).await;
    (made.api_key.expect("a key").name, made.secret)
}

async fn revoke(world: &World, name: &str) {
    let revoke = v1::RevokeApiKeyRequest { name: name.to_owned(), ..Default::default() };
    let _: v1::RevokeApiKeyResponse = world.ask("admin", "RevokeApiKey", &revoke).await;
}

/// More work for this queue: the session.
async fn more(world: &World, queue: &str) -> String {
    let start = v1::StartSessionRequest { definition: queue.to_owned(), ..Default::default() };
    let reply: v1::StartSessionResponse = world.ask("agent", "StartSession", &start).await;
    reply.session.expect("a session").name
}

/// The sessions of what is ready for this queue now.
async fn ready(world: &World, queue: &str) -> Vec<String> {
    let poll = v1::PollWorkRequest { wanted: wanted(queue), max_items: 10, ..Default::default() };
    let reply: v1::PollWorkResponse = world.ask("worker", "PollWork", &poll).await;
    reply.items.into_iter().map(|item| item.session).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_broken_by_a_sign_of_life() {
    let world = World::start().await;
    let mut stream = open(&world, world.acme.key("worker"), "chore-that-never-was").await;
    let begun = Instant::now();
    let sign = tokio::time::timeout(PATIENCE, stream.next()).await.expect("it comes in time");
    assert_eq!(sign.expect("the stream goes on").expect("no refusal").item, None);
    assert!(begun.elapsed().as_secs() >= 14, "{:?}", begun.elapsed());
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_ends_it_so_that_the_worker_comes_again() {
    let world = World::start().await;
    let (_, queue) = world.owing().await;
    let mut stream = open(&world, world.acme.key("worker"), &queue).await;
    let taken = item(&mut stream).await;
    let mut waiting = open(&world, world.acme.key("worker"), "chore-that-never-was").await;
    world.node.door.drain();
    for stream in [&mut stream, &mut waiting] {
        let end = end(stream).await;
        let told = Told::of(&end);
        // What clients call again for, as proto/service_config.json has it, and when.
        assert_eq!((end.code(), told.reason.as_str()), (Code::Unavailable, "DRAINING"));
        assert!(told.others.iter().any(|detail| detail.starts_with("RetryInfo")), "{told:?}");
    }
    // What it has taken stays the worker's, and its result is taken while the server still is there.
    let (name, lease_token) = (taken.name, taken.lease_token);
    let complete = v1::CompleteWorkRequest { name, lease_token, ..v1::CompleteWorkRequest::default() };
    let reply: v1::CompleteWorkResponse = world.ask("worker", "CompleteWork", &complete).await;
    assert!(reply.accepted);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_ends_it_at_once_and_gets_no_more() {
    let world = World::start().await;
    let (_, queue) = world.owing().await;
    let (name, secret) = key(&world, false).await;
    let mut stream = open(&world, &secret, &queue).await;
    item(&mut stream).await;
    let mut other = open(&world, world.acme.key("worker"), &queue).await;
    revoke(&world, &name).await;
    let session = more(&world, &queue).await;
    // Long before a sign of life would have found it out.
    let end = end(&mut stream).await;
    let poll = v1::PollWorkRequest { wanted: wanted(&queue), ..Default::default() };
    let fresh: Result<v1::PollWorkResponse, _> = world.node.line.ask(&secret, "PollWork", &poll).await;
    assert_eq!(Told::of(&end), Told::of(&fresh.expect_err("a refusal")), "it is one answer for all");
    assert_eq!(item(&mut other).await.session, session, "another key's goes on");
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_key_gets_nothing_more() {
    let world = World::start().await;
    let (_, queue) = world.owing().await;
    let (_, secret) = key(&world, true).await;
    let mut stream = open(&world, &secret, &queue).await;
    item(&mut stream).await;
    world.node.clock.advance(MINUTE_MS);
    let session = more(&world, &queue).await;
    assert_eq!(Told::of(&end(&mut stream).await).reason, "CREDENTIAL_INVALID");
    assert!(ready(&world, &queue).await.contains(&session), "it is another worker's");
    world.node.end().await;
}

/// A call that waits for work, and what is done meanwhile, once the call has surely begun to wait.
async fn meanwhile(
    world: &World,
    secret: &str,
    queue: &str,
    act: impl AsyncFnOnce(),
) -> Result<v1::PollWorkResponse, Status> {
    let wait = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let poll = v1::PollWorkRequest { wanted: wanted(queue), wait, ..Default::default() };
    let (line, secret) = (world.node.line.clone(), secret.to_owned());
    let waiting =
        tokio::spawn(async move { line.call(Way::Grpc, "PollWork", &secret, &poll.encode_to_vec()).await });
    // Other calls come and go over the same connection before anything happens.
    for _ in 0..5 {
        assert!(ready(world, "chore-that-never-was").await.is_empty());
    }
    act().await;
    let reply = tokio::time::timeout(SOON, waiting).await.expect("it ends soon").expect("no panic")?;
    Ok(v1::PollWorkResponse::decode(reply).expect("a reply"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_revoked_while_it_waits_gets_no_work() {
    let world = World::start().await;
    let (_, queue) = world.owing().await;
    assert_eq!(ready(&world, &queue).await.len(), 1, "from now on there is none");
    let (name, secret) = key(&world, false).await;
    // Nothing is ready, so it is the key that ends the wait.
    let outcome = meanwhile(&world, &secret, &queue, async || revoke(&world, &name).await).await;
    refused(outcome, "CREDENTIAL_INVALID");
    // A key that works gets what comes.
    let outcome = meanwhile(&world, world.acme.key("worker"), &queue, async || {
        more(&world, &queue).await;
    });
    assert_eq!(outcome.await.expect("no refusal").items.len(), 1);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_expires_while_it_waits_gets_no_work() {
    let world = World::start().await;
    let (_, queue) = world.owing().await;
    assert_eq!(ready(&world, &queue).await.len(), 1, "from now on there is none");
    let (_, secret) = key(&world, true).await;
    let outcome = meanwhile(&world, &secret, &queue, async || {
        world.node.clock.advance(MINUTE_MS);
        more(&world, &queue).await;
    });
    refused(outcome.await, "CREDENTIAL_INVALID");
    assert!(!ready(&world, &queue).await.is_empty(), "it is there for another");
    world.node.end().await;
}

/// What an item is, without what is another one each time.
fn kind_of(message: &[u8]) -> (String, String, u32, i32, Option<prost_types::Struct>) {
    let message = v1::StreamWorkResponse::decode(message).expect("a message");
    let item = message.item.expect("an item");
    assert!(!item.lease_token.is_empty() && item.name.starts_with("tenants/acme/work/"), "{item:?}");
    (
        item.state,
        item.version.rsplit('/').next().unwrap_or_default().to_owned(),
        item.attempt,
        item.kind,
        item.input,
    )
}

/// Work is handed out once, so each way has its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_the_same_by_every_way_that_has_streams() {
    let world = World::start().await;
    let secret = world.acme.key("worker");
    let mut wanted_items = None;
    for way in [Way::Grpc, Way::Web, Way::WebText] {
        let (_, queue) = world.owing().await;
        more(&world, &queue).await;
        let lifetime = Some(prost_types::Duration { seconds: 2, nanos: 0 });
        let request =
            v1::StreamWorkRequest { wanted: wanted(&queue), lifetime, max_items: 5, ..Default::default() };
        let (seen, end) = world.node.line.watch(way, "StreamWork", secret, &request.encode_to_vec()).await;
        assert!(end.is_ok(), "{way:?} {end:?}");
        let items: Vec<_> = seen.iter().map(|message| kind_of(message)).collect();
        assert_eq!(items.len(), 2, "{way:?}: {items:?}");
        assert_eq!(items, *wanted_items.get_or_insert_with(|| items.clone()), "{way:?}");
    }
    let json = world.node.line.call(Way::Json, "StreamWork", secret, b"").await;
    assert_eq!(Told::of(&json.expect_err("no stream in JSON")).reason, "UNIMPLEMENTED");
    world.node.end().await;
}

/// What is wrong with a request is told before anything is sent, and the same by every way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_is_refused_the_same_by_every_way() {
    let world = World::start().await;
    let (_, queue) = world.owing().await;
    let good = v1::StreamWorkRequest { wanted: wanted(&queue), ..Default::default() };
    let of = |wanted: v1::WorkWanted| v1::StreamWorkRequest { wanted: Some(wanted), ..Default::default() };
    let day = 24 * 3_600;
    let rows = [
        ("CREDENTIAL_INVALID", "", "nobody", good.clone()),
        ("ROLE_NOT_ALLOWED", "", "agent", good.clone()),
        (
            "NOT_FOUND",
            "",
            "worker",
            v1::StreamWorkRequest { parent: "tenants/globex".into(), ..good.clone() },
        ),
        ("FIELD_INVALID", "max_items", "worker", v1::StreamWorkRequest { max_items: 101, ..good.clone() }),
        (
            "FIELD_INVALID",
            "lifetime",
            "worker",
            v1::StreamWorkRequest {
                lifetime: Some(prost_types::Duration { seconds: day + 1, nanos: 0 }),
                ..good.clone()
            },
        ),
        (
            "FIELD_INVALID",
            "wanted.kinds",
            "worker",
            of(v1::WorkWanted { kinds: vec![99], ..Default::default() }),
        ),
        (
            "FIELD_INVALID",
            "wanted.queues",
            "worker",
            of(v1::WorkWanted { queues: vec!["x".to_owned(); 21], ..Default::default() }),
        ),
        (
            "FIELD_INVALID",
            "wanted.worker_id",
            "worker",
            of(v1::WorkWanted { worker_id: "w\n".to_owned(), ..Default::default() }),
        ),
        (
            "FIELD_INVALID",
            "wanted.lease",
            "worker",
            of(v1::WorkWanted {
                lease: Some(prost_types::Duration { seconds: 3_601, nanos: 0 }),
                ..Default::default()
            }),
        ),
    ];
    for (reason, field, role, request) in rows {
        let secret = if role == "nobody" { "nobody" } else { world.acme.key(role) };
        let mut first: Option<Told> = None;
        for way in [Way::Grpc, Way::Web, Way::WebText] {
            let bytes = request.encode_to_vec();
            let (messages, end) = world.node.line.watch(way, "StreamWork", secret, &bytes).await;
            assert!(messages.is_empty(), "{reason} {field} by {way:?}");
            let told = refused(end, reason);
            assert_eq!(told.fields, if field.is_empty() { vec![] } else { vec![field] }, "{told:?}");
            assert_eq!(told, *first.get_or_insert_with(|| told.clone()), "{reason} {field} by {way:?}");
        }
    }
    assert_eq!(ready(&world, &queue).await.len(), 1, "nothing was taken");
    world.node.end().await;
}
