//! Reply tokens: what they allow, for how long, and who sees them.

use prost::Message;
use switchward_api::v1::{self, GateDecision};
use tonic::Status;

use crate::harness::Harness;
use crate::protocols::{Protocol, Raw, body, reply, stream};
use crate::refusal::{Refusal, refused};
use crate::rpcs::all;

/// A parcel: the carrier notes it, then ships it.
const SHIPMENT: &str = r#"{
  "name": "parcel",
  "states": [
    {
      "name": "note",
      "type": "action",
      "execution_mode": "deterministic",
      "operations": [
        { "type": "send_notification", "config": { "channel": "webhook", "recipients": ["https://example.com/?t={gathered.reply_token}"], "subject": "Answer with {gathered.reply_token}, please", "body": "b" } },
        { "type": "set_data", "config": { "key": "note", "value": ["Answer with {gathered.reply_token}, please"] } }
      ]
    },
    { "name": "ship", "type": "conversation", "instructions": "Give {gathered.reply_token} to the carrier" },
    { "name": "shipped", "type": "conversation" }
  ],
  "transitions": [
    { "from": "note", "to": "ship", "guards": [{ "type": "external_event", "config": { "event_key": "noted" } }] },
    { "from": "ship", "to": "shipped", "guards": [{ "type": "external_event", "config": { "event_key": "shipped" } }] }
  ]
}"#;

