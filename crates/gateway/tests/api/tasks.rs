//! Tasks and delegates of conversation workflows: each participant answers their own part, here or by mail, and another
//! assistant is a worker.

use prost_types::value::Kind;
use switchward_api::v1::{self, GateDecision};
use switchward_gateway::mail::Outcome;
use switchward_state::approval::ReplyOutcome;

use crate::approvals::{by_mail, mail};
use crate::harness::Harness;
use crate::refusal::refused;

const SURVEY: &str = r#"{
  "name": "survey",
  "states": [
    {
      "name": "rate",
      "type": "task",
      "task_template": { "participants": ["approver@acme", "ann@example.com"], "instructions": "Rate {gathered.what}." }
    },
    { "name": "helper", "type": "delegate", "assistant": "analyst", "instructions": "Sum up {gathered.what}." },
    { "name": "done", "type": "conversation" }
  ],
  "transitions": [
    { "from": "rate", "to": "helper", "guards": [{ "type": "all_tasks_complete" }] },
    { "from": "helper", "to": "done", "guards": [{ "type": "always" }] }
  ]
}"#;

fn text(text: &str) -> prost_types::Value {
    prost_types::Value { kind: Some(Kind::StringValue(text.into())) }
}

impl Harness {
    /// A session that waits for two answers.
    async fn survey(&self) -> v1::Session {
        self.deploy(SURVEY).await;
        let input = prost_types::Struct { fields: [("what".to_owned(), text("the food"))].into() };
        let request =
            v1::StartSessionRequest { definition: "survey".into(), input: Some(input), ..Default::default() };
        let reply: v1::StartSessionResponse = self.ask("agent", "StartSession", &request).await;
        reply.session.expect("a session")
    }
}

fn answer(gate: &v1::Gate, answer: Option<prost_types::Value>) -> v1::DecideGateRequest {
    v1::DecideGateRequest {
        name: gate.name.clone(),
        decision: GateDecision::Answer.into(),
        args_digest: Some(gate.args_digest.clone()),
        answer,
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_participant_answers_her_own_part() {
    let harness = Harness::start().await;
    let session = harness.survey().await;
    let asked: Vec<&str> =
        session.waiting_on.iter().flat_map(|gate| gate.approvers.iter().map(String::as_str)).collect();
    assert_eq!(asked, ["approver@acme", "ann@example.com"]);
    let request = v1::ListGatesRequest { filter: "kind=\"task\"".into(), ..Default::default() };
    let listed: v1::ListGatesResponse = harness.ask("agent", "ListGates", &request).await;
    let [first, second] = listed.gates.as_slice() else { panic!("{listed:?}") };
    assert_eq!((first.kind(), first.status()), (v1::GateKind::Task, v1::GateStatus::Open));
    assert_eq!((first.text.as_str(), first.args_digest.len()), ("Rate the food.", 64));
    assert_eq!(first.message, "survey: Your answer is needed: rate");

    let five = prost_types::Value { kind: Some(Kind::NumberValue(5.0)) };
    let attempt = async |role: &str, request: v1::DecideGateRequest, reason: &str| {
        let outcome: Result<v1::DecideGateResponse, _> = harness.attempt(role, "DecideGate", &request).await;
        refused(outcome, reason)
    };
    attempt("approver", answer(second, Some(five.clone())), "NOT_AN_APPROVER").await;
    attempt("operator", answer(first, Some(five.clone())), "NOT_AN_APPROVER").await;
    let null = prost_types::Value { kind: Some(Kind::NullValue(0)) };
    for nothing in [None, Some(null)] {
        attempt("approver", answer(first, nothing), "FIELD_INVALID").await;
    }
    for decision in [GateDecision::Approve, GateDecision::Reject] {
        let decided = v1::DecideGateRequest { decision: decision.into(), ..answer(first, None) };
        attempt("approver", decided, "FIELD_INVALID").await;
    }
    let both =
        v1::DecideGateRequest { decision: GateDecision::Approve.into(), ..answer(first, Some(five.clone())) };
    attempt("approver", both, "FIELD_INVALID").await;
    let large = answer(first, Some(text(&"x".repeat(64 * 1024))));
    attempt("approver", large, "FIELD_INVALID").await;

    let reply: v1::DecideGateResponse =
        harness.ask("approver", "DecideGate", &answer(first, Some(five.clone()))).await;
    let answered = reply.gate.expect("a gate");
    let resolution = answered.resolution.clone().expect("an answer");
    assert_eq!((resolution.decision(), resolution.answer), (GateDecision::Answer, Some(five)));
    let refusal = attempt("approver", answer(first, Some(text("six"))), "ALREADY_RESOLVED").await;
    assert_eq!((refusal.metadata["answer"].as_str(), refusal.metadata["decision"].as_str()), ("5", "answer"));
    assert_eq!(harness.look(&session.name).await.at, ["rate"]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_answers_and_another_assistant_is_a_worker() {
    let harness = Harness::start().await;
    let session = harness.survey().await;
    let gate = v1::GetGateRequest { name: session.waiting_on[0].name.clone(), ..Default::default() };
    let gate: v1::GetGateResponse = harness.ask("agent", "GetGate", &gate).await;
    let gate = gate.gate.expect("a gate");
    let _: v1::DecideGateResponse =
        harness.ask("approver", "DecideGate", &answer(&gate, Some(text("good")))).await;
    let gate = session.waiting_on[1].name.clone();
    let outcome: Result<v1::RecordReplyResponse, _> =
        harness.attempt("operator", "RecordReply", &mail(&session, "ann@example.com", "good")).await;
    refused(outcome, "NOT_AN_APPROVER");
    let said = ("ann@example.com", "bad\n> Rate the food.");
    assert_eq!(
        by_mail(&harness, &session, &gate, said, true).await,
        Outcome::Recorded(ReplyOutcome::Answered)
    );
    let session = harness.look(&session.name).await;
    assert_eq!((session.at[0].as_str(), session.waiting_on.len()), ("helper", 0));

    let wanted = v1::WorkWanted { kinds: vec![v1::WorkKind::Delegate.into()], ..Default::default() };
    let poll = v1::PollWorkRequest { wanted: Some(wanted), ..Default::default() };
    let reply: v1::PollWorkResponse = harness.ask("worker", "PollWork", &poll).await;
    let [item] = reply.items.as_slice() else { panic!("{reply:?}") };
    assert_eq!((item.kind(), item.state.as_str()), (v1::WorkKind::Delegate, "helper"));
    let input = &item.input.as_ref().expect("an input").fields;
    assert_eq!((&input["assistant"], &input["instructions"]), (&text("analyst"), &text("Sum up the food.")));
    let data = &item.data.as_ref().expect("the data").fields;
    assert!(data["tasks"].kind.is_some() && data["what"] == text("the food"), "{data:?}");
    let complete = v1::CompleteWorkRequest {
        name: item.name.clone(),
        lease_token: item.lease_token.clone(),
        result: Some(prost_types::Struct { fields: [("sum".to_owned(), text("mixed"))].into() }),
        ..Default::default()
    };
    let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &complete).await;
    assert!(reply.accepted, "{reply:?}");
    let session = harness.look(&session.name).await;
    assert_eq!(session.at, ["done"]);
    assert_eq!(session.data.expect("data").fields["sum"], text("mixed"));
    harness.node.end().await;
}
