//! Keys that work inside cannot claim what happened outside: events, user messages, and the source of each event.

use http::StatusCode;
use prost_types::value::Kind;
use switchward_api::v1;
use switchward_machine::Digest;

use crate::callbacks::raw;
use crate::harness::Harness;
use crate::refusal::refused;

/// A wait for a webhook, then a transition for an event, then a user's confirmation.
const ORDER: &str = r#"{
  "name": "order",
  "states": [
    { "name": "hook", "type": "wait", "wait_for": "webhook", "timeout_hours": 48 },
    { "name": "pay", "type": "conversation" },
    { "name": "confirm", "type": "conversation" },
    { "name": "done", "type": "conversation" }
  ],
  "transitions": [
    { "from": "hook", "port": "received", "to": "pay" },
    { "from": "pay", "to": "confirm", "guards": [{ "type": "external_event", "config": { "event_key": "paid" } }] },
    { "from": "confirm", "to": "done", "guards": [{ "type": "user_confirmed" }] }
  ]
}"#;

/// A user's confirmation only.
const ASKED: &str = r#"{
  "name": "asked",
  "states": [{ "name": "confirm", "type": "conversation" }, { "name": "done", "type": "conversation" }],
  "transitions": [{ "from": "confirm", "to": "done", "guards": [{ "type": "user_confirmed" }] }]
}"#;

/// A conversation in which nothing listens to the event `paid`.
const LATER: &str = r#"{
  "name": "later",
  "states": [
    { "name": "idle", "type": "conversation" },
    { "name": "done", "type": "conversation" }
  ],
  "transitions": [
    { "from": "idle", "to": "done", "guards": [{ "type": "external_event", "config": { "event_key": "never" } }] }
  ]
}"#;

async fn start(harness: &Harness, role: &str, definition: &str, others: &[&str]) -> v1::Session {
    let request = v1::StartSessionRequest {
        definition: definition.into(),
        workflows: others.iter().map(|one| (*one).to_owned()).collect(),
        ..Default::default()
    };
    let reply: v1::StartSessionResponse = harness.ask(role, "StartSession", &request).await;
    reply.session.expect("a session")
}

fn event(session: &v1::Session, key: &str) -> v1::RecordEventRequest {
    v1::RecordEventRequest { name: session.name.clone(), key: key.into(), ..Default::default() }
}

async fn bring(
    harness: &Harness,
    role: &str,
    session: &v1::Session,
    key: &str,
) -> Result<v1::Session, tonic::Status> {
    let reply: v1::RecordEventResponse = harness.attempt(role, "RecordEvent", &event(session, key)).await?;
    Ok(reply.session.expect("a session"))
}

async fn post(harness: &Harness, role: &str, session: &v1::Session, text: &str) -> v1::Session {
    let request =
        v1::PostMessageRequest { name: session.name.clone(), text: text.into(), ..Default::default() };
    let reply: v1::PostMessageResponse = harness.ask(role, "PostMessage", &request).await;
    reply.session.expect("a session")
}

async fn turn(harness: &Harness, session: &v1::Session) -> Vec<String> {
    let request = v1::EndTurnRequest { name: session.name.clone(), text: "yes".into(), ..Default::default() };
    let reply: v1::EndTurnResponse = harness.ask("agent", "EndTurn", &request).await;
    reply.session.expect("a session").at
}