async fn shipment(harness: &Harness) -> v1::Session {
    harness.deploy(SHIPMENT).await;
    let request = v1::StartSessionRequest { definition: "parcel".into(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let session = reply.session.expect("a session");
    assert_eq!(session.reply_token, "", "the agent does not get the token");
    harness.seen(&session.name).await
}

fn event(key: &str) -> v1::RecordEventRequest {
    v1::RecordEventRequest { key: key.into(), ..Default::default() }
}

/// Records an event with a token instead of a key.
async fn send(harness: &Harness, token: &str, event: &v1::RecordEventRequest) -> Result<v1::Session, Status> {
    let reply: v1::RecordEventResponse = harness.node.line.ask(token, "RecordEvent", event).await?;
    Ok(reply.session.expect("a session"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lets_an_event_in_while_its_state_lasts() {
    let harness = Harness::start().await;
    let session = shipment(&harness).await;
    let first = session.reply_token.clone();
    let once = v1::RecordEventRequest { request_id: "noted-1".into(), ..event("noted") };
    let session_now = send(&harness, &first, &once).await.expect("the event is accepted");
    assert_eq!(
        (session_now.at.as_slice(), session_now.name.as_str()),
        (&["ship".to_owned()][..], session.name.as_str())
    );
    let shown = v1::Session { at: Vec::new(), name: String::new(), ..session_now.clone() };
    let known = v1::Session {
        status: session_now.status,
        status_word: session_now.status_word.clone(),
        sequence: session_now.sequence,
        update_time: session_now.update_time,
        ..v1::Session::default()
    };
    assert_eq!(shown, known, "the holder of a token learns the state of the session and nothing else");
    let again = send(&harness, &first, &once).await.expect("a repetition gets the first answer");
    assert_eq!(again.sequence, session_now.sequence);
    let outcome = send(&harness, &first, &event("noted")).await;
    refused(outcome, "STATE_MISMATCH");
    let second = harness.seen(&session.name).await.reply_token;
    assert_ne!(first, second);
    let named =
        v1::RecordEventRequest { name: session.name.clone(), state: "ship".into(), ..event("shipped") };
    assert_eq!(send(&harness, &second, &named).await.expect("the event is accepted").at, ["shipped"]);
    assert_eq!(harness.seen(&session.name).await.reply_token, "");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_nothing_else() {
    let harness = Harness::start().await;
    let token = shipment(&harness).await.reply_token;
    let mut first: Option<Refusal> = None;
    for rpc in all().into_iter().filter(|rpc| rpc.method != "RecordEvent") {
        let message = rpc.request(&harness).await.encode_to_vec();
        let raw = Raw::post(Protocol::Grpc, rpc.method, body(Protocol::Grpc, rpc.method, &message));
        let answer = harness.node.line.send(raw.with_key(&token)).await;
        let outcome = if rpc.streams() {
            stream(Protocol::Grpc, &answer).1
        } else {
            reply(Protocol::Grpc, rpc.method, &answer).map(drop)
        };
        let refusal = Refusal::of(&outcome.expect_err("the token is refused"));
        assert_eq!(refusal, *first.get_or_insert_with(|| refusal.clone()), "{}", rpc.method);
    }
    assert_eq!(first.expect("an answer").reason, "CREDENTIAL_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_for_its_session_alone() {
    let harness = Harness::start().await;
    let (one, other) = (shipment(&harness).await, shipment(&harness).await);
    let unknown = "tenants/-/sessions/ses_00000000000000000000000000";
    let mut refusals = Vec::new();
    for name in [other.name.as_str(), unknown] {
        let named = v1::RecordEventRequest { name: name.into(), ..event("noted") };
        let status =
            send(&harness, &one.reply_token, &named).await.expect_err("the token belongs to another session");
        refusals.push(format!("{:?}", Refusal::of(&status)).replace(name, "NAME"));
    }
    assert!(refusals[0] == refusals[1] && refusals[0].contains("NOT_FOUND"), "{refusals:?}");
    let id = |session: &v1::Session| session.name.rsplit('/').next().expect("an id").to_owned();
    let token = &one.reply_token;
    let code = token.rsplit('.').next().expect("a code");
    let zero = "0".repeat(code.len());
    let mut forged = vec![
        token.replace(&id(&one), &id(&other)),
        token.replace("acme", "globex"),
        token.replace("acme", "nobody"),
        token.replace("acme", ""),
        token.replace(".1.1.", ".1.2."),
        token.replace(".1.1.", ".2.1."),
        token.replace(".1.1.", ".01.1."),
        token.replace(".1.1.", ".+1.1."),
        token.replace(".1.1.", ".1.99999999999."),
        token.replace(code, &zero),
        token.replace(code, ""),
        token.to_uppercase(),
        format!("{token}0"),
        format!("{token}.0"),
        "swr_".into(),
        "swr_....".into(),
        "swr_\u{e9}.ses_1.1.1.ä".into(),
        format!("swr_{}", "a.".repeat(2_000)),
    ];
    forged.extend((token.len() - code.len()..token.len()).map(|at| {
        let changed = if token.as_bytes()[at] == b'0' { "1" } else { "0" };
        format!("{}{changed}{}", &token[..at], &token[at + 1..])
    }));
    let before = harness.node.state().await;
    for forged in forged {
        let raw = Raw::post(
            Protocol::Grpc,
            "RecordEvent",
            body(Protocol::Grpc, "RecordEvent", &event("noted").encode_to_vec()),
        );
        let answer = harness.node.line.send(raw.with_key(&forged)).await;
        let status = reply(Protocol::Grpc, "RecordEvent", &answer).expect_err(&forged);
        assert_eq!(Refusal::of(&status).reason, "CREDENTIAL_INVALID", "{forged}");
    }
    assert_eq!(harness.node.state().await, before);
    assert_eq!(send(&harness, token, &event("noted")).await.expect("the event is accepted").at, ["ship"]);
    harness.node.end().await;
}

/// A process that puts the token into every text and value: gates, work and effects.
const LEAK: &str = r#"{
  "name": "leak",
  "states": [
    {
      "name": "keep",
      "type": "action",
      "execution_mode": "deterministic",
      "operations": [
        { "type": "set_data", "config": { "key": "token", "value": "{gathered.reply_token}" } },
        { "type": "set_data", "config": { "key": "nested", "value": [{ "a": "to {gathered.reply_token}." }] } },
        { "type": "send_notification", "config": { "channel": "webhook", "recipients": ["https://example.com/?t={gathered.reply_token}"], "subject": "S {gathered.reply_token}", "body": "b" } }
      ]
    },
    { "name": "say", "type": "output", "template": "Say {{ gathered_data.token }}", "target": "conversation" },
    { "name": "talk", "type": "conversation", "instructions": "Tell {gathered.token} to the carrier" },
    {
      "name": "decide",
      "type": "approval",
      "approvers": ["approver@acme"],
      "request_template": { "subject_template": "S {{ gathered_data.token }}", "body_template": "B {{ gathered_data.token }}" }
    },
    { "name": "rate", "type": "task", "task_template": { "participants": ["approver@acme"], "instructions": "I {gathered.token}." } },
    { "name": "work", "type": "action", "instructions": "Do {gathered.token}." },
    { "name": "end", "type": "conversation" }
  ],
  "transitions": [
    { "from": "keep", "to": "say", "guards": [{ "type": "external_event", "config": { "event_key": "go" } }] },
    { "from": "say", "port": "done", "to": "talk" },
    { "from": "talk", "to": "decide", "guards": [{ "type": "always" }] },
    { "from": "decide", "port": "approved", "to": "rate" },
    { "from": "decide", "port": "rejected", "to": "end" },
    { "from": "rate", "to": "work", "guards": [{ "type": "all_tasks_complete" }] },
    { "from": "work", "to": "end", "guards": [{ "type": "always" }] }
  ]
}"#;

/// The replies to all reads of a session by a role, as raw bytes; a stream is read as far as it has come.
async fn read_all(harness: &Harness, role: &str, session: &v1::Session) -> Vec<(&'static str, Vec<u8>)> {
    let id = session.name.rsplit('/').next().expect("an id");
    let filter = format!("session=\"{id}\"");
    let name = session.name.clone();
    let gates: v1::ListGatesResponse = harness
        .ask("operator", "ListGates", &v1::ListGatesRequest { filter: filter.clone(), ..Default::default() })
        .await;
    let effects: v1::ListEffectsResponse = harness
        .ask(
            "operator",
            "ListEffects",
            &v1::ListEffectsRequest { filter: filter.clone(), ..Default::default() },
        )
        .await;
    let mut calls: Vec<(&'static str, Vec<u8>)> = vec![
        ("GetSession", v1::GetSessionRequest { name: name.clone(), ..Default::default() }.encode_to_vec()),
        ("ListSessions", v1::ListSessionsRequest::default().encode_to_vec()),
        (
            "ListSessionEvents",
            v1::ListSessionEventsRequest { name: name.clone(), page_size: 1_000, ..Default::default() }
                .encode_to_vec(),
        ),
        ("ListGates", v1::ListGatesRequest { filter: filter.clone(), ..Default::default() }.encode_to_vec()),
        ("ListEffects", v1::ListEffectsRequest { filter, ..Default::default() }.encode_to_vec()),
    ];
    for gate in gates.gates {
        calls.push(("GetGate", v1::GetGateRequest { name: gate.name, ..Default::default() }.encode_to_vec()));
    }
    for effect in effects.effects {
        let request = v1::GetEffectRequest { name: effect.name, ..Default::default() };
        calls.push(("GetEffect", request.encode_to_vec()));
    }
    if ["agent", "operator", "admin"].contains(&role) {
        let note = prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("seen".into())) };
        let values = Some(prost_types::Struct { fields: [("note".to_owned(), note)].into() });
        let record = v1::RecordDataRequest { name: name.clone(), values, ..Default::default() };
        calls.push(("RecordData", record.encode_to_vec()));
    }
    let mut read = Vec::new();
    for (method, request) in calls {
        for protocol in [Protocol::Grpc, Protocol::Json] {
            let raw = Raw::post(protocol, method, body(protocol, method, &request))
                .with_key(harness.acme.key(role));
            read.push((method, harness.node.line.send(raw).await.body.to_vec()));
        }
    }
    read
}

/// Fails if a reply contains a token; returns how many contain its mask.
fn hidden(read: &[(&'static str, Vec<u8>)], code: &str, role: &str) -> usize {
    let holds = |bytes: &[u8], text: &str| String::from_utf8_lossy(bytes).contains(text);
    for (method, bytes) in read {
        assert!(!holds(bytes, code) && !holds(bytes, "swr_acme"), "{method} by {role}");
    }
    read.iter().filter(|(_, bytes)| holds(bytes, "swr_…")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_operators_and_admins_read_reply_tokens() {
    let harness = Harness::start().await;
    harness.deploy(LEAK).await;
    let request = v1::StartSessionRequest { definition: "leak".into(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let session = harness.seen(&reply.session.expect("a session").name).await;
    let token = session.reply_token.clone();
    let code = token.rsplit('.').next().expect("a code").to_owned();
    let mut seen = 0;
    let look = async |seen: &mut usize| {
        for role in ["agent", "worker", "author", "approver"] {
            *seen += hidden(&read_all(&harness, role, &session).await, &code, role);
        }
        for role in ["operator", "admin"] {
            let read = read_all(&harness, role, &session).await;
            let shown = read.iter().filter(|(_, bytes)| String::from_utf8_lossy(bytes).contains(&token));
            assert!(shown.count() > 3, "{role} reads it");
        }
    };
    look(&mut seen).await;
    let _moved = send(&harness, &token, &event("go")).await.expect("the event is accepted");
    look(&mut seen).await;
    let turn = v1::EndTurnRequest { name: session.name.clone(), ..Default::default() };
    let _: v1::EndTurnResponse = harness.ask("agent", "EndTurn", &turn).await;
    for (state, decision) in [("decide", GateDecision::Approve), ("rate", GateDecision::Answer)] {
        let now = harness.look(&session.name).await;
        assert_eq!(now.at, [state]);
        look(&mut seen).await;
        let answer = prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("fine".into())) };
        let decide = v1::DecideGateRequest {
            name: now.waiting_on[0].name.clone(),
            decision: decision.into(),
            answer: (decision == GateDecision::Answer).then_some(answer),
            ..Default::default()
        };
        let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide).await;
    }
    look(&mut seen).await;
    assert!(seen > 60, "{seen} replies had a placeholder for a token");
    let wanted = Some(v1::WorkWanted { queues: vec!["leak".into()], ..Default::default() });
    let poll = v1::PollWorkRequest { wanted, ..Default::default() };
    let polled: v1::PollWorkResponse = harness.ask("worker", "PollWork", &poll).await;
    let polled = format!("{polled:?}");
    assert!(polled.contains("swr_…") && !polled.contains(&code), "{polled}");
    let release = polled.contains("lease_token");
    assert!(release, "the worker has the work");
    // A watch of a session that has ended ends by itself.
    let cancel = v1::CancelSessionRequest { name: session.name.clone(), ..Default::default() };
    let _: v1::CancelSessionResponse = harness.ask("operator", "CancelSession", &cancel).await;
    let watch = v1::WatchSessionRequest { name: session.name.clone(), from_sequence: 1 }.encode_to_vec();
    for (role, reads) in [("agent", false), ("worker", false), ("operator", true), ("admin", true)] {
        let key = harness.acme.key(role);
        let (updates, _) = harness.node.line.watch(Protocol::Grpc, "WatchSession", key, &watch).await;
        let all = String::from_utf8_lossy(&updates.concat()).into_owned();
        assert!(all.contains("session.started"), "{role} sees the history");
        assert_eq!(all.contains(&code), reads, "{role}");
    }
    harness.node.end().await;
}
