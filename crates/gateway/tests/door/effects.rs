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
