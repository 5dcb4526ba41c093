//! What is to go out is listed in the session's history, with all that a reader needs to tell what it is about.

use std::collections::BTreeMap;

use prost::Message;
use switchward_api::v1;
use switchward_engine::{MailKey, Way as MailWay};
use switchward_machine::{OpenId, SessionId, TenantId};

use crate::told::refused;
use crate::ways::{Raw, Way, body};
use crate::world::{World, tool_call};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The effects that a session has queued: each with its fields.
async fn queued(world: &World, name: &str) -> Vec<BTreeMap<String, String>> {
    events(world, name, "effect.queued").await
}

/// The events of a type in a session's history: each with its fields.
async fn events(world: &World, name: &str, kind: &str) -> Vec<BTreeMap<String, String>> {
    let request =
        v1::ListSessionEventsRequest { name: name.to_owned(), page_size: 1_000, ..Default::default() };
    let listed: v1::ListSessionEventsResponse = world.ask("agent", "ListSessionEvents", &request).await;
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

async fn call(world: &World, method: &str, request: &impl Message, trace: &str) {
    let raw = Raw::post(Way::Grpc, method, body(Way::Grpc, method, &request.encode_to_vec()));
    let raw = raw.with_key(world.acme.key("agent")).with("traceparent", trace);
    let answer = world.node.line.send(raw).await;
    crate::ways::reply(Way::Grpc, method, &answer).expect(method);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_queues_one_notice_that_names_it_and_the_trace() {
    let world = World::start().await;
    let asked = world.session().await.name;
    call(&world, "AuthorizeToolCall", &tool_call(&asked, "mcp:filesystem:write_file"), TRACE).await;
    let reviewed = world.session().await.name;
    let answer = v1::AnswerCheckpointRequest {
        name: reviewed.clone(),
        answer: "review".into(),
        ..v1::AnswerCheckpointRequest::default()
    };
    call(&world, "AnswerCheckpoint", &answer, TRACE).await;
    for (name, kind) in [(asked, "tool_ask"), (reviewed, "notify")] {
        let gate = world.look(&name).await.waiting_on[0].name.clone();
        let effects = queued(&world, &name).await;
        let [effect] = &effects[..] else { panic!("{effects:?}") };
        assert_eq!((effect["kind"].as_str(), effect["gate_kind"].as_str()), ("notice", kind));
        assert!(gate.ends_with(&format!("_{}", effect["gate"])), "{gate} {effect:?}");
        assert_eq!(effect["traceparent"], TRACE);
        assert!(effect["subject"].contains("release") && !effect["number"].is_empty(), "{effect:?}");
    }
    world.node.end().await;
}

/// A number is read out of a text, told by mail, and told again an hour later.
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
    let world = World::start().await;
    world.deploy(ORDER).await;
    let input = prost_types::Struct {
        fields: [(
            "text".to_owned(),
            prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("7".into())) },
        )]
        .into(),
    };
    let key = world.fresh("order");
    let start = v1::StartSessionRequest {
        definition: "order".into(),
        session_id: key.clone(),
        input: Some(input),
        ..Default::default()
    };
    call(&world, "StartSession", &start, TRACE).await;
    let wanted = Some(v1::WorkWanted { queues: vec!["order".into()], ..Default::default() });
    let request = v1::PollWorkRequest { wanted, ..Default::default() };
    let polled: v1::PollWorkResponse = world.ask("worker", "PollWork", &request).await;
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
    let _: v1::CompleteWorkResponse = world.ask("worker", "CompleteWork", &complete).await;
    world.node.clock.advance(3_600_000);
    while queued(&world, &key).await.len() < 2 {
        tokio::task::yield_now().await;
    }
    let effects = queued(&world, &key).await;
    let told: Vec<_> =
        effects.iter().map(|effect| (effect["to"].as_str(), effect.get("traceparent"))).collect();
    let trace = TRACE.to_owned();
    assert_eq!(told, [("a@example.com", Some(&trace)), ("b@example.com", Some(&trace))]);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_trace_is_not_kept() {
    let world = World::start().await;
    for trace in ["00-zz-zz-zz", "", "nonsense"] {
        let name = world.session().await.name;
        call(&world, "AuthorizeToolCall", &tool_call(&name, "mcp:filesystem:write_file"), trace).await;
        let effects = queued(&world, &name).await;
        assert!(effects.len() == 1 && !effects[0].contains_key("traceparent"), "{trace:?}: {effects:?}");
    }
    world.node.end().await;
}

async fn fail(world: &World, name: &str, code: &str, round: Option<u32>) -> Option<v1::Effect> {
    let (name, code, message) = (name.to_owned(), code.to_owned(), format!("it was {code}"));
    let request = v1::FailEffectRequest { name, code, message, round, ..Default::default() };
    let reply: v1::FailEffectResponse = world.ask("operator", "FailEffect", &request).await;
    reply.effect
}

async fn retry(world: &World, name: &str) -> v1::Effect {
    let request = v1::RetryEffectRequest { name: name.to_owned(), ..Default::default() };
    let reply: v1::RetryEffectResponse = world.ask("operator", "RetryEffect", &request).await;
    reply.effect.expect("it is on its way")
}

