//! A reply that an operator passes on: at a gate it is the operator's own decision, and is shown as vouched by them.

use switchward_api::v1::{self, GateDecision, quorum::Rule};

use crate::approvals::{approval_workflow, decide, mail, page};
use crate::harness::Harness;
use crate::refusal::refused;

const LEAD: &str = "lead@example.com";

async fn deploy(harness: &Harness) {
    let approvers = ["operator@acme", LEAD, "approver@acme"];
    harness.deploy(&approval_workflow("payment", &approvers, "Pay?", "It is due.")).await;
}

async fn payment(harness: &Harness, role: &str, quorum: Option<Rule>) -> (v1::Session, v1::Gate) {
    let quorum = quorum.map(|rule| v1::Quorum { rule: Some(rule) });
    let request = v1::StartSessionRequest { definition: "payment".into(), quorum, ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask(role, "StartSession", &request).await;
    let session = reply.session.expect("a session");
    let gate = harness.gate_of(&session).await;
    (session, gate)
}

async fn reply(
    harness: &Harness,
    role: &str,
    session: &v1::Session,
    text: &str,
) -> Result<v1::RecordReplyResponse, tonic::Status> {
    harness.attempt(role, "RecordReply", &mail(session, LEAD, text)).await
}

async fn history(harness: &Harness, session: &v1::Session) -> String {
    let request = v1::ListSessionEventsRequest { name: session.name.clone(), ..Default::default() };
    let reply: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    reply.events.iter().map(|event| format!("{} {}\n", event.r#type, event.message)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_passed_on_is_the_decision_of_the_operator() {
    let harness = Harness::start().await;
    deploy(&harness).await;
    let (session, gate) = payment(&harness, "agent", None).await;
    let before = harness.node.state().await;
    refused(reply(&harness, "admin", &session, "approve").await, "NOT_AN_APPROVER");
    for role in ["agent", "worker", "approver", "integration"] {
        refused(reply(&harness, role, &session, "approve").await, "ROLE_NOT_ALLOWED");
    }
    assert_eq!(harness.node.state().await, before, "a refused reply is not recorded");

    let decided = reply(&harness, "operator", &session, "approve\nfor Sam").await.expect("the reply decides");
    assert_eq!(
        (decided.outcome.as_str(), decided.session.expect("one").at),
        ("decided", vec!["pay".to_owned()])
    );
    let shown: v1::GetGateResponse = harness
        .ask("agent", "GetGate", &v1::GetGateRequest { name: gate.name.clone(), ..Default::default() })
        .await;
    let resolution = shown.gate.expect("a gate").resolution.expect("a decision");
    let said = [resolution.by, resolution.comment, resolution.via, resolution.vouched_by];
    assert_eq!(said, ["operator@acme", "for Sam", "vouched", "operator@acme"]);
    let history = history(&harness, &session).await;
    // The comment has two lines.
    let (_, came) = history.split_once("reply.recorded").expect("the reply is recorded");
    assert!(came.contains("from=lead@example.com") && came.contains("vouched_by=operator@acme"), "{came}");
    assert!(came.contains("authenticated=false"), "{came}");
    let decision =
        history.lines().find(|line| line.starts_with("approval.decided")).expect("the decision is recorded");
    assert!(decision.contains("via=vouched vouched_by=operator@acme"), "{decision}");
    let seen = page(&harness, &session, &gate.name, LEAD).await;
    assert!(seen.contains("a reply vouched by operator@acme decided at"), "{seen}");
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("approver", "DecideGate", &decide(&gate, GateDecision::Reject)).await;
    let refusal = refused(outcome, "ALREADY_RESOLVED");
    assert_eq!(refusal.metadata["via"], "vouched");
    assert_eq!(refusal.metadata["by"], "operator@acme");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requester_cannot_pass_on_the_answer() {
    let harness = Harness::start().await;
    deploy(&harness).await;
    let (session, _) = payment(&harness, "operator", None).await;
    refused(reply(&harness, "operator", &session, "approve").await, "SELF_APPROVAL");
    refused(reply(&harness, "operator", &session, "reject").await, "SELF_APPROVAL");
    assert_eq!(harness.look(&session.name).await.at, ["decide"]);
    assert!(!history(&harness, &session).await.contains("reply.recorded"));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_one_person_passes_on_count_once() {
    let harness = Harness::start().await;
    deploy(&harness).await;
    let (session, gate) = payment(&harness, "admin", Some(Rule::AtLeast(2))).await;
    let counted = reply(&harness, "operator", &session, "approve").await.expect("the reply counts");
    assert_eq!(counted.outcome, "counted");
    refused(reply(&harness, "operator", &session, "approve").await, "ALREADY_RESOLVED");
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("operator", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    refused(outcome, "ALREADY_RESOLVED");
    let gate = harness.gate_of(&session).await;
    let [vote] = &gate.votes[..] else { panic!("{:?}", gate.votes) };
    let said = [&vote.by, &vote.via, &vote.vouched_by];
    assert_eq!(said, ["operator@acme", "vouched", "operator@acme"]);
    let seen = page(&harness, &session, &gate.name, LEAD).await;
    assert!(seen.contains("1 of 2 (a reply vouched by operator@acme)"), "{seen}");
    let _: v1::DecideGateResponse =
        harness.ask("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    assert_eq!(harness.look(&session.name).await.at, ["pay"]);
    let history = history(&harness, &session).await;
    let vote = history.lines().find(|line| line.starts_with("approval.voted")).expect("a vote");
    assert!(vote.contains("via=vouched vouched_by=operator@acme"), "{vote}");
    harness.node.end().await;
}

/// A call with a limit is counted when a reply that is passed on approves it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_granted_by_a_reply_that_is_passed_on() {
    let harness = Harness::start().await;
    let audience = vec!["lead@example.com".to_owned()];
    let directory = Some(v1::Directory { audience, ..Default::default() });
    let put = v1::PutDirectoryRequest { directory, ..Default::default() };
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &put).await;
    let session = harness.session().await;
    harness.authorize(&session.name, "mcp:filesystem:write_file").await;
    let decided = reply(&harness, "operator", &session, "approve").await.expect("the reply decides");
    assert_eq!(decided.outcome, "decided");
    let allowed = harness.authorize(&session.name, "mcp:filesystem:write_file").await;
    assert_eq!(allowed.decision(), v1::ToolDecision::Allow);
    harness.node.end().await;
}
