//! Assistants: what is a valid assistant, and sessions with one.

use prost::Message as _;
use prost_reflect::DynamicMessage;
use serde_json::{Value, json};
use switchward_api::{descriptor_pool, v1};
use tonic::Status;

use crate::harness::{Harness, TALK, put_assistant};
use crate::refusal::refused;

type Put = Result<v1::PutAssistantResponse, Status>;

/// Two workflows, and an assistant of them.
async fn worker(harness: &Harness) -> String {
    for (name, description) in [("refund", "Money back."), ("parcel", "Where a parcel is.")] {
        let named = format!("\"name\": {name:?}, \"description\": {description:?}");
        harness.deploy(&TALK.replace("\"name\": \"talk\"", &named)).await;
    }
    let name = harness.fresh("desk");
    let mut put = put_assistant(&name);
    if let Some(assistant) = &mut put.assistant {
        assistant.workflows = vec!["refund".into(), "parcel".into()];
        assistant.instructions = "Be brief.".into();
    }
    let _: v1::PutAssistantResponse = harness.ask("author", "PutAssistant", &put).await;
    name
}

async fn start(harness: &Harness, request: v1::StartSessionRequest) -> v1::Session {
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    reply.session.expect("a session")
}

/// The only open work item of kind intent of this assistant's sessions.
async fn intent(harness: &Harness, assistant: &str) -> v1::WorkItem {
    let kinds = vec![v1::WorkKind::Intent.into()];
    let wanted = v1::WorkWanted { kinds, queues: vec![assistant.to_owned()], ..Default::default() };
    let request = v1::PollWorkRequest { wanted: Some(wanted), ..Default::default() };
    let reply: v1::PollWorkResponse = harness.ask("worker", "PollWork", &request).await;
    reply.items.into_iter().next().expect("work")
}

/// An object as JSON.
fn as_json(object: &prost_types::Struct) -> Value {
    let kind = descriptor_pool().get_message_by_name("google.protobuf.Struct").expect("the type is known");
    let message = DynamicMessage::decode(kind, &object.encode_to_vec()[..]).expect("an object");
    serde_json::to_value(message).expect("JSON")
}

