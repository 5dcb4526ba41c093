//! The work stream and the long poll: they live as long as the server and the key, and no longer.

use futures::StreamExt as _;
use prost::Message as _;
use std::time::{Duration, Instant};
use switchward_api::v1::{self, worker_service_client::WorkerServiceClient};
use tonic::{Code, Request, Status, Streaming, transport::Channel};

use crate::harness::Harness;
use crate::protocols::Protocol;
use crate::refusal::{Refusal, refused};

/// How long a test waits for something that must come at once.
const SOON: Duration = Duration::from_secs(10);
/// The longest silence of a stream, with a margin for slow machines.
const PATIENCE: Duration = Duration::from_secs(60);
const MINUTE_MS: u64 = 60_000;

type Stream = Streaming<v1::StreamWorkResponse>;

fn wanted(queue: &str) -> Option<v1::WorkWanted> {
    Some(v1::WorkWanted { queues: vec![queue.to_owned()], ..v1::WorkWanted::default() })
}

/// A stream of the work of one definition, with capacity for two items.
async fn open(harness: &Harness, secret: &str, queue: &str) -> Stream {
    let endpoint = Channel::from_shared(format!("http://{}", harness.node.line.address)).expect("an address");
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

/// Returns how the stream ends, which must be soon and with no item before it.
async fn end(stream: &mut Stream) -> Status {
    let end = next(stream).await.expect_err("the stream ends with a status");
    assert!(stream.next().await.is_none(), "nothing comes after the end");
    end
}

/// Creates a worker's key that lives for a minute, or for ever; returns its name and its secret.
async fn key(harness: &Harness, expires: bool) -> (String, String) {
    let now = switchward_shard::Clock::now(&harness.node.clock).0 + MINUTE_MS;
    let seconds = i64::try_from(now / 1000).expect("a time");
    let create = v1::CreateApiKeyRequest {
        role: v1::KeyRole::Worker.into(),
        expire_time: expires.then_some(prost_types::Timestamp { seconds, nanos: 0 }),
        ..v1::CreateApiKeyRequest::default()
    };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
    (made.api_key.expect("a key").name, made.secret)
}

async fn revoke(harness: &Harness, name: &str) {
    let revoke = v1::RevokeApiKeyRequest { name: name.to_owned(), ..Default::default() };
    let _: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke).await;
}

