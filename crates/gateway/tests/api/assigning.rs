//! A gate is handed to somebody else, by a call and on its page; who had it before decides no more.

use http::StatusCode;
use switchward_api::v1::{self, GateDecision};
use switchward_state::approval::TokenUse;

use crate::approvals::{approval_workflow, decide};
use crate::decision_page::{form_of, get, hidden, text};
use crate::harness::Harness;
use crate::mailing::{DANA, KIM, NotifiedGate};
use crate::refusal::refused;
use crate::rpcs::directory::of;

const SAM: &str = "sam@acme.example";

fn to(gate: &v1::Gate, person: &str) -> v1::AssignGateRequest {
    v1::AssignGateRequest {
        name: gate.name.clone(),
        to: person.into(),
        args_digest: Some(gate.args_digest.clone()),
        ..Default::default()
    }
}

fn of_part(gate: &v1::Gate, from: &str, person: &str) -> v1::AssignGateRequest {
    v1::AssignGateRequest { from: Some(from.into()), ..to(gate, person) }
}

impl Harness {
    /// Tries to hand a gate over; returns it, or what is refused.
    async fn assign(&self, role: &str, request: &v1::AssignGateRequest) -> Result<v1::Gate, tonic::Status> {
        let reply = self.attempt::<v1::AssignGateResponse>(role, "AssignGate", request).await?;
        Ok(reply.gate.expect("a gate"))
    }

    /// The oldest comment at a gate.
    async fn comment_at(&self, gate: &v1::Gate) -> String {
        let get = v1::GetGateRequest { name: gate.name.clone(), ..Default::default() };
        let shown: v1::GetGateResponse = self.ask("agent", "GetGate", &get).await;
        shown.gate.expect("a gate").comments[0].comment.clone()
    }