async fn dead(world: &World) -> Vec<String> {
    let request = v1::ListEffectsRequest { filter: "status=\"dead\"".into(), ..Default::default() };
    let reply: v1::ListEffectsResponse = world.ask("agent", "ListEffects", &request).await;
    reply.effects.into_iter().map(|effect| effect.name).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_delivered_is_an_incident_until_it_is_sent_anew_or_given_up() {
    let world = World::start().await;
    let name = world.effect().await;
    let session = {
        let get = v1::GetEffectRequest { name: name.clone(), ..Default::default() };
        let found: v1::GetEffectResponse = world.ask("agent", "GetEffect", &get).await;
        let found = found.effect.expect("it is on its way");
        assert_eq!((found.status(), found.kind.as_str()), (v1::EffectStatus::Pending, "notice"));
        found.session
    };
    assert!(world.look(&session).await.incidents.is_empty() && dead(&world).await.is_empty());
    let refusal = v1::DismissEffectRequest { name: name.clone(), ..Default::default() };
    let early = world.attempt::<v1::DismissEffectResponse>("operator", "DismissEffect", &refusal).await;
    refused(early, "STATE_MISMATCH");

    let effect = fail(&world, &name, "no_such_host", Some(0)).await.expect("a dead letter");
    assert_eq!((effect.status(), effect.code.as_str()), (v1::EffectStatus::Dead, "no_such_host"));
    assert_eq!(fail(&world, &name, "refused", None).await, Some(effect.clone()), "the first reason stands");
    let shown = world.look(&session).await;
    assert_eq!((shown.status(), shown.incidents.len()), (v1::SessionStatus::Waiting, 1), "it goes on");
    assert_eq!((&shown.incidents[0].effect, &shown.incidents[0].message), (&name, &effect.message));
    assert_eq!(dead(&world).await, std::slice::from_ref(&name));

    let anew = retry(&world, &name).await;
    assert_eq!((anew.status(), anew.round, anew.code.as_str()), (v1::EffectStatus::Pending, 1, ""));
    assert_eq!(retry(&world, &name).await, anew, "what is on its way is not sent anew");
    assert!(world.look(&session).await.incidents.is_empty() && dead(&world).await.is_empty());
    assert_eq!(fail(&world, &name, "late", Some(0)).await, Some(anew), "an older sending says nothing");

    fail(&world, &name, "no_such_host", Some(1)).await;
    let told = events(&world, &session, "delivery.exhausted").await;
    assert_eq!(told.iter().map(|event| event["code"].as_str()).collect::<Vec<_>>(), ["no_such_host"; 2]);
    let _: v1::DismissEffectResponse = world.ask("operator", "DismissEffect", &refusal).await;
    assert!(world.look(&session).await.incidents.is_empty() && dead(&world).await.is_empty());
    assert_eq!(fail(&world, &name, "late", None).await, None, "it is gone, and that is no error");
    for kind in ["delivery.retried", "delivery.dismissed"] {
        assert_eq!(events(&world, &session, kind).await.len(), 1, "{kind}");
    }
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_about_a_gate_has_nothing_to_say_once_it_is_decided() {
    let world = World::start().await;
    let name = world.dead_letter().await;
    let get = v1::GetEffectRequest { name: name.clone(), ..Default::default() };
    let found: v1::GetEffectResponse = world.ask("agent", "GetEffect", &get).await;
    let found = found.effect.expect("a dead letter");
    let decide = v1::DecideGateRequest {
        name: found.gate,
        decision: v1::GateDecision::Approve.into(),
        ..v1::DecideGateRequest::default()
    };
    let _: v1::DecideGateResponse = world.ask("approver", "DecideGate", &decide).await;
    assert!(world.look(&found.session).await.incidents.is_empty() && dead(&world).await.is_empty());
    refused(world.attempt::<v1::GetEffectResponse>("agent", "GetEffect", &get).await, "NOT_FOUND");
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_an_effect_has_failed_is_said_in_a_code() {
    let world = World::start().await;
    let name = world.effect().await;
    for code in ["", "No Host", "x".repeat(65).as_str(), "n\u{e9}"] {
        let request = v1::FailEffectRequest {
            name: name.clone(),
            code: code.into(),
            ..v1::FailEffectRequest::default()
        };
        let outcome = world.attempt::<v1::FailEffectResponse>("operator", "FailEffect", &request).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["code"], "{code:?}");
    }
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mail_server_repeats_of_an_address_of_ours_is_shown_nowhere() {
    let world = World::start().await;
    let name = world.effect().await;
    let token = MailKey([7; 32]).token(
        MailWay::Reply,
        (TenantId(1), SessionId([9; 16])),
        (OpenId(1), 0),
        "kim@a.example",
    );
    let message =
        format!("550 <r+{token}@reply.acme.example> is not known; see https://acme.example/a/{token}");
    let request =
        v1::FailEffectRequest { name: name.clone(), code: "rejected".into(), message, ..Default::default() };
    let failed: v1::FailEffectResponse = world.ask("operator", "FailEffect", &request).await;
    let said = "550 <r+…@reply.acme.example> is not known; see https://acme.example/a/…";
    let effect = failed.effect.expect("a dead letter");
    assert_eq!(effect.message, said);
    let get = v1::GetEffectRequest { name: name.clone(), ..Default::default() };
    let found: v1::GetEffectResponse = world.ask("agent", "GetEffect", &get).await;
    assert_eq!(found.effect.expect("it is there").message, said);
    assert_eq!(world.look(&effect.session).await.incidents[0].message, said);
    let told = events(&world, &effect.session, "delivery.exhausted").await;
    assert!(!told.is_empty() && !format!("{told:?}").contains(&token.to_string()), "{told:?}");
    world.node.end().await;
}
