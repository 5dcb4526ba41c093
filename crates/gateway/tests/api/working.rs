//! Workers: they lease work, extend the lease, lose it, and complete the work.

use futures::{StreamExt as _, future::join_all};
use prost::Message as _;
use std::collections::BTreeSet;
use std::time::Duration;
use switchward_api::v1::{self, worker_service_client::WorkerServiceClient};
use tonic::{Request, transport::Channel};

use crate::deciding::key;
use crate::harness::{Harness, deployment};
use crate::protocols::Protocol;
use crate::refusal::refused;

const MINUTE_MS: u64 = 60_000;
/// How long a test waits for an expected answer: less than the longest wait of a poll.
const PATIENCE: Duration = Duration::from_secs(45);

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn wanted(queue: &str) -> Option<v1::WorkWanted> {
    let (queues, worker_id) = (vec![queue.to_owned()], "w-1".to_owned());
    Some(v1::WorkWanted { queues, worker_id, ..v1::WorkWanted::default() })
}

async fn poll(harness: &Harness, queue: &str, max_items: u32, wait: i64) -> Vec<v1::WorkItem> {
    let request =
        v1::PollWorkRequest { wanted: wanted(queue), max_items, wait: seconds(wait), ..Default::default() };
    let reply: v1::PollWorkResponse = harness.ask("worker", "PollWork", &request).await;
    reply.items
}

pub(crate) async fn one(harness: &Harness, queue: &str) -> v1::WorkItem {
    let mut items = poll(harness, queue, 1, 0).await;
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

pub(crate) fn done(item: &v1::WorkItem) -> v1::CompleteWorkRequest {
    let (name, lease_token) = (item.name.clone(), item.lease_token.clone());
    v1::CompleteWorkRequest { name, lease_token, ..v1::CompleteWorkRequest::default() }
}

pub(crate) fn result(key: &str, text: &str) -> Option<prost_types::Struct> {
    let value = prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(text.into())) };
    Some(prost_types::Struct { fields: [(key.to_owned(), value)].into() })
}

/// A session of a workflow that reads a number out of the user's message.
pub(crate) async fn reading(harness: &Harness) -> (v1::Session, String) {
    reading_up_to(harness, 1).await
}

