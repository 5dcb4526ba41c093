//! Three servers as one cluster: what one of them answers that leads nothing, what it answers when it is cut off, and what it
//! counts when it is behind.

use futures::{StreamExt, future::join_all};
use prost::Message;
use std::time::{Duration, Instant};
use switchward_api::v1::{
    self, session_service_client::SessionServiceClient, watch_session_response::Update,
    worker_service_client::WorkerServiceClient,
};
use switchward_gateway::limits::CATALOGUE_AGE_MAX;
use switchward_machine::{SessionId, TenantId};
use switchward_shard::limits::CONTACT_LOST;
use switchward_shard::{RaftSettings, Shard};
use switchward_testkit::{PATIENCE, until};
use tonic::{Code, Request, Status, Streaming, transport::Channel};

use crate::ending::id_of;
use crate::harness::Harness;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::watching::history;

/// A leader that is cut off is soon followed by another.
pub(crate) const BRISK: RaftSettings =
    RaftSettings { heartbeat_ms: 100, election_min_ms: 1_000, election_max_ms: 2_000 };

pub(crate) async fn three() -> Harness {
    Harness::over(Node::start_three(None, BRISK).await).await
}

/// Makes a call at one server, which nothing prepares for it.
pub(crate) async fn at<R: Message + Default>(
    harness: &Harness,
    server: usize,
    secret: &str,
    method: &str,
    request: &impl Message,
) -> Result<R, Status> {
    harness.node.line.to(server).ask(secret, method, request).await
}

/// The same with the key of an agent; tries again while a shard is choosing its leader.
pub(crate) async fn insist<R: Message + Default>(
    harness: &Harness,
    server: usize,
    method: &str,
    request: &impl Message,
) -> R {
    insist_with(harness, server, harness.acme.key("agent"), &[Code::Unavailable], method, request).await
}

/// The same with another key; tries again after these codes.
pub(crate) async fn insist_with<R: Message + Default>(
    harness: &Harness,
    server: usize,
    secret: &str,
    again: &[Code],
    method: &str,
    request: &impl Message,
) -> R {
    let mut reply = None;
    until("the server answers", async || {
        match at(harness, server, secret, method, request).await {
            Ok(answered) => reply = Some(answered),
            Err(status) => assert!(again.contains(&status.code()), "{method}: {status:?}"),
        }
        reply.is_some()
    })
    .await;
    reply.expect("an answer")
}

/// Cuts a server off from the other two.
pub(crate) fn isolate(harness: &Harness, server: u64) {
    let others: Vec<u64> = (1..=3).filter(|other| *other != server).collect();
    harness.node.network.as_ref().expect("a network").isolate(server, &others);
}

pub(crate) fn heal(harness: &Harness) {
    harness.node.network.as_ref().expect("a network").heal();
}

async fn channel(harness: &Harness, server: usize) -> Channel {
    let address = harness.node.line.to(server).address;
    let endpoint = Channel::from_shared(format!("http://{address}")).expect("an address");
    endpoint.connect().await.expect("a connection")
}

pub(crate) fn with_key<T>(secret: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let header = format!("Bearer {secret}").parse().expect("a header");
    request.metadata_mut().insert("authorization", header);
    request
}

pub(crate) type Watch = Streaming<v1::WatchSessionResponse>;

pub(crate) async fn watch(harness: &Harness, server: usize, name: &str, from_sequence: u64) -> Watch {
    let mut client = SessionServiceClient::new(channel(harness, server).await);
    let request = v1::WatchSessionRequest { name: name.to_owned(), from_sequence };
    client.watch_session(with_key(harness.acme.key("agent"), request)).await.expect("a stream").into_inner()
}

/// The next event; `None` for a heartbeat.
pub(crate) async fn next(watch: &mut Watch) -> Result<Option<v1::SessionEvent>, Status> {
    match watch.next().await.expect("the stream goes on")?.update.expect("an update") {
        Update::Event(event) => Ok(Some(event)),
        Update::Heartbeat(_) => Ok(None),
    }
}

