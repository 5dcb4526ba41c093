//! An approval holds for what was shown: the data is frozen while it is open, and the shown data is stored with its digest.

use prost_types::value::Kind;
use switchward_api::v1::{self, GateDecision};

use crate::harness::Harness;
use crate::refusal::refused;

const PAY: &str = r#"{
  "name": "pay",
  "states": [
    {
      "name": "decide",
      "type": "approval",
      "approvers": ["approver@acme"],
      "request_template": { "subject_template": "Pay?", "body_template": "{{ gathered_data.amount }}" }
    },
    { "name": "paid", "type": "conversation" },
    { "name": "kept", "type": "conversation" }
  ],
  "transitions": [
    { "from": "decide", "port": "approved", "to": "paid" },
    { "from": "decide", "port": "rejected", "to": "kept" }
  ]
}"#;

fn amount(number: f64) -> Option<prost_types::Struct> {
    let value = prost_types::Value { kind: Some(Kind::NumberValue(number)) };
    Some(prost_types::Struct { fields: [("amount".to_owned(), value)].into() })
}

/// A value of a session's data, by its path.
fn at(session: &v1::Session, path: &str) -> Option<Kind> {
    let mut fields = session.data.as_ref()?.fields.clone();
    let mut names = path.split('.').peekable();
    loop {
        let value = fields.remove(names.next()?)?.kind;
        match (names.peek(), value) {
            (None, value) => return value,
            (Some(_), Some(Kind::StructValue(inner))) => fields = inner.fields,
            (Some(_), _) => return None,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_approved_is_what_was_shown() {
    let harness = Harness::start().await;
    harness.deploy(PAY).await;
    let start =
        v1::StartSessionRequest { definition: "pay".into(), input: amount(5.0), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    let session = reply.session.expect("a session");
    let gate = session.waiting_on.first().expect("a gate").clone();
    let session = harness.look(&session.name).await;
    assert_eq!(at(&session, "approval.decide.shown.amount"), Some(Kind::NumberValue(5.0)));
    assert_eq!(at(&session, "approval.decide.digest"), Some(Kind::StringValue(gate.args_digest.clone())));

    let name = session.name.clone();
    let record = |number| v1::RecordDataRequest {
        name: name.clone(),
        values: amount(number),
        ..v1::RecordDataRequest::default()
    };
    let outcome: Result<v1::RecordDataResponse, _> =
        harness.attempt("agent", "RecordData", &record(9.0)).await;
    let metadata = refused(outcome, "APPROVAL_PENDING").metadata;
    assert!(gate.name.ends_with(&metadata["gate"]), "{} of {metadata:?}", gate.name);
    let (key, data) = ("news".to_owned(), amount(7.0));
    let event = v1::RecordEventRequest { name: name.clone(), key, data, ..Default::default() };
    let _: v1::RecordEventResponse = harness.ask("operator", "RecordEvent", &event).await;
    let held = harness.look(&name).await;
    assert_eq!((held.waiting_on[0].held_inputs, at(&held, "amount")), (1, Some(Kind::NumberValue(5.0))));

    let decide = |digest: &str| v1::DecideGateRequest {
        name: gate.name.clone(),
        decision: GateDecision::Approve.into(),
        args_digest: Some(digest.to_owned()),
        ..Default::default()
    };
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("approver", "DecideGate", &decide(&"0".repeat(64))).await;
    refused(outcome, "STATE_MISMATCH");
    let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide(&gate.args_digest)).await;
    let _: v1::RecordDataResponse = harness.ask("agent", "RecordData", &record(999_999.0)).await;
    let after = harness.look(&name).await;
    assert_eq!(
        (after.at.as_slice(), at(&after, "amount")),
        (&["paid".to_owned()][..], Some(Kind::NumberValue(999_999.0)))
    );
    assert_eq!(at(&after, "approval.decide.shown.amount"), Some(Kind::NumberValue(5.0)));

    let list = v1::ListSessionEventsRequest { name, page_size: 1_000, ..Default::default() };
    let reply: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &list).await;
    let events = format!("{:?}", reply.events);
    for kind in ["data.held", "data.released", "approval.requested", "approval.decided"] {
        assert!(events.contains(kind), "{kind}: {events}");
    }
    let asked = reply
        .events
        .iter()
        .find(|event| event.r#type == "approval.requested")
        .expect("the request is recorded");
    assert!(asked.message.contains(&gate.args_digest), "{asked:?}");
    harness.node.end().await;
}

/// Without a transition for a discussion, a question is passed on, and the gate stays open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_keeps_an_approval_open() {
    let harness = Harness::start().await;
    harness.deploy(PAY).await;
    let start = v1::StartSessionRequest { definition: "pay".into(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    let session = reply.session.expect("a session");
    let discuss = v1::DecideGateRequest {
        name: session.waiting_on[0].name.clone(),
        decision: GateDecision::Discuss.into(),
        comment: "To whom?".into(),
        ..Default::default()
    };
    let reply: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &discuss).await;
    let request = v1::GetGateRequest { name: reply.gate.expect("a gate").name, ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    let gate = reply.gate.expect("a gate");
    assert_eq!((gate.status(), gate.comments[0].comment.as_str()), (v1::GateStatus::Open, "To whom?"));
    let now = harness.look(&session.name).await;
    assert_eq!((now.at.as_slice(), now.status()), (&["decide".to_owned()][..], v1::SessionStatus::Waiting));
    let list = v1::ListEffectsRequest { filter: String::new(), ..Default::default() };
    let reply: v1::ListEffectsResponse = harness.ask("agent", "ListEffects", &list).await;
    assert!(format!("{:?}", reply.effects).contains("To whom?"), "{:?}", reply.effects);
    harness.node.end().await;
}
