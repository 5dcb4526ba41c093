//! What is to go out is listed in the session's history, with all that a reader needs to tell what it is about.

use std::collections::BTreeMap;

use prost::Message;
use switchward_api::v1;

use crate::ways::{Raw, Way, body};
use crate::world::{World, tool_call};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The effects that a session has queued: each with its fields.
async fn queued(world: &World, name: &str) -> Vec<BTreeMap<String, String>> {
    let request =
        v1::ListSessionEventsRequest { name: name.to_owned(), page_size: 1_000, ..Default::default() };
    let listed: v1::ListSessionEventsResponse = world.ask("agent", "ListSessionEvents", &request).await;
    let effects = listed.events.into_iter().filter(|event| event.r#type == "effect.queued");
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