pub(crate) async fn event(watch: &mut Watch) -> v1::SessionEvent {
    let event = async {
        loop {
            if let Some(event) = next(watch).await.expect("the stream goes on") {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, event).await.expect("an event comes")
}

/// The number of the server that leads a session's shard.
pub(crate) async fn leader(harness: &Harness, session: &v1::Session) -> u64 {
    let bucket = id_of(session).bucket();
    let mut found = None;
    until("the shard has a leader", async || {
        found = harness.node.clusters().zip(1..).find(|(one, _)| one.shard_of(bucket).leads());
        found.is_some()
    })
    .await;
    found.expect("a leader").1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_server_answers_and_shows_what_was_written_at_another() {
    let harness = three().await;
    for round in 0..6 {
        let start = v1::StartSessionRequest { definition: "release".into(), ..Default::default() };
        let started: v1::StartSessionResponse = insist(&harness, round % 3, "StartSession", &start).await;
        let name = started.session.expect("a session").name;
        for server in 0..3 {
            let get = v1::GetSessionRequest { name: name.clone(), ..Default::default() };
            let seen: v1::GetSessionResponse = insist(&harness, server, "GetSession", &get).await;
            assert_eq!(seen.session.expect("a session").name, name);
            let list = v1::ListSessionsRequest { page_size: 1_000, ..Default::default() };
            let listed: v1::ListSessionsResponse = insist(&harness, server, "ListSessions", &list).await;
            let known = listed.sessions.iter().any(|session| session.name == name);
            assert!(known || !listed.unreachable.is_empty(), "server {server} does not list {name}");
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_counts_everywhere_at_once_and_a_revoked_one_soon_nowhere() {
    let harness = three().await;
    for round in 0..5 {
        let create = v1::CreateApiKeyRequest { role: v1::KeyRole::Agent.into(), ..Default::default() };
        let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
        let get = v1::GetSessionRequest { name: harness.acme.session.name.clone(), ..Default::default() };
        let seen: Result<v1::GetSessionResponse, _> =
            at(&harness, round % 3, &made.secret, "GetSession", &get).await;
        assert!(seen.is_ok(), "a server refuses a new key: {seen:?}");
        let revoke =
            v1::RevokeApiKeyRequest { name: made.api_key.expect("a key").name, ..Default::default() };
        let _: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke).await;
        for server in 0..3 {
            until("the revoked key is refused", async || {
                let seen: Result<v1::GetSessionResponse, _> =
                    at(&harness, server, &made.secret, "GetSession", &get).await;
                seen.is_err_and(|status| status.code() == Code::Unauthenticated)
            })
            .await;
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_ends_streams_at_other_servers() {
    let harness = three().await;
    let create = v1::CreateApiKeyRequest { role: v1::KeyRole::Agent.into(), ..Default::default() };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
    let name = harness.acme.session.name.clone();
    let mut watches = Vec::new();
    for server in 0..3 {
        let mut client = SessionServiceClient::new(channel(&harness, server).await);
        let request = v1::WatchSessionRequest { name: name.clone(), from_sequence: 1_000 };
        let stream = client.watch_session(with_key(&made.secret, request)).await.expect("a stream");
        watches.push(stream.into_inner());
    }
    let revoke = v1::RevokeApiKeyRequest { name: made.api_key.expect("a key").name, ..Default::default() };
    let _: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke).await;
    for mut watch in watches {
        // Long before a heartbeat would have noticed.
        let end = tokio::time::timeout(Duration::from_secs(10), next(&mut watch)).await.expect("soon");
        assert_eq!(end.expect_err("a refusal").code(), Code::Unauthenticated);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_at_any_server_goes_on_at_another_without_a_gap() {
    let harness = three().await;
    let session = harness.session().await;
    let led = leader(&harness, &session).await;
    // A server that does not lead the session's shard, and the other one.
    let (away, other) = (led % 3 + 1, (led + 1) % 3 + 1);
    let index = |server: u64| usize::try_from(server - 1).expect("small");
    let mut first = watch(&harness, index(away), &session.name, 0).await;
    harness.answer(&session.name, "go").await;
    let before = history(&harness, &session.name).await;
    for expected in &before {
        assert_eq!(event(&mut first).await, *expected);
    }
    isolate(&harness, away);
    let begun = Instant::now();
    let end = loop {
        match next(&mut first).await {
            Ok(update) => assert!(update.is_none(), "nothing happens"),
            Err(status) => break status,
        }
    };
    assert_eq!((end.code(), Refusal::of(&end).reason.as_str()), (Code::Unavailable, "SHARD_ELECTING"));
    let election = Duration::from_millis(BRISK.election_max_ms);
    // The machine may be busy; a heartbeat would come after fifteen seconds.
    assert!(begun.elapsed() < election + CONTACT_LOST + Duration::from_secs(8), "{:?}", begun.elapsed());
    let answer = v1::AnswerCheckpointRequest {
        name: session.name.clone(),
        answer: "done".into(),
        request_id: "after the cut".into(),
        ..Default::default()
    };
    let _: v1::AnswerCheckpointResponse = insist(&harness, index(other), "AnswerCheckpoint", &answer).await;
    let last = before.last().expect("an event").sequence;
    let mut second = watch(&harness, index(other), &session.name, last + 1).await;
    let next = event(&mut second).await;
    heal(&harness);
    let list =
        v1::ListSessionEventsRequest { name: session.name.clone(), page_size: 1_000, ..Default::default() };
    let shown: v1::ListSessionEventsResponse =
        insist(&harness, index(other), "ListSessionEvents", &list).await;
    assert_eq!(Some(&next), shown.events.get(before.len()), "no event is missing between the two streams");
    harness.node.end().await;
}

/// A stream of work at one server, for one item at a time.
async fn stream_work(harness: &Harness, server: usize, queue: &str) -> Streaming<v1::StreamWorkResponse> {
    let mut client = WorkerServiceClient::new(channel(harness, server).await);
    let wanted = Some(v1::WorkWanted { queues: vec![queue.to_owned()], ..Default::default() });
    let request = v1::StreamWorkRequest { wanted, max_items: 1, ..Default::default() };
    client.stream_work(with_key(harness.acme.key("worker"), request)).await.expect("a stream").into_inner()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_is_handed_out_by_any_server_and_by_none_that_is_cut_off() {
    let harness = three().await;
    let (_, queue) = harness.owing().await;
    let (mut streams, mut leased) = (Vec::new(), Vec::new());
    for server in 0..3 {
        streams.push(stream_work(&harness, server, &queue).await);
        // The workers before have their items already.
        let start = v1::StartSessionRequest { definition: queue.clone(), ..Default::default() };
        let _: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
        let message = streams[server].next().await.expect("the stream goes on").expect("a message");
        let item = message.item.unwrap_or_else(|| panic!("server {server} hands out nothing"));
        leased.push(item.name);
    }
    isolate(&harness, 3);
    let end = loop {
        match streams[2].next().await.expect("the stream goes on") {
            Ok(message) => assert!(message.item.is_none()),
            Err(status) => break status,
        }
    };
    assert_eq!(end.code(), Code::Unavailable);
    // At another server it goes on with the item that nobody had capacity for.
    let other = harness.node.clusters().nth(1).expect("three servers");
    until("it reaches all leaders", async || {
        join_all(other.all().map(Shard::read)).await.iter().all(Result::is_ok)
    })
    .await;
    let mut resumed = stream_work(&harness, 1, &queue).await;
    let item = async {
        loop {
            let message = resumed.next().await.expect("the stream goes on").expect("a message");
            if let Some(item) = message.item {
                return item.name;
            }
        }
    };
    let item = tokio::time::timeout(PATIENCE, item).await.expect("work comes");
    assert!(!leased.contains(&item), "{item} is leased");
    heal(&harness);
    harness.node.end().await;
}

/// Starts a session of globex at one server.
async fn start_at(harness: &Harness, server: usize, key: &str) -> Result<v1::StartSessionResponse, Status> {
    let session_id = key.to_owned();
    let start = v1::StartSessionRequest { definition: "release".into(), session_id, ..Default::default() };
    at(harness, server, harness.globex.key("agent"), "StartSession", &start).await
}

/// Sets how many sessions globex may have; returns when all servers know it.
async fn allow_sessions(harness: &Harness, more: u64) {
    harness.node.caught_up().await;
    let held = harness.node.cluster.usage(TenantId(2)).expect("rows that can be read").sessions;
    let quotas = v1::Quotas { sessions: Some(held + more), ..Default::default() };
    let tenant_id = "globex".to_owned();
    let set = v1::SetTenantQuotasRequest { tenant_id, quotas: Some(quotas), ..Default::default() };
    let _: v1::SetTenantQuotasResponse = harness.ask("admin", "SetTenantQuotas", &set).await;
    harness.node.caught_up().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_sessions_are_started_as_the_quota_allows_at_whichever_servers() {
    let harness = three().await;
    allow_sessions(&harness, 5).await;
    let mut started = 0;
    for round in 0..12 {
        match start_at(&harness, round % 3, &format!("of-quota-{round}")).await {
            Ok(_) => started += 1,
            Err(status) => assert_eq!(Refusal::of(&status).reason, "QUOTA_EXCEEDED", "{status:?}"),
        }
    }
    assert_eq!(started, 5);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_behind_starts_no_session_beyond_the_quota() {
    let harness = three().await;
    allow_sessions(&harness, 1).await;
    // In two shards, of which the third server leads neither.
    let third = harness.node.clusters().nth(2).expect("three servers");
    let shard = |key: &str| third.shard_of(SessionId::from_key(TenantId(2), key).bucket());
    let keys = (0..).map(|number| format!("of-quota-{number}")).filter(|key| !shard(key).leads());
    let mut keys = keys.take(100).collect::<Vec<_>>();
    let first = keys.remove(0);
    let last = keys.into_iter().find(|key| shard(key).number() != shard(&first).number());
    let last = last.expect("it leads one shard of four");
    harness.node.network.as_ref().expect("a network").withhold(3);
    start_at(&harness, 0, &first).await.expect("the quota allows one");
    let refused = start_at(&harness, 2, &last).await.expect_err("it cannot know of the other");
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    heal(&harness);
    until("it knows of the other", async || {
        let refused = start_at(&harness, 2, &last).await.expect_err("the quota is used up");
        Refusal::of(&refused).reason == "QUOTA_EXCEEDED"
    })
    .await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_cut_off_says_so_and_neither_accepts_nor_refuses_a_key() {
    let harness = three().await;
    let get = v1::GetSessionRequest { name: harness.acme.session.name.clone(), ..Default::default() };
    isolate(&harness, 2);
    let catalogue = harness.node.clusters().nth(1).expect("three servers").catalogue().clone();
    until("its keys may be out of date", async || !catalogue.confirmed_within(CATALOGUE_AGE_MAX)).await;
    for secret in [harness.acme.key("agent"), "swk_0123456789abcdef_nothing", "nothing at all"] {
        let seen: Result<v1::GetSessionResponse, _> = at(&harness, 1, secret, "GetSession", &get).await;
        let refused = seen.expect_err("a refusal");
        // What has not even the form of a key is no key anywhere.
        let expected = if secret.starts_with("swk_") && secret.len() > 40 {
            Code::Unavailable
        } else {
            Code::Unauthenticated
        };
        assert_eq!(refused.code(), expected, "{secret}: {refused:?}");
    }
    heal(&harness);
    let _: v1::GetSessionResponse = insist(&harness, 1, "GetSession", &get).await;
    harness.node.end().await;
}