/// The same, with this many attempts.
async fn reading_up_to(harness: &Harness, attempts: u32) -> (v1::Session, String) {
    let name = harness.fresh("reading");
    let mut source = serde_json::json!({
        "name": name,
        "states": [
            { "name": "ask", "type": "conversation" },
            { "name": "read", "type": "parse", "instructions": "In dollars.",
              "fields": [{ "name": "amount", "type": "number", "required": true }] },
            { "name": "told", "type": "conversation" },
        ],
        "transitions": [
            { "from": "ask", "to": "read", "guards": [{ "type": "always" }] },
            { "from": "read", "port": "complete", "to": "told" },
        ],
    });
    if attempts > 1 {
        source["states"][1]["on_error"] = "retry_then_port".into();
        source["states"][1]["retry_policy"] = serde_json::json!({ "max_attempts": attempts });
        let error = serde_json::json!({ "from": "read", "port": "error", "to": "told" });
        source["transitions"].as_array_mut().expect("a list").push(error);
    }
    let _: v1::DeployDefinitionResponse =
        harness.ask("author", "DeployDefinition", &deployment(&source.to_string())).await;
    let request = v1::StartSessionRequest { definition: name.clone(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let session = reply.session.expect("a session");
    let said = v1::PostMessageRequest {
        name: session.name.clone(),
        text: "12 dollars".into(),
        ..Default::default()
    };
    let _: v1::PostMessageResponse = harness.ask("agent", "PostMessage", &said).await;
    let turn = v1::EndTurnRequest { name: session.name.clone(), ..Default::default() };
    let _: v1::EndTurnResponse = harness.ask("agent", "EndTurn", &turn).await;
    (session, name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_is_taken_kept_and_done_once() {
    let harness = Harness::start().await;
    let (session, queue) = harness.owing().await;
    let item = one(&harness, &queue).await;
    assert_eq!((item.session.as_str(), item.state.as_str(), item.attempt), (session.name.as_str(), "do", 1));
    assert_eq!(item.kind(), v1::WorkKind::Agent);
    assert!(poll(&harness, &queue, 10, 0).await.is_empty(), "the work is leased");

    let keep = v1::ExtendLeaseRequest {
        name: item.name.clone(),
        lease_token: item.lease_token.clone(),
        lease: seconds(600),
    };
    let kept: v1::ExtendLeaseResponse = harness.ask("worker", "ExtendLease", &keep).await;
    assert_eq!(
        kept.lease_expire_time.expect("a time").seconds,
        item.lease_expire_time.expect("a time").seconds + 540
    );

    let complete = v1::CompleteWorkRequest { result: result("sum", "3"), ..done(&item) };
    let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &complete).await;
    assert!(reply.accepted, "{reply:?}");
    let after = harness.look(&session.name).await;
    assert_eq!((after.at[0].as_str(), after.sequence), ("done", reply.sequence));
    let again: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &complete).await;
    assert_eq!(again, reply, "the same token and body get the first reply");
    let other = v1::CompleteWorkRequest { result: result("sum", "4"), ..done(&item) };
    let other: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &other).await;
    assert_eq!(other, reply, "a lease can be finished only once");
    let fail = v1::FailWorkRequest {
        name: item.name.clone(),
        lease_token: item.lease_token.clone(),
        ..v1::FailWorkRequest::default()
    };
    let outcome = harness.attempt::<v1::FailWorkResponse>("worker", "FailWork", &fail).await;
    refused(outcome.map(drop), "LEASE_LOST");
    let own = v1::CompleteWorkRequest { request_id: "mine".into(), ..done(&item) };
    let outcome = harness.attempt::<v1::CompleteWorkResponse>("worker", "CompleteWork", &own).await;
    refused(outcome.map(drop), "LEASE_LOST");
    harness.node.end().await;
}

/// Each call that extends or ends the lease of an item.
fn about_lease(item: &v1::WorkItem) -> [(&'static str, Vec<u8>); 4] {
    let named = || (item.name.clone(), item.lease_token.clone());
    let (name, lease_token) = named();
    let extend = v1::ExtendLeaseRequest { name, lease_token, lease: seconds(600) };
    let (name, lease_token) = named();
    let fail = v1::FailWorkRequest { name, lease_token, ..Default::default() };
    let (name, lease_token) = named();
    let release = v1::ReleaseWorkRequest { name, lease_token, ..Default::default() };
    [
        ("ExtendLease", extend.encode_to_vec()),
        ("FailWork", fail.encode_to_vec()),
        ("ReleaseWork", release.encode_to_vec()),
        ("CompleteWork", done(item).encode_to_vec()),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_extended_and_ended_only_with_a_key_of_the_subject_that_took_it() {
    let harness = Harness::start().await;
    let (session, queue) = harness.owing().await;
    let line = &harness.node.line;
    let robots = [
        key(&harness, v1::KeyRole::Worker, "robot").await,
        key(&harness, v1::KeyRole::Worker, "robot").await,
    ];
    let other = key(&harness, v1::KeyRole::Worker, "w-1").await;
    let poll = v1::PollWorkRequest { wanted: wanted(&queue), ..Default::default() };
    let polled: v1::PollWorkResponse = line.ask(&robots[0], "PollWork", &poll).await.expect("an answer");
    let item = polled.items.into_iter().next().expect("work");

    let before = harness.node.state().await;
    for secret in [other.as_str(), harness.acme.key("worker"), harness.acme.key("admin")] {
        for (method, request) in about_lease(&item) {
            refused(line.call(Protocol::Grpc, method, secret, &request).await, "LEASE_LOST");
        }
    }
    // Nor can another call have the id under which the work will be completed.
    let request_id = format!("lease:CompleteWork:{}", item.lease_token);
    let message = v1::PostMessageRequest {
        name: session.name.clone(),
        text: "12 dollars".into(),
        request_id,
        ..Default::default()
    };
    let outcome = harness.attempt::<v1::PostMessageResponse>("agent", "PostMessage", &message).await;
    assert_eq!(refused(outcome.map(drop), "FIELD_INVALID").fields, ["request_id"]);
    assert_eq!(harness.node.state().await, before, "a lease of another subject was changed");

    let complete = v1::CompleteWorkRequest { result: result("sum", "3"), ..done(&item) };
    for secret in robots.iter().rev() {
        let reply: v1::CompleteWorkResponse =
            line.ask(secret, "CompleteWork", &complete).await.expect("an answer");
        assert!(reply.accepted, "{reply:?}");
    }
    assert_eq!(harness.look(&session.name).await.at[0], "done");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_of_a_worker_that_is_lost_goes_to_another_and_is_no_attempt() {
    let harness = Harness::start().await;
    let (session, queue) = harness.owing().await;
    let first = one(&harness, &queue).await;
    let waiting = poll(&harness, &queue, 1, 20);
    let advance = v1::AdvanceClockRequest { duration: seconds(60), ..Default::default() };
    let advanced = harness.ask::<v1::AdvanceClockResponse>("operator", "AdvanceClock", &advance);
    let (mut items, _) = tokio::join!(waiting, advanced);
    let second = items.pop().expect("the same work");
    assert_eq!((&second.name, second.attempt), (&first.name, 1));
    assert_eq!(second.idempotency_key, first.idempotency_key);
    assert_ne!(second.lease_token, first.lease_token);
    let outcome = harness.attempt::<v1::CompleteWorkResponse>("worker", "CompleteWork", &done(&first)).await;
    refused(outcome.map(drop), "LEASE_LOST");
    let keep = v1::ExtendLeaseRequest {
        name: first.name.clone(),
        lease_token: first.lease_token.clone(),
        lease: None,
    };
    let outcome = harness.attempt::<v1::ExtendLeaseResponse>("worker", "ExtendLease", &keep).await;
    refused(outcome.map(drop), "LEASE_LOST");
    assert_eq!(harness.look(&session.name).await.at[0], "do", "no part of the result was accepted");
    let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &done(&second)).await;
    assert!(reply.accepted);
    assert_eq!(harness.look(&session.name).await.at[0], "done");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_may_be_any_json_and_names_a_transition_only_where_there_is_one() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let item = one(&harness, &queue).await;
    assert_eq!((item.exits.as_slice(), item.model.as_str()), (&[][..], ""));
    let named = v1::CompleteWorkRequest { next: "done".into(), ..done(&item) };
    let outcome = harness.attempt::<v1::CompleteWorkResponse>("worker", "CompleteWork", &named).await;
    refused(outcome.map(drop), "TRANSITION_ILLEGAL");
    let text = || Some(prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("3".into())) });
    let both = v1::CompleteWorkRequest { result: result("sum", "3"), value: text(), ..done(&item) };
    let outcome = harness.attempt::<v1::CompleteWorkResponse>("worker", "CompleteWork", &both).await;
    refused(outcome.map(drop), "FIELD_INVALID");
    let bare = v1::CompleteWorkRequest { value: text(), ..done(&item) };
    let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &bare).await;
    assert_eq!((reply.accepted, reply.reason.as_str()), (false, "SCHEMA_VIOLATION"), "{reply:?}");
    harness.node.end().await;
}

/// The next attempt at the same work, after this one has failed.
async fn after_failing(
    harness: &Harness,
    queue: &str,
    item: &v1::WorkItem,
    outcome_unknown: bool,
) -> v1::WorkItem {
    let (name, lease_token) = (item.name.clone(), item.lease_token.clone());
    let fail = v1::FailWorkRequest { name, lease_token, outcome_unknown, ..v1::FailWorkRequest::default() };
    let _: v1::FailWorkResponse = harness.ask("worker", "FailWork", &fail).await;
    one(harness, queue).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_keeps_the_key_of_one_that_may_have_been_done() {
    let harness = Harness::start().await;
    let (_, queue) = reading_up_to(&harness, 5).await;
    let first = one(&harness, &queue).await;
    let second = after_failing(&harness, &queue, &first, true).await;
    let third = after_failing(&harness, &queue, &second, true).await;
    assert_eq!((second.attempt, third.attempt), (2, 3));
    assert!(second.name != first.name && third.name != second.name, "each attempt is a work item of its own");
    assert_eq!(
        [&second.idempotency_key, &third.idempotency_key],
        [&first.idempotency_key; 2],
        "a receiver must recognise work that it has done"
    );
    // Now it is known that the work was not done.
    let fourth = after_failing(&harness, &queue, &third, false).await;
    assert_ne!(
        fourth.idempotency_key, first.idempotency_key,
        "a receiver may remember that it refused the first attempt"
    );
    // An invalid result is an answer, too.
    let bad = v1::CompleteWorkRequest { result: result("amount", "much"), ..done(&fourth) };
    let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &bad).await;
    assert!(!reply.accepted);
    assert_ne!(one(&harness, &queue).await.idempotency_key, fourth.idempotency_key);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_given_back_is_ready_at_once_and_what_fails_is_an_attempt() {
    let harness = Harness::start().await;
    let (session, queue) = harness.owing().await;
    let item = one(&harness, &queue).await;
    let back = v1::ReleaseWorkRequest {
        name: item.name.clone(),
        lease_token: item.lease_token.clone(),
        request_id: String::new(),
    };
    let _: v1::ReleaseWorkResponse = harness.ask("worker", "ReleaseWork", &back).await;
    let again = one(&harness, &queue).await;
    assert_eq!((&again.name, again.attempt), (&item.name, 1));
    let fail = v1::FailWorkRequest {
        name: again.name.clone(),
        lease_token: again.lease_token.clone(),
        message: "no paper".into(),
        tokens: 7,
        ..v1::FailWorkRequest::default()
    };
    let _: v1::FailWorkResponse = harness.ask("worker", "FailWork", &fail).await;
    let after = harness.look(&session.name).await;
    assert_eq!(after.status(), v1::SessionStatus::Failed);
    assert_eq!(after.reason, "work_error");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_is_checked_against_the_schema_that_was_handed_out() {
    let harness = Harness::start().await;
    for (text, accepted) in [("a lot", false), ("12", true)] {
        let (session, queue) = reading(&harness).await;
        let item = one(&harness, &queue).await;
        assert_eq!(item.kind(), v1::WorkKind::Extract);
        let schema = item.result_schema.as_ref().expect("a schema");
        assert!(schema.fields.contains_key("properties"), "{schema:?}");
        assert_eq!(item.last_message, "12 dollars");
        let number = text.parse::<f64>().map(prost_types::value::Kind::NumberValue);
        let kind = number.unwrap_or_else(|_| prost_types::value::Kind::StringValue(text.into()));
        let fields = [("amount".to_owned(), prost_types::Value { kind: Some(kind) })].into();
        let complete =
            v1::CompleteWorkRequest { result: Some(prost_types::Struct { fields }), ..done(&item) };
        let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &complete).await;
        assert_eq!(reply.accepted, accepted, "{reply:?}");
        assert_eq!(reply.reason, if accepted { "" } else { "SCHEMA_VIOLATION" });
        assert_eq!(reply.message.contains("/amount"), !accepted, "{reply:?}");
        let after = harness.look(&session.name).await;
        assert_eq!(after.at[0], if accepted { "told" } else { "read" });
        assert_eq!(after.status() == v1::SessionStatus::Failed, !accepted);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_waits_for_work_and_ends_without_any_in_its_time() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let _taken = one(&harness, &queue).await;
    let start = async {
        let request = v1::StartSessionRequest { definition: queue.clone(), ..Default::default() };
        harness.ask::<v1::StartSessionResponse>("agent", "StartSession", &request).await
    };
    let (items, started) = tokio::join!(tokio::time::timeout(PATIENCE, poll(&harness, &queue, 5, 60)), start);
    let items = items.expect("the poll does not wait long");
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].session, started.session.expect("a session").name);
    assert!(poll(&harness, &queue, 5, 1).await.is_empty());
    assert!(poll(&harness, "chore-that-never-was", 5, 0).await.is_empty());
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_workers_get_each_piece_once() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    for _ in 1..9 {
        let request = v1::StartSessionRequest { definition: queue.clone(), ..Default::default() };
        let _: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    }
    let all = join_all((0..20).map(|_| poll(&harness, &queue, 3, 0))).await;
    let items: Vec<v1::WorkItem> = all.into_iter().flatten().collect();
    let names: BTreeSet<&str> = items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!((items.len(), names.len()), (9, 9));
    let kinds = vec![v1::WorkKind::Extract.into()];
    let other = v1::PollWorkRequest {
        wanted: Some(v1::WorkWanted { kinds, ..v1::WorkWanted::default() }),
        ..v1::PollWorkRequest::default()
    };
    let none: v1::PollWorkResponse = harness.ask("worker", "PollWork", &other).await;
    assert!(none.items.is_empty());
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_sends_no_more_than_the_worker_has_capacity_for() {
    let harness = Harness::start().await;
    let (_, queue) = harness.owing().await;
    let request = v1::StartSessionRequest { definition: queue.clone(), ..Default::default() };
    let _: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let endpoint = Channel::from_shared(format!("http://{}", harness.node.line.address)).expect("an address");
    let mut client = WorkerServiceClient::new(endpoint.connect().await.expect("a connection"));
    let mut request = Request::new(v1::StreamWorkRequest { wanted: wanted(&queue), ..Default::default() });
    let header = format!("Bearer {}", harness.acme.key("worker")).parse().expect("a header");
    request.metadata_mut().insert("authorization", header);
    let mut stream = client.stream_work(request).await.expect("a stream").into_inner();
    let mut next = async || {
        let message = tokio::time::timeout(PATIENCE, stream.next()).await.expect("something is sent");
        message.expect("the stream goes on").expect("no refusal").item.expect("work")
    };
    let first = next().await;
    let early = tokio::time::timeout(Duration::from_millis(300), next()).await;
    assert!(early.is_err(), "the worker has no capacity for {early:?}");
    let _: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &done(&first)).await;
    let second = next().await;
    assert_ne!(first.name, second.name);
    // An expired lease frees capacity, too: the same work comes again.
    let advance =
        v1::AdvanceClockRequest { duration: seconds((MINUTE_MS / 1000) as i64), ..Default::default() };
    let _: v1::AdvanceClockResponse = harness.ask("operator", "AdvanceClock", &advance).await;
    let third = next().await;
    assert_eq!((&third.name, third.attempt), (&second.name, 1));
    harness.node.end().await;
}