async fn complete(harness: &Harness, item: &v1::WorkItem, names: &[&str]) -> v1::CompleteWorkResponse {
    use prost_types::value::Kind;
    let text = |name: &&str| prost_types::Value { kind: Some(Kind::StringValue((*name).to_owned())) };
    let list = prost_types::ListValue { values: names.iter().map(text).collect() };
    let value = prost_types::Value { kind: Some(Kind::ListValue(list)) };
    let fields = [("workflows".to_owned(), value)].into();
    let request = v1::CompleteWorkRequest {
        name: item.name.clone(),
        lease_token: item.lease_token.clone(),
        result: Some(prost_types::Struct { fields }),
        ..Default::default()
    };
    harness.ask("worker", "CompleteWork", &request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_conversations_that_are_there_make_an_assistant() {
    let harness = Harness::start().await;
    let long = "x".repeat(64);
    let many: Vec<String> = (0..101).map(|at| format!("w-{at}")).collect();
    for (name, workflows, field) in [
        ("desk", vec![], "assistant.workflows"),
        ("desk", vec!["never".to_owned()], "assistant.workflows[0]"),
        ("desk", vec!["talk".to_owned(), "release".to_owned()], "assistant.workflows[1]"),
        ("desk", vec!["talk".to_owned(), "talk".to_owned()], "assistant.workflows[1]"),
        ("desk", [vec!["release".to_owned()], many].concat(), "assistant.workflows"),
        // The list is checked before the names in it.
        ("desk", vec!["release".to_owned(), "release".to_owned()], "assistant.workflows[1]"),
        ("desk", vec!["release".to_owned(), "x".repeat(513)], "assistant.workflows[1]"),
        ("Desk", vec!["talk".to_owned()], "assistant.name"),
        (long.as_str(), vec!["talk".to_owned()], "assistant.name"),
        ("", vec!["talk".to_owned()], "assistant.name"),
    ] {
        let assistant = v1::Assistant { name: name.into(), workflows, ..Default::default() };
        let put = v1::PutAssistantRequest { assistant: Some(assistant), ..Default::default() };
        let outcome: Put = harness.attempt("author", "PutAssistant", &put).await;
        let refusal = refused(outcome, "FIELD_INVALID");
        assert_eq!(refusal.fields, [field], "{refusal:?}");
    }
    let mut wordy = put_assistant("desk");
    wordy.assistant.as_mut().expect("one").instructions = "x".repeat(16 * 1024 + 1);
    let outcome: Put = harness.attempt("author", "PutAssistant", &wordy).await;
    refused(outcome, "FIELD_INVALID");
    let foreign = put_assistant("tenants/globex/assistants/globex-desk");
    let outcome: Put = harness.attempt("author", "PutAssistant", &foreign).await;
    refused(outcome, "NOT_FOUND");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_assistant_is_changed_by_who_has_seen_it_and_deleted_once() {
    let harness = Harness::start().await;
    let put = async |etag: &str, instructions: &str| -> Put {
        let mut put = put_assistant("tenants/-/assistants/desk");
        if let Some(assistant) = &mut put.assistant {
            (assistant.etag, assistant.instructions) = (etag.into(), instructions.into());
        }
        harness.attempt("author", "PutAssistant", &put).await
    };
    let first = put("", "").await.expect("the assistant is created").assistant.expect("one");
    assert_eq!(
        (first.name.as_str(), &first.workflows[..]),
        ("tenants/acme/assistants/desk", &["talk".into()][..])
    );
    harness.node.clock.advance(1_000);
    let same = put("", "").await.expect("the same").assistant.expect("one");
    assert_eq!(same, first, "an identical assistant changes nothing");
    let other =
        put(&first.etag, "Be brief.").await.expect("the assistant is changed").assistant.expect("one");
    assert!(other.etag != first.etag && other.update_time != first.update_time, "{other:?}");
    assert_eq!((other.create_time, other.instructions.as_str()), (first.create_time, "Be brief."));
    refused(put(&first.etag, "Be long.").await, "ETAG_MISMATCH");

    let get = v1::GetAssistantRequest { name: "desk".into(), ..Default::default() };
    let got: v1::GetAssistantResponse = harness.ask("agent", "GetAssistant", &get).await;
    assert_eq!(got.assistant.as_ref(), Some(&other));
    let delete = |etag: &str| v1::DeleteAssistantRequest {
        name: "desk".into(),
        expected_etag: etag.into(),
        ..Default::default()
    };
    let outcome = harness.attempt("author", "DeleteAssistant", &delete(&first.etag)).await;
    refused::<v1::DeleteAssistantResponse>(outcome, "ETAG_MISMATCH");
    let _: v1::DeleteAssistantResponse = harness.ask("author", "DeleteAssistant", &delete(&other.etag)).await;
    let outcome = harness.attempt("author", "DeleteAssistant", &delete("")).await;
    refused::<v1::DeleteAssistantResponse>(outcome, "NOT_FOUND");
    let outcome = harness.attempt("agent", "GetAssistant", &get).await;
    refused::<v1::GetAssistantResponse>(outcome, "NOT_FOUND");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_message_is_sorted_by_a_worker_and_its_workflows_begin() {
    let harness = Harness::start().await;
    let worker = worker(&harness).await;
    let request = v1::StartSessionRequest {
        assistant: worker.clone(),
        message: "It came broken, and where is the other one?".into(),
        ..Default::default()
    };
    let begun = start(&harness, request).await;
    assert_eq!((begun.definition.as_str(), begun.version, begun.status_word.as_str()), ("", 0, "pending"));
    assert_eq!((begun.status(), &begun.at[..]), (v1::SessionStatus::Waiting, &["intent".to_owned()][..]));
    assert_eq!((begun.assistant, begun.runs.len()), (format!("tenants/acme/assistants/{worker}"), 0));
    assert_eq!(begun.assistant_instructions, "Be brief.");

    let item = intent(&harness, &worker).await;
    assert_eq!((item.version.as_str(), item.state.as_str()), ("", "intent"));
    assert_eq!(item.assistant_instructions, "Be brief.");
    let input = as_json(item.input.as_ref().expect("an input"));
    let listed = json!([
        { "name": "refund", "description": "Money back." },
        { "name": "parcel", "description": "Where a parcel is." },
    ]);
    let text = "It came broken, and where is the other one?";
    assert_eq!(input, json!({ "instructions": "Be brief.", "text": text, "workflows": listed }));
    let outcome = complete(&harness, &item, &["refund", "everything"]).await;
    assert_eq!((outcome.accepted, outcome.reason.as_str()), (false, "SCHEMA_VIOLATION"));
    assert!(outcome.message.contains("everything"), "{outcome:?}");
    assert!(harness.look(&begun.name).await.runs.is_empty(), "a result is accepted completely or not at all");

    let item = intent(&harness, &worker).await;
    assert!(complete(&harness, &item, &["parcel", "refund"]).await.accepted);
    let session = harness.look(&begun.name).await;
    let runs: Vec<(&str, v1::SessionStatus)> =
        session.runs.iter().map(|run| (run.definition.as_str(), run.status())).collect();
    let (shipment, refund) = ("tenants/acme/definitions/parcel", "tenants/acme/definitions/refund");
    assert_eq!(runs, [(shipment, v1::SessionStatus::Waiting), (refund, v1::SessionStatus::Queued)]);
    assert_eq!(
        (session.definition.as_str(), session.version, &session.at[..]),
        (shipment, 1, &["ask".to_owned()][..])
    );
    assert_eq!(session.assistant_instructions, "Be brief.", "the instructions apply in every workflow");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_where_there_is_nothing_to_find_out() {
    let harness = Harness::start().await;
    let worker = worker(&harness).await;
    let only =
        start(&harness, v1::StartSessionRequest { assistant: "acme-desk".into(), ..Default::default() })
            .await;
    let only = harness.look(&only.name).await;
    assert_eq!((only.definition.as_str(), only.runs.len()), ("tenants/acme/definitions/talk", 1));
    let named = v1::StartSessionRequest {
        assistant: format!("tenants/acme/assistants/{worker}"),
        definition: "parcel".into(),
        ..Default::default()
    };
    let named = start(&harness, named).await;
    assert_eq!(named.definition, "tenants/acme/definitions/parcel");
    let switch =
        v1::SwitchWorkflowRequest { name: named.name, workflow: "refund".into(), ..Default::default() };
    let switched: v1::SwitchWorkflowResponse = harness.ask("agent", "SwitchWorkflow", &switch).await;
    assert_eq!(switched.session.expect("a session").definition, "tenants/acme/definitions/refund");

    let assistant = || v1::StartSessionRequest { assistant: worker.clone(), ..Default::default() };
    for (wrong, field) in [
        (v1::StartSessionRequest { definition: "talk".into(), ..assistant() }, "definition"),
        (v1::StartSessionRequest { workflows: vec!["refund".into()], ..assistant() }, "workflows"),
        (v1::StartSessionRequest { queue: vec!["refund".into()], ..assistant() }, "queue"),
        (v1::StartSessionRequest { version: Some(1), ..assistant() }, "version"),
        (v1::StartSessionRequest { message: "x".repeat(256 * 1024 + 1), ..assistant() }, "message"),
    ] {
        let outcome = harness.attempt("agent", "StartSession", &wrong).await;
        let refusal = refused::<v1::StartSessionResponse>(outcome, "FIELD_INVALID");
        assert!(refusal.fields.iter().any(|found| found == field), "{field}: {refusal:?}");
    }
    for name in ["never", "globex-desk", "tenants/globex/assistants/globex-desk"] {
        let request = v1::StartSessionRequest { assistant: name.into(), ..Default::default() };
        let outcome = harness.attempt("agent", "StartSession", &request).await;
        refused::<v1::StartSessionResponse>(outcome, "NOT_FOUND");
    }
    let release = v1::StartSessionRequest {
        definition: "release".into(),
        message: "Hello".into(),
        ..Default::default()
    };
    let outcome = harness.attempt("agent", "StartSession", &release).await;
    refused::<v1::StartSessionResponse>(outcome, "STATE_MISMATCH");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_that_comes_again_is_answered_when_its_assistant_is_gone() {
    let harness = Harness::start().await;
    let worker = worker(&harness).await;
    let request = v1::StartSessionRequest {
        assistant: worker.clone(),
        message: "Hello".into(),
        request_id: "again".into(),
        ..Default::default()
    };
    let keyed = v1::StartSessionRequest { session_id: "desk-1".into(), ..request.clone() };
    let (begun, by_key) = (start(&harness, request.clone()).await, start(&harness, keyed.clone()).await);
    assert_ne!(begun.name, by_key.name);
    let delete = v1::DeleteAssistantRequest { name: worker, ..Default::default() };
    let _: v1::DeleteAssistantResponse = harness.ask("author", "DeleteAssistant", &delete).await;

    assert_eq!(start(&harness, request.clone()).await, begun);
    assert_eq!(start(&harness, keyed.clone()).await, by_key);
    for (wrong, reason) in [
        (v1::StartSessionRequest { message: "Good morning".into(), ..request.clone() }, "REQUEST_ID_REUSED"),
        (v1::StartSessionRequest { message: "Good morning".into(), ..keyed.clone() }, "REQUEST_ID_REUSED"),
        (v1::StartSessionRequest { request_id: "another".into(), ..request.clone() }, "NOT_FOUND"),
        (v1::StartSessionRequest { request_id: "another".into(), ..keyed }, "NOT_FOUND"),
        (v1::StartSessionRequest { request_id: String::new(), ..request }, "NOT_FOUND"),
    ] {
        let outcome = harness.attempt("agent", "StartSession", &wrong).await;
        let refusal = refused::<v1::StartSessionResponse>(outcome, reason);
        let named = refusal.metadata.get("request_id").is_some_and(|id| id == "again");
        assert_eq!(named, reason == "REQUEST_ID_REUSED", "{refusal:?}");
    }
    harness.node.end().await;
}
