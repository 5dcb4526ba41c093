//! Effects are listed in the session's history, with all that a reader needs to understand them.

use prost::Message;
use std::collections::BTreeMap;
use switchward_api::v1;
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_state::approval::{MailKey, TokenUse};
use switchward_testkit::until;

use crate::harness::{Harness, tool_call};
use crate::protocols::{Protocol, Raw, body};
use crate::refusal::refused;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The effects that a session has queued, each with its fields.
async fn queued(harness: &Harness, name: &str) -> Vec<BTreeMap<String, String>> {
    events(harness, name, "effect.queued").await
}

/// The events of a type in a session's history, each with its fields.
async fn events(harness: &Harness, name: &str, kind: &str) -> Vec<BTreeMap<String, String>> {
    let request =
        v1::ListSessionEventsRequest { name: name.to_owned(), page_size: 1_000, ..Default::default() };
    let listed: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    let effects = listed.events.into_iter().filter(|event| event.r#type == kind);
    let text = |value: prost_types::Value| match value.kind {
        Some(prost_types::value::Kind::StringValue(text)) => text,
        other => panic!("{other:?}"),
    };
    effects
        .map(|event| {
            event.data.unwrap_or_default().fields.into_iter().map(|(name, value)| (name, text(value)))
        })
        .map(Iterator::collect)
        .collect()
}

async fn call(harness: &Harness, method: &str, request: &impl Message, trace: &str) {
    let raw = Raw::post(Protocol::Grpc, method, body(Protocol::Grpc, method, &request.encode_to_vec()));
    let raw = raw.with_key(harness.acme.key("agent")).with("traceparent", trace);
    let answer = harness.node.line.send(raw).await;
    crate::protocols::reply(Protocol::Grpc, method, &answer).expect(method);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_queues_one_notice_that_names_it_and_the_trace() {
    let harness = Harness::start().await;
    let asked = harness.session().await.name;
    call(&harness, "AuthorizeToolCall", &tool_call(&asked, "mcp:filesystem:write_file"), TRACE).await;
    let reviewed = harness.session().await.name;
    let answer = v1::AnswerCheckpointRequest {
        name: reviewed.clone(),
        answer: "review".into(),
        ..v1::AnswerCheckpointRequest::default()
    };
    call(&harness, "AnswerCheckpoint", &answer, TRACE).await;
    for (name, kind) in [(asked, "tool_ask"), (reviewed, "notify")] {
        let gate = harness.look(&name).await.waiting_on[0].name.clone();
        let effects = queued(&harness, &name).await;
        let [effect] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!((effect["kind"].as_str(), effect["gate_kind"].as_str()), ("notice", kind));
        assert!(gate.ends_with(&format!("_{}", effect["gate"])), "{gate} {effect:?}");
        assert_eq!(effect["traceparent"], TRACE);
        assert!(effect["subject"].contains("release") && !effect["number"].is_empty(), "{effect:?}");
    }
    harness.node.end().await;
}

/// A number is read out of a text, sent by mail, and sent again an hour later.
const ORDER: &str = r#"{
  "name": "order",
  "states": [
    { "name": "read", "type": "parse", "source": "gathered_data.text", "fields": [{ "name": "n", "type": "number", "description": "how many", "required": true }] },
    {
      "name": "tell",
      "type": "logic",
      "operations": [
        { "type": "send_notification", "config": { "channel": "email", "recipients": ["a@example.com"], "subject": "s", "body": "b" } },
        { "type": "wait", "config": { "hours": 1 } },
        { "type": "send_notification", "config": { "channel": "email", "recipients": ["b@example.com"], "subject": "s", "body": "b" } }
      ]
    }
  ],
  "transitions": [{ "from": "read", "port": "complete", "to": "tell" }]
}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_from_work_and_from_a_timer_belongs_to_the_trace_that_opened_them() {
    let harness = Harness::start().await;
    harness.deploy(ORDER).await;
    let input = prost_types::Struct {
        fields: [(
            "text".to_owned(),
            prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("7".into())) },
        )]
        .into(),
    };
    let key = harness.fresh("order");
    let start = v1::StartSessionRequest {
        definition: "order".into(),
        session_id: key.clone(),
        input: Some(input),
        ..Default::default()
    };
    call(&harness, "StartSession", &start, TRACE).await;
    let wanted = Some(v1::WorkWanted { queues: vec!["order".into()], ..Default::default() });
    let request = v1::PollWorkRequest { wanted, ..Default::default() };
    let polled: v1::PollWorkResponse = harness.ask("worker", "PollWork", &request).await;
    let item = polled.items.into_iter().next().expect("work");
    assert_eq!(item.traceparent, TRACE);
    let number = prost_types::Value { kind: Some(prost_types::value::Kind::NumberValue(7.0)) };
    let result = prost_types::Struct { fields: [("n".to_owned(), number)].into() };
    let complete = v1::CompleteWorkRequest {
        name: item.name.clone(),
        lease_token: item.lease_token.clone(),
        result: Some(result),
        ..Default::default()
    };
    let _: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &complete).await;
    harness.node.clock.advance(3_600_000);
    until("the second effect is queued", async || queued(&harness, &key).await.len() >= 2).await;
    let effects = queued(&harness, &key).await;
    let sent: Vec<_> =
        effects.iter().map(|effect| (effect["to"].as_str(), effect.get("traceparent"))).collect();
    let trace = TRACE.to_owned();
    assert_eq!(sent, [("a@example.com", Some(&trace)), ("b@example.com", Some(&trace))]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_trace_is_not_kept() {
    let harness = Harness::start().await;
    for trace in ["00-zz-zz-zz", "", "nonsense"] {
        let name = harness.session().await.name;
        call(&harness, "AuthorizeToolCall", &tool_call(&name, "mcp:filesystem:write_file"), trace).await;
        let effects = queued(&harness, &name).await;
        assert!(effects.len() == 1 && !effects[0].contains_key("traceparent"), "{trace:?}: {effects:?}");
    }
    harness.node.end().await;
}

async fn fail(harness: &Harness, name: &str, code: &str, round: Option<u32>) -> Option<v1::Effect> {
    let (name, code, message) = (name.to_owned(), code.to_owned(), format!("it was {code}"));
    let request = v1::FailEffectRequest { name, code, message, round, ..Default::default() };
    let reply: v1::FailEffectResponse = harness.ask("operator", "FailEffect", &request).await;
    reply.effect
}

async fn retry(harness: &Harness, name: &str) -> v1::Effect {
    let request = v1::RetryEffectRequest { name: name.to_owned(), ..Default::default() };
    let reply: v1::RetryEffectResponse = harness.ask("operator", "RetryEffect", &request).await;
    reply.effect.expect("the effect is pending")
}

async fn dead(harness: &Harness) -> Vec<String> {
    let request = v1::ListEffectsRequest { filter: "status=\"dead_letter\"".into(), ..Default::default() };
    let reply: v1::ListEffectsResponse = harness.ask("agent", "ListEffects", &request).await;
    reply.effects.into_iter().map(|effect| effect.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_delivered_is_an_incident_until_it_is_sent_again_or_given_up() {
    let harness = Harness::start().await;
    let name = harness.effect().await;
    let session = {
        let get = v1::GetEffectRequest { name: name.clone(), ..Default::default() };
        let found: v1::GetEffectResponse = harness.ask("agent", "GetEffect", &get).await;
        let found = found.effect.expect("the effect is pending");
        assert_eq!((found.status(), found.kind.as_str()), (v1::EffectStatus::Pending, "notice"));
        found.session
    };
    assert!(harness.look(&session).await.incidents.is_empty() && dead(&harness).await.is_empty());
    let dismissal = v1::DismissEffectRequest { name: name.clone(), ..Default::default() };
    let early = harness.attempt::<v1::DismissEffectResponse>("operator", "DismissEffect", &dismissal).await;
    refused(early, "STATE_MISMATCH");

    let effect = fail(&harness, &name, "no_such_host", Some(0)).await.expect("a dead letter");
    assert_eq!((effect.status(), effect.code.as_str()), (v1::EffectStatus::DeadLetter, "no_such_host"));
    assert_eq!(
        fail(&harness, &name, "refused", None).await,
        Some(effect.clone()),
        "the first reason is kept"
    );
    let shown = harness.look(&session).await;
    assert_eq!(
        (shown.status(), shown.incidents.len()),
        (v1::SessionStatus::Waiting, 1),
        "the session continues"
    );
    assert_eq!((&shown.incidents[0].effect, &shown.incidents[0].message), (&name, &effect.message));
    assert_eq!(dead(&harness).await, std::slice::from_ref(&name));

    let again = retry(&harness, &name).await;
    assert_eq!((again.status(), again.round, again.code.as_str()), (v1::EffectStatus::Pending, 1, ""));
    assert_eq!(retry(&harness, &name).await, again, "a pending effect is not sent again");
    assert!(harness.look(&session).await.incidents.is_empty() && dead(&harness).await.is_empty());
    assert_eq!(
        fail(&harness, &name, "late", Some(0)).await,
        Some(again),
        "the result of an earlier round is ignored"
    );

    fail(&harness, &name, "no_such_host", Some(1)).await;
    let exhausted = events(&harness, &session, "delivery.exhausted").await;
    assert_eq!(exhausted.iter().map(|event| event["code"].as_str()).collect::<Vec<_>>(), ["no_such_host"; 2]);
    let _: v1::DismissEffectResponse = harness.ask("operator", "DismissEffect", &dismissal).await;
    assert!(harness.look(&session).await.incidents.is_empty() && dead(&harness).await.is_empty());
    assert_eq!(
        fail(&harness, &name, "late", None).await,
        None,
        "a dismissed effect is gone, which is not an error"
    );
    for kind in ["delivery.retried", "delivery.dismissed"] {
        assert_eq!(events(&harness, &session, kind).await.len(), 1, "{kind}");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_about_a_gate_has_nothing_to_say_once_it_is_decided() {
    let harness = Harness::start().await;
    let name = harness.dead_letter().await;
    let get = v1::GetEffectRequest { name: name.clone(), ..Default::default() };
    let found: v1::GetEffectResponse = harness.ask("agent", "GetEffect", &get).await;
    let found = found.effect.expect("a dead letter");
    let decide = v1::DecideGateRequest {
        name: found.gate,
        decision: v1::GateDecision::Approve.into(),
        ..v1::DecideGateRequest::default()
    };
    let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide).await;
    assert!(harness.look(&found.session).await.incidents.is_empty() && dead(&harness).await.is_empty());
    refused(harness.attempt::<v1::GetEffectResponse>("agent", "GetEffect", &get).await, "NOT_FOUND");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_an_effect_has_failed_is_said_in_a_code() {
    let harness = Harness::start().await;
    let name = harness.effect().await;
    for code in ["", "No Host", "x".repeat(65).as_str(), "n\u{e9}"] {
        let request = v1::FailEffectRequest {
            name: name.clone(),
            code: code.into(),
            ..v1::FailEffectRequest::default()
        };
        let outcome = harness.attempt::<v1::FailEffectResponse>("operator", "FailEffect", &request).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["code"], "{code:?}");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mail_server_repeats_of_an_address_of_ours_is_shown_nowhere() {
    let harness = Harness::start().await;
    let name = harness.effect().await;
    let token = MailKey([7; 32]).token(
        TokenUse::Reply,
        TenantId(1),
        SessionId([9; 16]),
        OpenId(1),
        0,
        "kim@a.example",
    );
    let message =
        format!("550 <r+{token}@reply.acme.example> is not known; see https://acme.example/a/{token}");
    let request =
        v1::FailEffectRequest { name: name.clone(), code: "rejected".into(), message, ..Default::default() };
    let failed: v1::FailEffectResponse = harness.ask("operator", "FailEffect", &request).await;
    let said = "550 <r+…@reply.acme.example> is not known; see https://acme.example/a/…";
    let effect = failed.effect.expect("a dead letter");
    assert_eq!(effect.message, said);
    let get = v1::GetEffectRequest { name: name.clone(), ..Default::default() };
    let found: v1::GetEffectResponse = harness.ask("agent", "GetEffect", &get).await;
    assert_eq!(found.effect.expect("the effect exists").message, said);
    assert_eq!(harness.look(&effect.session).await.incidents[0].message, said);
    let exhausted = events(&harness, &effect.session, "delivery.exhausted").await;
    assert!(!exhausted.is_empty() && !format!("{exhausted:?}").contains(&token.to_string()), "{exhausted:?}");
    harness.node.end().await;
}