/// The values of a field in the history, of the events of one type.
async fn history(harness: &Harness, session: &v1::Session, kind: &str, field: &str) -> Vec<String> {
    let request = v1::ListSessionEventsRequest { name: session.name.clone(), ..Default::default() };
    let reply: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    let of = |event: v1::SessionEvent| {
        let fields = event.data.filter(|_| event.r#type == kind)?.fields;
        match fields.get(field).and_then(|value| value.kind.clone()) {
            Some(Kind::StringValue(text)) => Some(text),
            _ => Some(String::new()),
        }
    };
    reply.events.into_iter().filter_map(of).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_and_a_workers_key_bring_no_event() {
    let harness = Harness::start().await;
    harness.deploy(ORDER).await;
    let session = start(&harness, "agent", "order", &[]).await;
    for state in ["hook", "pay"] {
        assert_eq!(harness.look(&session.name).await.at, [state]);
        let before = harness.node.state().await;
        for role in ["agent", "worker", "author", "approver"] {
            for key in ["paid", "received", "hook", "other"] {
                refused(bring(&harness, role, &session, key).await, "ROLE_NOT_ALLOWED");
            }
        }
        assert_eq!(harness.node.state().await, before, "a refused event is not kept for later");
        let moved = bring(&harness, "integration", &session, "paid").await.expect("the event is accepted");
        assert_ne!(moved.at, [state]);
        let wanted = v1::Session {
            name: moved.name.clone(),
            status: moved.status,
            status_word: moved.status_word.clone(),
            at: moved.at.clone(),
            sequence: moved.sequence,
            update_time: moved.update_time,
            ..v1::Session::default()
        };
        assert_eq!(moved, wanted, "the sender learns the state of the session and nothing else");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_relays_confirms_nothing() {
    let harness = Harness::start().await;
    harness.deploy(ASKED).await;
    let request =
        v1::StartSessionRequest { definition: "asked".into(), message: "yes".into(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let session = reply.session.expect("a session");
    assert_eq!(turn(&harness, &session).await, ["confirm"], "the agent started the conversation");
    let _posted = post(&harness, "agent", &session, "Yes, confirmed.").await;
    assert_eq!(turn(&harness, &session).await, ["confirm"]);
    let _posted = post(&harness, "operator", &session, "yes").await;
    let _posted = post(&harness, "agent", &session, "yes").await;
    assert_eq!(turn(&harness, &session).await, ["confirm"], "the relayed text counts as the user's message");
    let reply = post(&harness, "integration", &session, "yes").await;
    assert!(reply.checkpoint.is_none() && reply.definition.is_empty(), "{reply:?}");
    assert_eq!(turn(&harness, &session).await, ["done"]);
    let relayed = history(&harness, &session, "message.posted", "relayed_by").await;
    // Each turn of the agent posts a message, too.
    assert_eq!(relayed, ["agent", "", "agent", "", "", "agent", "", "", ""]);
    harness.node.end().await;
}

/// A webhook source without proof, for a development server.
async fn shop(harness: &Harness) -> String {
    let name = harness.fresh("shop");
    let source = v1::WebhookSource {
        name: name.clone(),
        kind: v1::WebhookSourceKind::None.into(),
        session_pointer: "/session".into(),
        event_key_pointer: "/key".into(),
        ..v1::WebhookSource::default()
    };
    let request = v1::CreateWebhookSourceRequest { source: Some(source), ..Default::default() };
    let _: v1::CreateWebhookSourceResponse = harness.ask("admin", "CreateWebhookSource", &request).await;
    name
}

async fn webhook(harness: &Harness, source: &str, session: &v1::Session, key: &str) -> StatusCode {
    let id = session.name.rsplit('/').next().expect("an id");
    let body = serde_json::json!({ "session": id, "key": key }).to_string();
    harness.node.line.send(raw(&format!("/v1/in/acme/{source}"), body)).await.status
}

async fn callback(harness: &Harness, session: &v1::Session, key: &str) -> StatusCode {
    let token = harness.seen(&session.name).await.reply_token;
    let body = serde_json::json!({ "event_key": key }).to_string();
    harness.node.line.send(raw(&format!("/v1/callbacks/{token}"), body)).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_history_says_where_every_event_came_from() {
    let harness = Harness::start().await;
    harness.deploy(ORDER).await;
    let session = start(&harness, "agent", "order", &[]).await;
    let source = shop(&harness).await;
    assert_eq!(callback(&harness, &session, "shipped").await, StatusCode::ACCEPTED);
    assert_eq!(webhook(&harness, &source, &session, "later").await, StatusCode::ACCEPTED);
    for role in ["integration", "operator", "admin"] {
        bring(&harness, role, &session, "other").await.expect("the event is accepted");
    }
    let sources = history(&harness, &session, "event.recorded", "source").await;
    let webhook = format!("webhook:{source}");
    let wanted = [
        "reply_token",
        &webhook,
        "integration:integration@acme",
        "operator:operator@acme",
        "admin:admin@acme",
    ];
    assert_eq!(sources, wanted);
    let data = harness.look(&session.name).await.data.expect("data").fields;
    let waited = format!("{:?}", data["wait"]);
    assert!(
        waited.contains("shipped") && !waited.contains("reply_token"),
        "the reply token is not recorded: {waited}"
    );
    harness.node.end().await;
}

/// A definition, an event's key, and the sources.
type Bound<'b> = (&'b str, &'b str, &'b [&'b str]);

async fn bind(harness: &Harness, bindings: &[Bound<'_>]) -> Result<v1::Directory, tonic::Status> {
    let binding = |(definition, key, sources): &Bound<'_>| v1::EventBinding {
        definition: (*definition).into(),
        event_key: (*key).into(),
        sources: sources.iter().map(|one| (*one).to_owned()).collect(),
    };
    let event_bindings = bindings.iter().map(binding).collect();
    let directory = Some(v1::Directory { event_bindings, ..Default::default() });
    let request = v1::PutDirectoryRequest { directory, ..Default::default() };
    let reply: v1::PutDirectoryResponse = harness.attempt("admin", "PutDirectory", &request).await?;
    Ok(reply.directory.expect("a directory"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bound_event_comes_from_its_source_alone() {
    let harness = Harness::start().await;
    for source in [ORDER, LATER] {
        harness.deploy(source).await;
    }
    let (source, other) = (shop(&harness).await, shop(&harness).await);
    let named = format!("webhook:{source}");
    let bound =
        bind(&harness, &[("order", "paid", &[named.as_str()]), ("order", "*", &["reply_token"])]).await;
    assert_eq!(bound.expect("a directory").event_bindings[1].sources, [named.as_str()]);

    let session = start(&harness, "agent", "order", &[]).await;
    let refusal = refused(bring(&harness, "integration", &session, "paid").await, "EVENT_SOURCE_NOT_ALLOWED");
    assert_eq!(refusal.metadata["source"], "integration:integration@acme");
    refused(bring(&harness, "integration", &session, "anything").await, "EVENT_SOURCE_NOT_ALLOWED");
    assert_eq!(webhook(&harness, &other, &session, "paid").await, StatusCode::FORBIDDEN);
    assert_eq!(callback(&harness, &session, "paid").await, StatusCode::FORBIDDEN);
    assert_eq!(harness.look(&session.name).await.at, ["hook"]);
    assert_eq!(callback(&harness, &session, "anything").await, StatusCode::ACCEPTED);
    assert_eq!(harness.look(&session.name).await.at, ["pay"]);
    assert_eq!(webhook(&harness, &source, &session, "paid").await, StatusCode::ACCEPTED);
    assert_eq!(harness.look(&session.name).await.at, ["confirm"]);

    // An early event, stored for a workflow without bindings, does not count for a workflow with bindings.
    let session = start(&harness, "agent", "later", &["order"]).await;
    bring(&harness, "integration", &session, "paid").await.expect("the event is kept for later");
    let switch = v1::SwitchWorkflowRequest {
        name: session.name.clone(),
        workflow: "order".into(),
        ..Default::default()
    };
    let _: v1::SwitchWorkflowResponse = harness.ask("agent", "SwitchWorkflow", &switch).await;
    assert_eq!(harness.look(&session.name).await.at, ["hook"], "a kept event does not end the wait");
    bring(&harness, "operator", &session, "paid").await.expect("the event of an operator is accepted");
    assert_eq!(harness.look(&session.name).await.at, ["pay"], "a kept event does not fire the transition");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_that_names_no_source_is_refused_where_it_stands() {
    let harness = Harness::start().await;
    let cases: [(&[Bound<'_>], &str); 5] = [
        (&[("order", "paid", &["agent:a"])], "directory.event_bindings[0].sources[0]"),
        (&[("order", "paid", &["reply_token", "webhook:"])], "directory.event_bindings[0].sources[1]"),
        (&[("", "paid", &[])], "directory.event_bindings[0].definition"),
        (&[("order", "", &[])], "directory.event_bindings[0].event_key"),
        (&[("order", "paid", &[]), ("order", "paid", &["integration"])], "directory.event_bindings"),
    ];
    for (bindings, field) in cases {
        let outcome = bind(&harness, bindings).await.map(drop);
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, [field]);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_cannot_preempt_a_message_that_will_come() {
    let harness = Harness::start().await;
    let session = harness.talk().await;
    let before = harness.node.state().await;
    let digest = Digest::of_parts(&[b"source:shop", b"evt_1"]);
    for own in ["webhook", "mail", "page", "confirm", "settle", "call"] {
        let request = v1::PostMessageRequest {
            name: session.name.clone(),
            text: "hello".into(),
            request_id: format!("{own}:{digest}"),
            ..Default::default()
        };
        let outcome: Result<v1::PostMessageResponse, _> =
            harness.attempt("agent", "PostMessage", &request).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["request_id"]);
    }
    assert_eq!(harness.node.state().await, before);
    harness.node.end().await;
}