    /// The open approval of a new session of `buy`, with this quorum.
    async fn purchase(&self, all: bool) -> v1::Gate {
        let people =
            [("dana", DANA), ("kim", KIM), ("sam", SAM), ("agents", "agent@acme"), ("boss", "approver@acme")];
        let _: v1::PutDirectoryResponse = self.ask("admin", "PutDirectory", &of(&people)).await;
        let approvers = ["approver@acme", "lead@example.com"];
        self.deploy(&approval_workflow("buy", &approvers, "Buy?", "May we?")).await;
        let quorum = all.then_some(v1::Quorum { rule: Some(v1::quorum::Rule::All(true)) });
        let request = v1::StartSessionRequest { definition: "buy".into(), quorum, ..Default::default() };
        // Only then may a start say how many must approve.
        let role = if all { "admin" } else { "agent" };
        let reply: v1::StartSessionResponse = self.ask(role, "StartSession", &request).await;
        self.gate_of(&reply.session.expect("a session")).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_hands_over_their_own_part_and_decides_no_more() {
    let harness = Harness::start().await;
    let gate = harness.purchase(false).await;
    refused(harness.assign("agent", &to(&gate, "kim")).await, "ROLE_NOT_ALLOWED");
    refused(harness.assign("approver", &of_part(&gate, "lead@example.com", "kim")).await, "NOT_AN_APPROVER");
    for nobody in ["eve", "eve@example.com", ""] {
        let refusal = refused(harness.assign("approver", &to(&gate, nobody)).await, "FIELD_INVALID");
        assert_eq!(refusal.fields, ["to"], "{nobody:?}");
    }
    refused(harness.assign("approver", &to(&gate, "agents")).await, "SELF_APPROVAL");
    let other = v1::AssignGateRequest { args_digest: Some("0".repeat(64)), ..to(&gate, "kim") };
    refused(harness.assign("approver", &other).await, "STATE_MISMATCH");
    let comment = "Kim knows more.".to_owned();
    let now = harness.assign("approver", &v1::AssignGateRequest { comment, ..to(&gate, "kim") }).await;
    let now = now.expect("it is handed over");
    assert_eq!(
        (now.status(), now.approvers),
        (v1::GateStatus::Open, vec![KIM.into(), "lead@example.com".into()])
    );
    assert_eq!(harness.comment_at(&gate).await, "Kim knows more.");
    let outcome = harness.attempt("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    refused::<v1::DecideGateResponse>(outcome, "NOT_AN_APPROVER");
    refused(harness.assign("approver", &to(&gate, "sam")).await, "NOT_AN_APPROVER");
    // An operator hands over all of it.
    let now = harness.assign("operator", &to(&gate, DANA)).await.expect("it is handed over");
    assert_eq!(now.approvers, [DANA]);
    refused(harness.assign("operator", &to(&gate, "dana")).await, "FIELD_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_neither_assigns_nor_receives_and_a_quorum_counts_each_person_once() {
    let harness = Harness::start().await;
    let gate = harness.purchase(true).await;
    // An admin has asked.
    refused(harness.assign("admin", &of_part(&gate, "lead@example.com", "kim")).await, "SELF_APPROVAL");
    // The whole of it would be one person's.
    let refusal = refused(harness.assign("operator", &to(&gate, "kim")).await, "FIELD_INVALID");
    assert_eq!(refusal.fields, ["from"]);
    let approver = of_part(&gate, "lead@example.com", "approver@acme");
    refused(harness.assign("operator", &approver).await, "FIELD_INVALID");
    let now = harness.assign("operator", &of_part(&gate, "lead@example.com", "kim")).await;
    let now = now.expect("it is handed over");
    assert_eq!((now.approvers, now.approvals_needed), (vec!["approver@acme".into(), KIM.into()], 2));
    let _: v1::DecideGateResponse =
        harness.ask("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    // A part that has approved stays, and its person gets no other one.
    refused(harness.assign("approver", &to(&gate, "sam")).await, "ALREADY_RESOLVED");
    refused(harness.assign("operator", &of_part(&gate, "kim", "approver@acme")).await, "FIELD_INVALID");
    // Only one part is left.
    let now = harness.assign("operator", &to(&gate, "sam")).await.expect("it is handed over");
    assert_eq!((now.approvers, now.approvals_needed), (vec!["approver@acme".into(), SAM.into()], 2));
    harness.node.end().await;
}

/// A person's page, by the number of the request that they were sent.
fn page_of(asked: &NotifiedGate, person: &str, request: u32) -> String {
    format!("/a/{}", asked.token_of(TokenUse::Page, person, request))
}

async fn send(harness: &Harness, path: &str, words: &str) -> (StatusCode, String) {
    let page = text(&harness.node.line.send(get(path)).await);
    let answer = harness.node.line.send(form_of(path, &format!("{words}{}", hidden(&page)))).await;
    (answer.status, text(&answer))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_hands_its_request_over_and_its_link_is_void_then() {
    let harness = Harness::start().await;
    let asked = harness.asked().await;
    let people =
        [("agents", "agent@acme"), ("dana", DANA), ("kim", KIM), ("owner:release", KIM), ("sam", SAM)];
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &of(&people)).await;
    let (kims, sams) = (page_of(&asked, KIM, 0), page_of(&asked, SAM, 1));
    let page = text(&harness.node.line.send(get(&kims)).await);
    assert!(page.contains("Hand over to"), "{page}");
    let (status, page) = send(&harness, &kims, "decision=assign&to=").await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{page}");
    // The first name is unknown; the second is the requester.
    for nobody in ["eve", "agents"] {
        let (status, page) = send(&harness, &kims, &format!("decision=assign&to={nobody}")).await;
        assert!(!status.is_success() && page.contains("Nothing was recorded."), "{nobody}: {page}");
    }
    let form = |to: &str| format!("decision=assign&to={to}&shown={}&form=", asked.gate.args_digest);
    let unnamed = form_of(&kims, &form("sam"));
    assert_eq!(harness.node.line.send(unnamed).await.status, StatusCode::BAD_REQUEST);
    let (status, page) = send(&harness, &kims, "decision=assign&to=sam&comment=yours").await;
    assert!(status == StatusCode::OK && page.contains("You have handed the request over."), "{page}");
    assert_eq!(harness.node.line.send(get(&kims)).await.status, StatusCode::NOT_FOUND);
    let approve = format!("decision=approve&shown={}&form={}", asked.gate.args_digest, "0".repeat(32));
    assert_eq!(harness.node.line.send(form_of(&kims, &approve)).await.status, StatusCode::NOT_FOUND);
    assert!(text(&harness.node.line.send(get(&sams)).await).contains("yours"));
    // What Kim was sent first stays void when the part comes back.
    let (status, page) = send(&harness, &sams, "decision=assign&to=kim").await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let page = text(&harness.node.line.send(get(&kims)).await);
    assert!(page.contains("newer mail") && !page.contains("Hand over to"), "{page}");
    let old = harness.node.line.send(form_of(&kims, &approve)).await;
    assert!(!old.status.is_success() && old.status != StatusCode::SEE_OTHER, "{}", text(&old));
    let (status, page) = send(&harness, &page_of(&asked, KIM, 2), "decision=approve").await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{page}");
    harness.node.end().await;
}
