//! Sessions expire: small ones at once, large ones in steps.

use switchward_api::v1;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_shard::Failure;
use switchward_state::session::{Expiring, RemoveStep, SessionCommand};
use switchward_state::{Body, Command, Key, REMOVED_KINDS, Reason, Row, Scope, View};

use crate::ending::{cancel, days, eventful, forgotten, id_of, put, rows_of};
use crate::harness::Harness;

const TENANT: TenantId = TenantId(1);
const DAY_MS: u64 = 86_400_000;
/// More messages than the number of rows that one step removes.
const MESSAGES: usize = 140;

/// A session's rows that are removed with it, and its sequence.
fn seen(harness: &Harness, id: SessionId) -> Expiring {
    let of = |key: &Key| key.session_of() == Some(id) && REMOVED_KINDS.into_iter().any(|kind| key.is(kind));
    let keys = rows_of(harness, id).into_iter().filter(of).collect();
    let shard = harness.node.leading(harness.node.cluster.shard_of(id.bucket()));
    let row = shard.read_stale().row(&Key::session(TENANT, id));
    let row = row.expect("rows that can be read");
    let Some(Row::Session(session)) = row.as_deref() else { panic!("no session: {row:?}") };
    Expiring { session: id, keys, sequence: session.sequence }
}

async fn expire(harness: &Harness, session: Expiring, ended_by: Time) -> Result<(), Failure> {
    let shard = harness.node.cluster.shard_of(session.session.bucket());
    let step = RemoveStep::Expire { sessions: vec![session], ended_by };
    shard
        .submit(Command::of_server(TENANT, Scope::Shard, Body::Session(SessionCommand::RemoveStep(step))))
        .await
        .map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_expires_whole_only_as_it_was_seen() {
    let harness = Harness::start().await;
    let (running, ended) = (harness.session().await, eventful(&harness).await);
    // Its call's reservation is released when nobody can report it any more.
    harness.node.clock.advance(2 * DAY_MS);
    let (running, id) = (id_of(&running), id_of(&ended));
    harness.node.until(|| forgotten(&harness, id)).await;
    harness.node.quiet().await;
    let (now, before) = (Time(u64::MAX), seen(&harness, id));
    expire(&harness, seen(&harness, running), now).await.expect("the expiry changes nothing");
    expire(&harness, Expiring { sequence: before.sequence + 1, ..before.clone() }, now)
        .await
        .expect("the expiry changes nothing");
    expire(&harness, before.clone(), Time(1)).await.expect("the expiry changes nothing");
    let mut other = before.clone();
    other.keys.push(Key::run(TENANT, running, switchward_machine::RunId(0)));
    let refused = expire(&harness, other, now).await;
    assert!(matches!(refused, Err(Failure::Rejected(no)) if no.reason == Reason::FieldInvalid));
    assert_eq!(
        (seen(&harness, id).keys, seen(&harness, running).keys.is_empty()),
        (before.keys.clone(), false)
    );
    expire(&harness, before, now).await.expect("the session is removed");
    assert_eq!(rows_of(&harness, id), Vec::<Key>::new());
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_too_large_for_one_step_expires_too() {
    let harness = Harness::start().await;
    let (small, large) = (harness.session().await, harness.session().await);
    for _ in 0..MESSAGES {
        let usage = v1::ReportUsageRequest { session: large.name.clone(), tokens: 1, ..Default::default() };
        let _: v1::ReportUsageResponse = harness.ask("agent", "ReportUsage", &usage).await;
    }
    cancel(&harness, &small.name).await;
    cancel(&harness, &large.name).await;
    put(&harness, vec![v1::RetentionRule { ended_sessions: days(30), ..Default::default() }]).await;
    assert!(seen(&harness, id_of(&large)).keys.len() > MESSAGES);
    harness.node.clock.advance(40 * DAY_MS);
    for session in [small, large] {
        harness.node.until(|| rows_of(&harness, id_of(&session)).is_empty()).await;
    }
    harness.node.end().await;
}

/// A workflow that sends a mail and ends.
const NOTE: &str = r#"{ "name": "note", "states": [{ "name": "tell", "type": "logic", "operations": [
  { "type": "send_notification", "config": { "channel": "email", "recipients": ["a@example.com"], "subject": "s", "body": "b" } }] }],
  "transitions": [] }"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_still_sends_something_does_not_expire() {
    let harness = Harness::start().await;
    harness.deploy(NOTE).await;
    let start = v1::StartSessionRequest { definition: "note".into(), ..Default::default() };
    let started: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    let (sends, ended) = (started.session.expect("a session"), harness.session().await);
    cancel(&harness, &ended.name).await;
    put(&harness, vec![v1::RetentionRule { ended_sessions: days(30), ..Default::default() }]).await;
    harness.node.clock.advance(40 * DAY_MS);
    harness.node.until(|| rows_of(&harness, id_of(&ended)).is_empty()).await;
    harness.node.quiet().await;
    let list = v1::ListEffectsRequest { page_size: 10, ..Default::default() };
    let listed: v1::ListEffectsResponse = harness.ask("admin", "ListEffects", &list).await;
    let effect = listed.effects.iter().find(|effect| effect.session == sends.name).expect("its mail");
    assert_eq!(harness.look(&sends.name).await.status(), v1::SessionStatus::Completed);
    let fail =
        v1::FailEffectRequest { name: effect.name.clone(), code: "no_mailbox".into(), ..Default::default() };
    let _: v1::FailEffectResponse = harness.ask("admin", "FailEffect", &fail).await;
    harness.node.clock.advance(DAY_MS);
    harness.node.until(|| rows_of(&harness, id_of(&sends)).is_empty()).await;
    harness.node.end().await;
}
