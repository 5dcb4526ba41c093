//! Sessions are deleted, erased, and expire; what must remain does.

use std::ops::ControlFlow;
use switchward_api::v1;
use switchward_machine::{SessionId, TenantId};
use switchward_state::session::{Removed, Removing};
use switchward_state::{IndexKey, Key, Kind, Row, View};
use tonic::Code;

use crate::harness::{Harness, tool_call};
use crate::refusal::refused;

/// A text that is put everywhere a caller can put one.
pub(crate) const SECRET: &str = "zanzibar-4711";
const DAY: i64 = 86_400;

/// The rows of all shards that a test looks for, with their content as bytes.
fn rows(harness: &Harness) -> Vec<(Key, Vec<u8>)> {
    let mut found = Vec::new();
    for shard in harness.node.cluster.all() {
        let read = harness.node.leading(shard).read_stale().scan(&[], None, &mut |key, row| {
            found.push((key.clone(), row.encode()));
            ControlFlow::Continue(())
        });
        read.expect("rows that can be read");
    }
    found
}

/// The rows that belong to a session, in any index, except for its tombstone and the tombstone's index entry.
pub(crate) fn rows_of(harness: &Harness, id: SessionId) -> Vec<Key> {
    let remains = IndexKey::remains(TenantId(1));
    let remains = |key: &Key| key.is(Kind::Removed) || key.as_bytes().starts_with(&remains);
    let of = |key: &Key| key.as_bytes().windows(16).any(|part| part == id.0) && !remains(key);
    rows(harness).into_iter().map(|(key, _)| key).filter(of).collect()
}

fn holding(harness: &Harness, text: &str) -> Vec<Key> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    rows(harness).into_iter().filter(|(_, bytes)| has(bytes)).map(|(key, _)| key).collect()
}

pub(crate) fn id_of(session: &v1::Session) -> SessionId {
    session.name.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id")
}

pub(crate) async fn cancel(harness: &Harness, name: &str) {
    let reason = format!("because of {SECRET}");
    let cancel = v1::CancelSessionRequest { name: name.to_owned(), reason, ..Default::default() };
    let _: v1::CancelSessionResponse = harness.ask("operator", "CancelSession", &cancel).await;
}

/// A session of the process `release` that holds the secret wherever a caller can put it, with a decision, what it has
/// used, and an end.
pub(crate) async fn eventful(harness: &Harness) -> v1::Session {
    let start = v1::StartSessionRequest {
        definition: "release".into(),
        session_id: harness.fresh(SECRET),
        labels: [("customer".to_owned(), SECRET.to_owned())].into(),
        input: Some(prost_types::Struct {
            fields: [(
                "note".to_owned(),
                prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(SECRET.into())) },
            )]
            .into(),
        }),
        ..Default::default()
    };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    let session = reply.session.expect("a session");
    let allowed = v1::AuthorizeToolCallRequest {
        est_cost_usd: Some("0.5".into()),
        call_id: harness.fresh(SECRET),
        ..tool_call(&session.name, "mcp:web:search")
    };
    let _: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &allowed).await;
    let mut write = tool_call(&session.name, "mcp:filesystem:write_file");
    write.args = format!("{{\"path\":{SECRET:?}}}").into_bytes().into();
    let asked: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &write).await;
    let decide = v1::DecideGateRequest {
        name: asked.gate,
        decision: v1::GateDecision::Approve.into(),
        comment: format!("fine for {SECRET}"),
        ..Default::default()
    };
    let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide).await;
    let answer = v1::AnswerCheckpointRequest {
        name: session.name.clone(),
        answer: "go".into(),
        note: SECRET.into(),
        ..Default::default()
    };
    let _: v1::AnswerCheckpointResponse = harness.ask("agent", "AnswerCheckpoint", &answer).await;
    cancel(harness, &session.name).await;
    session
}

async fn events(harness: &Harness, name: &str) -> Vec<v1::SessionEvent> {
    let request =
        v1::ListSessionEventsRequest { name: name.to_owned(), page_size: 1_000, ..Default::default() };
    let listed: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    listed.events
}

/// The decider of the decision in a history, and its time.
fn decided_by(events: &[v1::SessionEvent]) -> (String, Option<prost_types::Timestamp>) {
    let decided = events.iter().find(|event| event.r#type == "approval.decided").expect("a decision");
    assert!(!decided.by.is_empty(), "{decided:?}");
    (decided.by.clone(), decided.time)
}

pub(crate) async fn put(harness: &Harness, rules: Vec<v1::RetentionRule>) {
    let retention = Some(v1::Retention { rules, etag: String::new() });
    let put = v1::PutRetentionRequest { retention, ..Default::default() };
    let _: v1::PutRetentionResponse = harness.ask("admin", "PutRetention", &put).await;
}

pub(crate) fn days(days: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: days * DAY, nanos: 0 })
}

