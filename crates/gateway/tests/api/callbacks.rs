//! Callbacks: what a reply token allows by plain HTTP, and the answer of each refusal.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchward_api::v1;
use switchward_gateway::limits::{CALLBACKS_MAX, JSON_NODES_MAX};

use crate::harness::Harness;
use crate::protocols::{Answer, Raw};
use crate::refusal;

/// A parcel: the carrier notes it, then ships it.
const SHIPMENT: &str = r#"{
  "name": "parcel",
  "states": [
    { "name": "note it", "type": "conversation", "instructions": "Wait." },
    { "name": "ship", "type": "conversation", "instructions": "Wait." },
    { "name": "shipped", "type": "conversation" }
  ],
  "transitions": [
    { "from": "note it", "to": "ship", "guards": [{ "type": "external_event", "config": { "event_key": "noted" } }] },
    { "from": "ship", "to": "shipped", "guards": [{ "type": "external_event", "config": { "event_key": "shipped" } }] }
  ]
}"#;

/// Bytes of a body that is just too large.
pub(crate) const TOO_MANY: usize = 256 * 1024 + 1;

pub(crate) async fn shipment(harness: &Harness) -> v1::Session {
    harness.deploy(SHIPMENT).await;
    let request = v1::StartSessionRequest { definition: "parcel".into(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("operator", "StartSession", &request).await;
    reply.session.expect("a session")
}

pub(crate) fn raw(path: &str, body: impl Into<bytes::Bytes>) -> Raw {
    Raw {
        http2: true,
        method: Method::POST,
        path: path.to_owned(),
        headers: vec![("content-type", "application/json".to_owned())],
        body: body.into(),
    }
}

fn callback(token: &str, body: &Value) -> Raw {
    raw(&format!("/v1/callbacks/{token}"), body.to_string())
}

fn noted() -> Value {
    json!({ "event_key": "noted", "data": { "weight": 7, "to": { "city": "Köln" } } })
}

/// Checks the status and the reason of a refusal, whose body must look like every other refusal in JSON.
fn reason(answer: &Answer) -> (StatusCode, String) {
    let body = answer.json();
    assert_eq!(answer.headers["content-type"], "application/json");
    assert!(body["code"].is_string() && body["message"].is_string(), "{body}");
    let info = body["details"]
        .as_array()
        .and_then(|details| details.iter().find(|detail| detail["type"] == "google.rpc.ErrorInfo"));
    let info = &info.unwrap_or_else(|| panic!("{body}"))["debug"];
    assert_eq!(info["domain"], "switchward.dev", "{body}");
    (answer.status, info["reason"].as_str().expect("a reason").to_owned())
}

pub(crate) fn refused(answer: &Answer, status: u16, word: &str) {
    assert_eq!(reason(answer), (StatusCode::from_u16(status).expect("a status"), word.to_owned()));
}

/// The name of the newest event that came from outside.
pub(crate) async fn recorded(harness: &Harness, session: &str) -> String {
    let request = v1::ListSessionEventsRequest { name: session.to_owned(), ..Default::default() };
    let reply: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    let came = reply.events.iter().rfind(|event| event.r#type == "event.recorded").expect("an event");
    format!("{session}/events/{}", came.sequence)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_moves_its_session_once() {
    let harness = Harness::start().await;
    let session = shipment(&harness).await;
    let line = &harness.node.line;
    let first = callback(&session.reply_token, &noted()).with("webhook-id", "msg_1");
    let answer = line.send(first.clone()).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let event = answer.json()["event"].as_str().expect("a name").to_owned();
    let now = harness.seen(&session.name).await;
    assert_eq!(event, recorded(&harness, &session.name).await);
    assert_eq!(now.at, ["ship"]);
    let data = now.data.expect("data").fields;
    assert_eq!(format!("{:?}", data["event_key"].kind), "Some(StringValue(\"noted\"))");
    assert_eq!(format!("{:?}", data["weight"].kind), "Some(NumberValue(7.0))");
    let state = harness.node.state().await;
    for again in [
        first.clone(),
        callback(&session.reply_token, &json!({ "event_key": "other" })).with("webhook-id", "msg_1"),
    ] {
        let answer = line.send(again).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({ "duplicate": true })));
    }
    let keyed = callback(&now.reply_token, &json!({ "event_key": "later" })).with("idempotency-key", "msg_1");
    assert_eq!(line.send(keyed).await.json(), json!({ "duplicate": true }));
    // The same message without an id is a different message, and is late.
    refused(&line.send(callback(&session.reply_token, &noted())).await, 409, "STATE_MISMATCH");
    assert_eq!(harness.node.state().await, state, "a refused or duplicate event changes nothing");
    let kept = callback(&now.reply_token, &json!({ "event_key": "later" })).with("idempotency-key", "msg_2");
    assert_eq!(line.send(kept).await.status, StatusCode::ACCEPTED);
    assert_eq!(
        harness.look(&session.name).await.at,
        ["ship"],
        "an event that no state waits for yet is kept"
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_form_of_the_source_names_session_and_state() {
    let harness = Harness::start().await;
    let (session, other) = (shipment(&harness).await, shipment(&harness).await);
    let id = |session: &v1::Session| session.name.rsplit('/').next().expect("an id").to_owned();
    let (line, token) = (&harness.node.line, &session.reply_token);
    let path = |session: &v1::Session, state: &str| format!("/v1/webhook/{}/{state}", id(session));
    let body = noted().to_string();
    let none = line.send(raw(&path(&session, "note%20it"), body.clone())).await;
    refused(&none, 401, "CREDENTIAL_INVALID");
    let foreign = line.send(raw(&path(&other, "note%20it"), body.clone()).with_key(token)).await;
    refused(&foreign, 404, "NOT_FOUND");
    let elsewhere = line.send(raw(&path(&session, "ship"), body.clone()).with_key(token)).await;
    refused(&elsewhere, 409, "STATE_MISMATCH");
    let good = format!("{}?from=carrier&token={token}", path(&session, "note%20it"));
    let answer = line.send(raw(&good, body.clone())).await;
    assert_eq!((answer.status, &answer.json()["state"]), (StatusCode::OK, &json!("ship")), "{answer:?}");
    let left = line.send(raw(&good, body)).await;
    refused(&left, 409, "STATE_MISMATCH");
    let next = harness.seen(&session.name).await.reply_token;
    let last = raw(&path(&session, "ship"), r#"{"event_key":"shipped"}"#).with_key(&next);
    assert_eq!(line.send(last.clone()).await.json()["state"], "shipped");
    let answer = line.send(last).await;
    assert_eq!(answer.status, StatusCode::CONFLICT, "{answer:?}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_without_a_good_token_learns_nothing() {
    let harness = Harness::start().await;
    let session = shipment(&harness).await;
    let (line, token) = (&harness.node.line, &session.reply_token);
    let code = token.rsplit('.').next().expect("a code");
    let bad = [
        token.replace(code, &"0".repeat(code.len())),
        token.replace("acme", "globex"),
        token.replace("acme", "nobody"),
        token.replace("swr_", "swk_"),
        token.replace("ses_", "ses_0"),
        format!("{token}0"),
        harness.acme.key("admin").to_owned(),
        "%FF".into(),
        "-".into(),
    ];
    let state = harness.node.state().await;
    let mut bodies = Vec::new();
    for token in &bad {
        let answer = line.send(callback(token, &noted())).await;
        refused(&answer, 401, "CREDENTIAL_INVALID");
        bodies.push(answer.body);
    }
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:?}");
    assert_eq!(harness.node.state().await, state);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_bodies_are_refused_with_their_status() {
    let harness = Harness::start().await;
    let token = shipment(&harness).await.reply_token;
    let (line, path) = (&harness.node.line, format!("/v1/callbacks/{token}"));
    let state = harness.node.state().await;
    let deep = format!(r#"{{"event_key":"noted","data":{{"a":{}{}}}}}"#, "[".repeat(40), "]".repeat(40));
    let abyss = "[".repeat(JSON_NODES_MAX - 1);
    for bad in [
        "",
        "null",
        "[]",
        "7",
        "noted",
        "{",
        "{}",
        r#"{"event_key":7}"#,
        r#"{"event_key":""}"#,
        r#"{"event_key":"noted","data":[]}"#,
        r#"{"event_key":"noted","data":null}"#,
        r#"{"event_key":"noted","event_key":"noted"}"#,
        r#"{"event_key":"noted","other":1}"#,
        r#"{"event_key":"noted"} x"#,
        r#"{"event_key":"noted","data":{"n":9007199254740993}}"#,
        r#"{"event_key":"noted","data":{"n":1e999}}"#,
        r#"{"event_key":"\ud800"}"#,
        &deep,
        &abyss,
    ] {
        let answer = line.send(raw(&path, bad.to_owned())).await;
        refused(&answer, 400, "FIELD_INVALID");
    }
    refused(&line.send(raw(&path, &b"{\"event_key\":\"\xff\"}"[..])).await, 400, "FIELD_INVALID");
    let own = line.send(callback(&token, &json!({ "event_key": "noted", "data": { "approval": 1 } }))).await;
    refused(&own, 400, "SCHEMA_VIOLATION");
    let large = json!({ "event_key": "noted", "data": { "a": "a".repeat(TOO_MANY) } });
    refused(&line.send(callback(&token, &large)).await, 413, "QUOTA_EXCEEDED");
    let many = format!("[{}]", "7,".repeat(JSON_NODES_MAX));
    refused(&line.send(raw(&path, many)).await, 413, "QUOTA_EXCEEDED");
    refused(
        &line.send(callback(&token, &noted()).with("content-type", "text/plain")).await,
        415,
        "FIELD_INVALID",
    );
    refused(
        &line.send(callback(&token, &noted()).with("content-encoding", "gzip")).await,
        415,
        "FIELD_INVALID",
    );
    refused(&line.send(callback(&token, &noted()).with("webhook-id", "a b")).await, 400, "FIELD_INVALID");
    refused(
        &line.send(callback(&token, &noted()).with("x-long", "a".repeat(17_000))).await,
        431,
        "QUOTA_EXCEEDED",
    );
    let got = line.send(Raw { method: Method::GET, ..callback(&token, &noted()) }).await;
    refused(&got, 405, "UNIMPLEMENTED");
    assert_eq!(got.headers["allow"], "POST");
    assert_eq!(harness.node.state().await, state);
    let cloud =
        callback(&token, &noted()).with("content-type", "application/cloudevents+json; charset=utf-8");
    assert_eq!(line.send(cloud).await.status, StatusCode::ACCEPTED);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_sends_too_much_with_one_token_waits_alone() {
    let harness = Harness::start().await;
    let (session, other) = (shipment(&harness).await, shipment(&harness).await);
    let wrong = |session: &v1::Session| callback(&session.reply_token, &json!({}));
    // Each server counts for itself, by the test's clock, which stands.
    let line = harness.node.line.to(0);
    let answer = line.send(callback(&session.reply_token, &noted())).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED, "{answer:?}");
    let next = harness.seen(&session.name).await;
    assert_ne!(next.reply_token, session.reply_token);
    for _ in 1..CALLBACKS_MAX {
        refused(&line.send(wrong(&session)).await, 400, "FIELD_INVALID");
    }
    let id = session.name.rsplit('/').next().expect("an id");
    let by_state = raw(&format!("/v1/webhook/{id}/ship"), noted().to_string()).with_key(&session.reply_token);
    for full in [wrong(&session), by_state] {
        let answer = line.send(full).await;
        refused(&answer, 429, "RATE_LIMITED");
        assert_eq!(answer.headers["retry-after"], "1");
    }
    let event = v1::RecordEventRequest { key: "noted".into(), ..Default::default() };
    let by_call = line.ask::<v1::RecordEventResponse>(&session.reply_token, "RecordEvent", &event).await;
    refusal::refused(by_call, "RATE_LIMITED");
    for free in [wrong(&next), wrong(&other)] {
        refused(&line.send(free).await, 400, "FIELD_INVALID");
    }
    harness.node.end().await;
}
