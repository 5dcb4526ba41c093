//! A reply that an operator passes on: at a gate it is the operator's own decision, and is shown as vouched by them.

use switchward_api::v1;
use switchward_api::v1::GateDecision;
use switchward_api::v1::quorum::Rule;

use crate::approvals::{decide, mail, page};
use crate::told::refused;
use crate::world::World;

const PAYMENT: &str = r#"{
  "name": "payment",
  "states": [
    {
      "name": "decide",
      "type": "approval",
      "approvers": ["operator@acme", "lead@example.com", "approver@acme"],
      "request_template": { "subject_template": "Pay?", "body_template": "It is due." }
    },
    { "name": "pay", "type": "conversation" },
    { "name": "keep", "type": "conversation" }
  ],
  "transitions": [
    { "from": "decide", "port": "approved", "to": "pay" },
    { "from": "decide", "port": "rejected", "to": "keep" }
  ]
}"#;

const LEAD: &str = "lead@example.com";

async fn payment(world: &World, role: &str, quorum: Option<Rule>) -> (v1::Session, v1::Gate) {
    let quorum = quorum.map(|rule| v1::Quorum { rule: Some(rule) });
    let request = v1::StartSessionRequest { definition: "payment".into(), quorum, ..Default::default() };
    let reply: v1::StartSessionResponse = world.ask(role, "StartSession", &request).await;
    let session = reply.session.expect("a session");
    let gate = world.gate_of(&session).await;
    (session, gate)
}

async fn reply(
    world: &World,
    role: &str,
    session: &v1::Session,
    text: &str,
) -> Result<v1::RecordReplyResponse, tonic::Status> {
    world.attempt(role, "RecordReply", &mail(session, LEAD, text)).await
}

async fn history(world: &World, session: &v1::Session) -> String {
    let request = v1::ListSessionEventsRequest { name: session.name.clone(), ..Default::default() };
    let reply: v1::ListSessionEventsResponse = world.ask("agent", "ListSessionEvents", &request).await;
    reply.events.iter().map(|event| format!("{} {}\n", event.r#type, event.message)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_passed_on_is_the_decision_of_whoever_passes_it_on() {
    let world = World::start().await;
    world.deploy(PAYMENT).await;
    let (session, gate) = payment(&world, "agent", None).await;
    let before = world.node.state().await;
    refused(reply(&world, "admin", &session, "approve").await, "NOT_AN_APPROVER");
    for role in ["agent", "worker", "approver", "integration"] {
        refused(reply(&world, role, &session, "approve").await, "ROLE_NOT_ALLOWED");
    }
    assert_eq!(world.node.state().await, before, "what is refused is not recorded");

    let decided = reply(&world, "operator", &session, "approve\nfor Sam").await.expect("it decides");
    assert_eq!(
        (decided.standing.as_str(), decided.session.expect("one").at),
        ("decided", vec!["pay".to_owned()])
    );
    let shown: v1::GetGateResponse = world
        .ask("agent", "GetGate", &v1::GetGateRequest { name: gate.name.clone(), ..Default::default() })
        .await;
    let resolution = shown.gate.expect("a gate").resolution.expect("a decision");
    let said = [resolution.by, resolution.comment, resolution.via, resolution.vouched_by];
    assert_eq!(said, ["operator@acme", "for Sam", "vouched", "operator@acme"]);
    let told = history(&world, &session).await;
    // What was said has two lines.
    let (_, came) = told.split_once("reply.recorded").expect("it is recorded");
    assert!(came.contains("from=lead@example.com") && came.contains("vouched_by=operator@acme"), "{came}");
    assert!(came.contains("authenticated=false"), "{came}");
    let decision = told.lines().find(|line| line.starts_with("approval.decided")).expect("it is decided");
    assert!(decision.contains("via=vouched vouched_by=operator@acme"), "{decision}");
    let seen = page(&world, &session, &gate.name, LEAD).await;
    assert!(seen.contains("a reply vouched by operator@acme decided at"), "{seen}");
    let outcome: Result<v1::DecideGateResponse, _> =
        world.attempt("approver", "DecideGate", &decide(&gate, GateDecision::Reject)).await;
    let told = refused(outcome, "ALREADY_RESOLVED");
    assert_eq!(told.metadata["via"], "vouched");
    assert!(told.message.contains("a reply vouched by operator@acme"), "{}", told.message);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asked_cannot_pass_on_the_answer() {
    let world = World::start().await;
    world.deploy(PAYMENT).await;
    let (session, _) = payment(&world, "operator", None).await;
    refused(reply(&world, "operator", &session, "approve").await, "SELF_APPROVAL");
    refused(reply(&world, "operator", &session, "reject").await, "SELF_APPROVAL");
    assert_eq!(world.look(&session.name).await.at, ["decide"]);
    assert!(!history(&world, &session).await.contains("reply.recorded"));
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_one_person_passes_on_count_once() {
    let world = World::start().await;
    world.deploy(PAYMENT).await;
    let (session, gate) = payment(&world, "admin", Some(Rule::AtLeast(2))).await;
    let counted = reply(&world, "operator", &session, "approve").await.expect("it counts");
    assert_eq!(counted.standing, "counted");
    refused(reply(&world, "operator", &session, "approve").await, "ALREADY_RESOLVED");
    let outcome: Result<v1::DecideGateResponse, _> =
        world.attempt("operator", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    refused(outcome, "ALREADY_RESOLVED");
    let gate = world.gate_of(&session).await;
    let [vote] = &gate.votes[..] else { panic!("{:?}", gate.votes) };
    let said = [&vote.by, &vote.via, &vote.vouched_by];
    assert_eq!(said, ["operator@acme", "vouched", "operator@acme"]);
    let seen = page(&world, &session, &gate.name, LEAD).await;
    assert!(seen.contains("1 of 2 (a reply vouched by operator@acme)"), "{seen}");
    let _: v1::DecideGateResponse =
        world.ask("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    assert_eq!(world.look(&session.name).await.at, ["pay"]);
    let told = history(&world, &session).await;
    let vote = told.lines().find(|line| line.starts_with("approval.voted")).expect("a vote");
    assert!(vote.contains("via=vouched vouched_by=operator@acme"), "{vote}");
    world.node.end().await;
}

/// A call with a limit is counted when a reply that is passed on approves it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_granted_by_a_reply_that_is_passed_on() {
    let world = World::start().await;
    let audience = vec!["lead@example.com".to_owned()];
    let directory = Some(v1::Directory { audience, ..Default::default() });
    let put = v1::PutDirectoryRequest { directory, ..Default::default() };
    let _: v1::PutDirectoryResponse = world.ask("admin", "PutDirectory", &put).await;
    let session = world.session().await;
    world.authorize(&session.name, "mcp:filesystem:write_file").await;
    let decided = reply(&world, "operator", &session, "approve").await.expect("it decides");
    assert_eq!(decided.standing, "decided");
    let allowed = world.authorize(&session.name, "mcp:filesystem:write_file").await;
    assert_eq!(allowed.decision(), v1::ToolDecision::Allow);
    world.node.end().await;
}