/// Returns true if a session remembers no request and has no unsettled call left.
pub(crate) fn forgotten(harness: &Harness, id: SessionId) -> bool {
    let shard = harness.node.leading(harness.node.cluster.shard_of(id.bucket()));
    let row = shard.read_stale().row(&Key::session(TenantId(1), id));
    let row = row.expect("rows that can be read");
    let Some(Row::Session(session)) = row.as_deref() else { return false };
    session.replies.is_empty() && session.calls.is_empty()
}

fn ledgers(harness: &Harness) -> Vec<Key> {
    rows(harness).into_iter().map(|(key, _)| key).filter(|key| key.is(Kind::Ledger)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_has_ended_is_deleted_with_all_its_rows() {
    let harness = Harness::start().await;
    let running = harness.session().await;
    let delete = |name: &str| v1::DeleteSessionRequest { name: name.to_owned(), ..Default::default() };
    let refusal = refused(
        harness.attempt::<v1::DeleteSessionResponse>("admin", "DeleteSession", &delete(&running.name)).await,
        "STATE_MISMATCH",
    );
    assert_eq!(refusal.code, Code::FailedPrecondition, "the session has not ended");
    let session = eventful(&harness).await;
    let (id, before) = (id_of(&session), ledgers(&harness));
    assert!(rows_of(&harness, id).len() > 10 && !before.is_empty());
    let _: v1::DeleteSessionResponse = harness.ask("admin", "DeleteSession", &delete(&session.name)).await;
    let get = v1::GetSessionRequest { name: session.name.clone(), ..Default::default() };
    let gone = harness.attempt::<v1::GetSessionResponse>("agent", "GetSession", &get).await;
    refused(gone, "NOT_FOUND");
    let listed: v1::ListSessionsResponse =
        harness.ask("agent", "ListSessions", &v1::ListSessionsRequest::default()).await;
    assert!(listed.sessions.iter().all(|one| one.name != session.name));
    harness.node.quiet().await;
    assert_eq!(rows_of(&harness, id), Vec::new());
    assert_eq!(holding(&harness, SECRET), Vec::new());
    assert_eq!(ledgers(&harness), before, "used quotas stay counted");
    let key = session.session_id.clone();
    let again =
        v1::StartSessionRequest { definition: "release".into(), session_id: key, ..Default::default() };
    let fresh: v1::StartSessionResponse = harness.ask("agent", "StartSession", &again).await;
    assert!(
        events(&harness, &fresh.session.expect("a session").name).await.len() < 5,
        "a new session begins"
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_erased_session_remains_who_decided_what() {
    let harness = Harness::start().await;
    let running = harness.session().await;
    let erase = |name: &str| v1::EraseSessionRequest { name: name.to_owned(), ..Default::default() };
    let early =
        harness.attempt::<v1::EraseSessionResponse>("admin", "EraseSession", &erase(&running.name)).await;
    refused(early, "STATE_MISMATCH");
    let session = eventful(&harness).await;
    assert!(holding(&harness, SECRET).len() > 5);
    let used = harness.look(&session.name).await.budget;
    let decided = decided_by(&events(&harness, &session.name).await);
    let reply: v1::EraseSessionResponse = harness.ask("admin", "EraseSession", &erase(&session.name)).await;
    assert!(reply.gone_time.is_some());
    harness.node.quiet().await;
    assert_eq!(holding(&harness, SECRET), Vec::new(), "the secret is in no row");
    let left = harness.look(&session.name).await;
    assert_eq!(left.status(), v1::SessionStatus::Cancelled);
    assert_eq!((left.session_id.as_str(), left.labels.len(), left.data), ("", 0, None));
    assert_eq!(left.budget.map(|it| it.used_usd), used.map(|it| it.used_usd), "the used budget is kept");
    let events = events(&harness, &session.name).await;
    assert_eq!(decided_by(&events), decided, "the deciders and times are kept");
    assert!(events.iter().any(|event| event.r#type == "session.removed"), "the removal is recorded");
    let late = v1::RecordReplyRequest {
        name: session.name.clone(),
        from: "lead@example.com".into(),
        text: SECRET.into(),
        ..Default::default()
    };
    refused(
        harness.attempt::<v1::RecordReplyResponse>("operator", "RecordReply", &late).await,
        "SESSION_TERMINAL",
    );
    let again: v1::EraseSessionResponse = harness.ask("admin", "EraseSession", &erase(&session.name)).await;
    assert_eq!(again.gone_time, reply.gone_time, "a repeated erasure changes nothing");
    harness.node.end().await;
}

/// The files below a folder that contain a text.
fn files_with(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
            continue;
        }
        // A file may be deleted while the others are read.
        let bytes = std::fs::read(&path).unwrap_or_default();
        if bytes.windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_an_erased_session_is_found_in_the_files() {
    let harness = Harness::start().await;
    let session = eventful(&harness).await;
    let id = id_of(&session);
    harness.node.caught_up().await;
    for cluster in harness.node.clusters() {
        cluster.shard_of(id.bucket()).group().checkpoint().expect("the rows are written");
    }
    assert!(files_with(harness.node.folder(), SECRET).len() > 1, "the log and the rows hold the secret");
    let request = v1::EraseSessionRequest { name: session.name.clone(), ..Default::default() };
    let _: v1::EraseSessionResponse = harness.ask("admin", "EraseSession", &request).await;
    harness.node.quiet().await;
    assert!(!files_with(harness.node.folder(), SECRET).is_empty(), "the log still holds the secret");
    harness.node.caught_up().await;
    for cluster in harness.node.clusters() {
        assert!(cluster.scrub().await.expect("the log can be rewritten"));
    }
    assert_eq!(files_with(harness.node.folder(), SECRET), Vec::<std::path::PathBuf>::new());
    assert_eq!(harness.look(&session.name).await.status(), v1::SessionStatus::Cancelled);
    harness.session().await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_has_ended_is_kept_as_long_as_the_rules_say() {
    let harness = Harness::start().await;
    let other = crate::harness::named("other");
    harness.deploy(&other).await;
    let rule = |definition: &str, sessions, history, decisions| v1::RetentionRule {
        definition: definition.to_owned(),
        ended_sessions: sessions,
        history,
        decisions,
        quarantine: None,
    };
    put(&harness, vec![rule("", days(30), days(10), days(300)), rule("other", days(90), None, None)]).await;
    let session = eventful(&harness).await;
    let start = v1::StartSessionRequest { definition: "other".into(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    let longer = reply.session.expect("a session").name;
    cancel(&harness, &longer).await;
    let running = harness.session().await;
    let day = |days: u64| days * 86_400_000;
    // Data that is kept for a day after the end is removed first.
    harness.node.clock.advance(day(2));
    harness.node.until(|| forgotten(&harness, id_of(&session))).await;
    harness.node.quiet().await;
    harness.node.clock.advance(day(9));
    harness.node.until(|| rows_of(&harness, id_of(&session)).iter().all(|key| !key.is(Kind::History))).await;
    assert_eq!(
        harness.look(&session.name).await.status(),
        v1::SessionStatus::Cancelled,
        "only the history is removed"
    );
    harness.node.clock.advance(day(20));
    harness.node.until(|| rows_of(&harness, id_of(&session)).is_empty()).await;
    let of = |key: &Key| key.is(Kind::Removed) && key.session_of() == Some(id_of(&session));
    let kept = rows(&harness).into_iter().filter(|(key, _)| of(key)).collect::<Vec<_>>();
    let [(_, bytes)] = &kept[..] else { panic!("{kept:?}") };
    let Ok(Row::Removed(removed)) = Row::decode(bytes) else { panic!("{bytes:?}") };
    assert_eq!(removed.decisions.len(), 1, "the decisions are kept: {removed:?}");
    assert_eq!(
        harness.look(&longer).await.status(),
        v1::SessionStatus::Cancelled,
        "its rule keeps it longer"
    );
    harness.node.clock.advance(day(60));
    let longer_id = longer.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id");
    harness.node.until(|| rows_of(&harness, longer_id).is_empty()).await;
    harness.node.clock.advance(day(300));
    harness.node.until(|| rows(&harness).iter().all(|(key, _)| !key.is(Kind::Removed))).await;
    assert_eq!(
        harness.look(&running.name).await.status(),
        v1::SessionStatus::Waiting,
        "a running session is not removed"
    );
    harness.node.end().await;
}

/// The record that remains of a session whose data was removed.
fn remains(harness: &Harness, id: SessionId) -> Option<Removed> {
    let shard = harness.node.leading(harness.node.cluster.shard_of(id.bucket()));
    let row = shard.read_stale().row(&Key::removed(TenantId(1), id));
    let row = row.expect("rows that can be read");
    if let Some(Row::Removed(removed)) = row.as_deref() { Some(removed.clone()) } else { None }
}

/// An older backup still has the session, so a restore needs the record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_record_of_an_erasure_outlives_the_session_and_its_decisions() {
    let harness = Harness::start().await;
    let rule = v1::RetentionRule { ended_sessions: days(30), decisions: days(300), ..Default::default() };
    put(&harness, vec![rule]).await;
    let session = eventful(&harness).await;
    let erase = v1::EraseSessionRequest { name: session.name.clone(), ..Default::default() };
    let _: v1::EraseSessionResponse = harness.ask("admin", "EraseSession", &erase).await;
    harness.node.quiet().await;
    let (id, day) = (id_of(&session), 86_400_000);
    let erased = remains(&harness, id).expect("the record of the removal");
    harness.node.clock.advance(2 * day);
    harness.node.until(|| forgotten(&harness, id)).await;
    harness.node.clock.advance(30 * day);
    harness.node.until(|| rows_of(&harness, id).is_empty()).await;
    let expired = remains(&harness, id).expect("the record of the removal");
    assert_eq!((expired.how, &expired.by, expired.at), (Removing::Erased, &erased.by, erased.at));
    assert_eq!(expired.decisions.len(), 1, "the decisions are kept: {expired:?}");
    harness.node.clock.advance(300 * day);
    let decisions = || remains(&harness, id).map(|removed| removed.decisions.len());
    harness.node.until(|| decisions() != Some(1)).await;
    assert_eq!(decisions(), Some(0), "only the decisions are removed");
    harness.node.end().await;
}