/// Creates more work in this queue; returns the session.
async fn more(harness: &Harness, queue: &str) -> String {
    let start = v1::StartSessionRequest { definition: queue.to_owned(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    reply.session.expect("a session").name
}

/// The sessions of the work that is ready in this queue now.
async fn ready(harness: &Harness, queue: &str) -> Vec<String> {
    let poll = v1::PollWorkRequest { wanted: wanted(queue), max_items: 10, ..Default::default() };
    let reply: v1::PollWorkResponse = harness.ask("worker", "PollWork", &poll).await;
    reply.items.into_iter().map(|item| item.session).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_broken_by_a_sign_of_life() {
    let harness = Harness::start().await;
    let mut stream = open(&harness, harness.acme.key("worker"), "chore-that-never-was").await;
    let begun = Instant::now();
    let sign = tokio::time::timeout(PATIENCE, stream.next()).await.expect("the stream answers in time");
    assert_eq!(sign.expect("the stream goes on").expect("no refusal").item, None);
    assert!(begun.elapsed().as_secs() >= 14, "{:?}", begun.elapsed());
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_ends_it_so_that_the_worker_comes_again() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let mut stream = open(&harness, harness.acme.key("worker"), &queue).await;
    let taken = item(&mut stream).await;
    let mut waiting = open(&harness, harness.acme.key("worker"), "chore-that-never-was").await;
    harness.node.drain();
    for stream in [&mut stream, &mut waiting] {
        let end = end(stream).await;
        let refusal = Refusal::of(&end);
        // What clients call again for, as proto/service_config.json has it, and when.
        assert_eq!((end.code(), refusal.reason.as_str()), (Code::Unavailable, "DRAINING"));
        assert!(refusal.others.iter().any(|detail| detail.starts_with("RetryInfo")), "{refusal:?}");
    }
    // The worker keeps its leased work, and can complete it while the server still runs.
    let (name, lease_token) = (taken.name, taken.lease_token);
    let complete = v1::CompleteWorkRequest { name, lease_token, ..v1::CompleteWorkRequest::default() };
    let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &complete).await;
    assert!(reply.accepted);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_cannot_answer_keeps_no_other_from_it() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let mut stream = open(&harness, harness.acme.key("worker"), &queue).await;
    item(&mut stream).await;
    harness.node.fail(&harness.node.cluster.shards()[0]).await;
    let session = loop {
        let start = v1::StartSessionRequest { definition: queue.clone(), ..Default::default() };
        let secret = harness.acme.key("agent");
        let started: Result<v1::StartSessionResponse, Status> =
            harness.node.line.ask(secret, "StartSession", &start).await;
        match started {
            Ok(reply) => break reply.session.expect("a session").name,
            Err(status) => assert!(harness.node.says_failed(&Refusal::of(&status).reason), "{status:?}"),
        }
    };
    assert_eq!(item(&mut stream).await.session, session);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_ends_it_at_once_and_gets_no_more() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let (name, secret) = key(&harness, false).await;
    let mut stream = open(&harness, &secret, &queue).await;
    item(&mut stream).await;
    let mut other = open(&harness, harness.acme.key("worker"), &queue).await;
    revoke(&harness, &name).await;
    let session = more(&harness, &queue).await;
    // Long before a heartbeat would have noticed.
    let end = end(&mut stream).await;
    let poll = v1::PollWorkRequest { wanted: wanted(&queue), ..Default::default() };
    let fresh: Result<v1::PollWorkResponse, _> = harness.node.line.ask(&secret, "PollWork", &poll).await;
    assert_eq!(
        Refusal::of(&end),
        Refusal::of(&fresh.expect_err("a refusal")),
        "the stream and the poll are refused in the same way"
    );
    assert_eq!(item(&mut other).await.session, session, "the stream of another key continues");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_key_gets_nothing_more() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let (_, secret) = key(&harness, true).await;
    let mut stream = open(&harness, &secret, &queue).await;
    item(&mut stream).await;
    harness.node.clock.advance(MINUTE_MS);
    let session = more(&harness, &queue).await;
    assert_eq!(Refusal::of(&end(&mut stream).await).reason, "CREDENTIAL_INVALID");
    assert!(ready(&harness, &queue).await.contains(&session), "another worker gets the work");
    harness.node.end().await;
}

/// Makes a poll that waits for work, and runs `act` once the poll is waiting.
async fn meanwhile(
    harness: &Harness,
    secret: &str,
    queue: &str,
    act: impl AsyncFnOnce(),
) -> Result<v1::PollWorkResponse, Status> {
    let wait = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let poll = v1::PollWorkRequest { wanted: wanted(queue), wait, ..Default::default() };
    let (line, secret) = (harness.node.line.clone(), secret.to_owned());
    let waiting =
        tokio::spawn(
            async move { line.call(Protocol::Grpc, "PollWork", &secret, &poll.encode_to_vec()).await },
        );
    // Other calls come and go over the same connection before anything happens.
    for _ in 0..5 {
        assert!(ready(harness, "chore-that-never-was").await.is_empty());
    }
    act().await;
    let reply = tokio::time::timeout(SOON, waiting).await.expect("the call ends soon").expect("no panic")?;
    Ok(v1::PollWorkResponse::decode(reply).expect("a reply"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_revoked_while_it_waits_gets_no_work() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    assert_eq!(ready(&harness, &queue).await.len(), 1, "all ready work is leased now");
    let (name, secret) = key(&harness, false).await;
    // Nothing is ready, so it is the key that ends the wait.
    let outcome = meanwhile(&harness, &secret, &queue, async || revoke(&harness, &name).await).await;
    refused(outcome, "CREDENTIAL_INVALID");
    // A valid key gets new work.
    let outcome = meanwhile(&harness, harness.acme.key("worker"), &queue, async || {
        more(&harness, &queue).await;
    });
    assert_eq!(outcome.await.expect("no refusal").items.len(), 1);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_expires_while_it_waits_gets_no_work() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    assert_eq!(ready(&harness, &queue).await.len(), 1, "all ready work is leased now");
    let (_, secret) = key(&harness, true).await;
    let outcome = meanwhile(&harness, &secret, &queue, async || {
        harness.node.clock.advance(MINUTE_MS);
        more(&harness, &queue).await;
    });
    refused(outcome.await, "CREDENTIAL_INVALID");
    assert!(!ready(&harness, &queue).await.is_empty(), "the work is there for another worker");
    harness.node.end().await;
}

/// An item's fields that do not differ from item to item.
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

/// Work is handed out once, so each way in has its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_the_same_by_every_protocol_that_has_streams() {
    let harness = Harness::start().await;
    let secret = harness.acme.key("worker");
    let mut wanted_items = None;
    for protocol in [Protocol::Grpc, Protocol::Web, Protocol::WebText] {
        let (_, queue) = harness.owing().await;
        more(&harness, &queue).await;
        let lifetime = Some(prost_types::Duration { seconds: 2, nanos: 0 });
        let request =
            v1::StreamWorkRequest { wanted: wanted(&queue), lifetime, max_items: 5, ..Default::default() };
        let (seen, end) =
            harness.node.line.watch(protocol, "StreamWork", secret, &request.encode_to_vec()).await;
        assert!(end.is_ok(), "{protocol:?} {end:?}");
        let items: Vec<_> = seen.iter().map(|message| kind_of(message)).collect();
        assert_eq!(items.len(), 2, "{protocol:?}: {items:?}");
        assert_eq!(items, *wanted_items.get_or_insert_with(|| items.clone()), "{protocol:?}");
    }
    let json = harness.node.line.call(Protocol::Json, "StreamWork", secret, b"").await;
    assert_eq!(Refusal::of(&json.expect_err("no stream in JSON")).reason, "UNIMPLEMENTED");
    harness.node.end().await;
}

/// A bad request is refused before anything is sent, and in the same way by every protocol.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_is_refused_the_same_by_every_protocol() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let good = v1::StreamWorkRequest { wanted: wanted(&queue), ..Default::default() };
    let foreign = v1::StreamWorkRequest { parent: "tenants/globex".into(), ..good.clone() };
    let of = |wanted: v1::WorkWanted| v1::StreamWorkRequest { wanted: Some(wanted), ..Default::default() };
    let named = |id: &str| of(v1::WorkWanted { worker_id: id.to_owned(), ..Default::default() });
    let day = 24 * 3_600;
    let rows = [
        ("CREDENTIAL_INVALID", "", "nobody", good.clone()),
        ("ROLE_NOT_ALLOWED", "", "agent", good.clone()),
        ("NOT_FOUND", "", "worker", foreign),
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
        ("FIELD_INVALID", "wanted.worker_id", "worker", named("w\n")),
        ("FIELD_INVALID", "wanted.worker_id", "worker", named("delivery")),
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
        let secret = if role == "nobody" { "nobody" } else { harness.acme.key(role) };
        let mut first: Option<Refusal> = None;
        for protocol in [Protocol::Grpc, Protocol::Web, Protocol::WebText] {
            let bytes = request.encode_to_vec();
            let (messages, end) = harness.node.line.watch(protocol, "StreamWork", secret, &bytes).await;
            assert!(messages.is_empty(), "{reason} {field} by {protocol:?}");
            let refusal = refused(end, reason);
            assert_eq!(refusal.fields, if field.is_empty() { vec![] } else { vec![field] }, "{refusal:?}");
            assert_eq!(
                refusal,
                *first.get_or_insert_with(|| refusal.clone()),
                "{reason} {field} by {protocol:?}"
            );
        }
    }
    assert_eq!(ready(&harness, &queue).await.len(), 1, "no work was leased");
    harness.node.end().await;
}
