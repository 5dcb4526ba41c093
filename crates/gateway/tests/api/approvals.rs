//! Approvals of conversation workflows: the recipients are shown, and only they decide, here or by mail.

use switchward_api::v1::{self, GateDecision, quorum::Rule};
use switchward_expr::own_text;
use switchward_gateway::mail::Outcome;
use switchward_machine::{Digest, OpenId, SessionId, TenantId};
use switchward_state::approval::{MailToken, RecordReply, ReplyOutcome, TokenUse};
use switchward_state::{Key, Row, View as _};
use switchward_testkit::until;

use crate::decision_page::{get, text};
use crate::harness::Harness;
use crate::refusal::refused;

const HOUR_MS: u64 = 3_600_000;

const REFUND: &str = r#"{
  "name": "refund",
  "states": [
    {
      "name": "decide",
      "type": "approval",
      "approvers": ["approver@acme", "lead@example.com"],
      "request_template": { "subject_template": "Refund?", "body_template": "It is {{ gathered_data.amount }}." },
      "escalation": { "timeout_hours": 4, "escalation_contacts": ["operator@acme"], "max_escalations": 1 }
    },
    { "name": "pay", "type": "conversation" },
    { "name": "keep", "type": "conversation" },
    { "name": "talk", "type": "conversation" },
    { "name": "lapsed", "type": "conversation" }
  ],
  "transitions": [
    { "from": "decide", "port": "approved", "to": "pay" },
    { "from": "decide", "port": "rejected", "to": "keep" },
    { "from": "decide", "port": "discussion", "to": "talk" },
    { "from": "decide", "port": "timeout", "to": "lapsed" }
  ]
}"#;

/// A workflow whose approval leads to `pay` if it is approved, and to `keep` if not.
pub(crate) fn approval_workflow(name: &str, approvers: &[&str], subject: &str, body: &str) -> String {
    serde_json::json!({
        "name": name,
        "states": [
            {
                "name": "decide",
                "type": "approval",
                "approvers": approvers,
                "request_template": { "subject_template": subject, "body_template": body },
            },
            { "name": "pay", "type": "conversation" },
            { "name": "keep", "type": "conversation" },
        ],
        "transitions": [
            { "from": "decide", "port": "approved", "to": "pay" },
            { "from": "decide", "port": "rejected", "to": "keep" },
        ],
    })
    .to_string()
}

impl Harness {
    /// A session that waits for an approval.
    async fn refund(&self) -> v1::Session {
        self.deploy(REFUND).await;
        self.refund_with(None).await
    }

    /// The same, with this many approvals required.
    async fn refund_with(&self, rule: Option<Rule>) -> v1::Session {
        let quorum = rule.map(|rule| v1::Quorum { rule: Some(rule) });
        let request = v1::StartSessionRequest { definition: "refund".into(), ..Default::default() };
        let role = if quorum.is_some() { "admin" } else { "agent" };
        let request = v1::StartSessionRequest { quorum, ..request };
        let reply: v1::StartSessionResponse = self.ask(role, "StartSession", &request).await;
        reply.session.expect("a session")
    }

    pub(crate) async fn gate_of(&self, session: &v1::Session) -> v1::Gate {
        let name = session.waiting_on.first().expect("an open gate").name.clone();
        let reply: v1::GetGateResponse =
            self.ask("agent", "GetGate", &v1::GetGateRequest { name, ..Default::default() }).await;
        reply.gate.expect("a gate")
    }
}

pub(crate) fn decide(gate: &v1::Gate, decision: GateDecision) -> v1::DecideGateRequest {
    let args_digest = Some(gate.args_digest.clone());
    v1::DecideGateRequest {
        name: gate.name.clone(),
        decision: decision.into(),
        args_digest,
        ..Default::default()
    }
}

pub(crate) fn mail(session: &v1::Session, from: &str, text: &str) -> v1::RecordReplyRequest {
    v1::RecordReplyRequest {
        name: session.name.clone(),
        from: from.into(),
        text: text.into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_shows_who_is_asked_what_and_they_alone_decide() {
    let harness = Harness::start().await;
    let session = harness.refund().await;
    assert_eq!(session.waiting_on[0].approvers, ["approver@acme", "lead@example.com"]);
    let gate = harness.gate_of(&session).await;
    assert_eq!((gate.kind(), gate.status()), (v1::GateKind::Approval, v1::GateStatus::Open));
    assert_eq!((gate.subject.as_str(), gate.text.as_str()), ("Refund?", "It is ."));
    assert_eq!((gate.message.as_str(), gate.args_digest.len()), ("refund: Refund?", 64));
    let opened = gate.create_time.expect("a time");
    let four_hours = i64::try_from(4 * HOUR_MS / 1_000).expect("small");
    assert_eq!(gate.round_end_time.expect("a round").seconds - opened.seconds, four_hours);
    let request = v1::ListGatesRequest { filter: "kind=\"approval\"".into(), ..Default::default() };
    let listed: v1::ListGatesResponse = harness.ask("agent", "ListGates", &request).await;
    assert_eq!(listed.gates, std::slice::from_ref(&gate));

    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("operator", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    refused(outcome, "NOT_AN_APPROVER");
    let other =
        v1::DecideGateRequest { args_digest: Some("0".repeat(64)), ..decide(&gate, GateDecision::Approve) };
    let outcome: Result<v1::DecideGateResponse, _> = harness.attempt("approver", "DecideGate", &other).await;
    refused(outcome, "STATE_MISMATCH");

    harness.node.clock.advance(4 * HOUR_MS);
    let escalated = async || harness.gate_of(&session).await.approvers.len() >= 3;
    until("the gate is escalated", escalated).await;
    let reply: v1::DecideGateResponse =
        harness.ask("operator", "DecideGate", &decide(&gate, GateDecision::Reject)).await;
    let decided = reply.gate.expect("a gate");
    assert_eq!((decided.status(), &decided.round_end_time), (v1::GateStatus::Decided, &None));
    assert_eq!(decided.resolution.expect("a decision").via, "rpc");
    assert_eq!(harness.look(&session.name).await.at, ["keep"]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_by_mail_decides_and_says_that_it_was_one() {
    let harness = Harness::start().await;
    let session = harness.refund().await;
    let gate = harness.gate_of(&session).await;
    let eve: v1::RecordReplyResponse =
        harness.ask("operator", "RecordReply", &mail(&session, "eve@example.com", "yes")).await;
    assert_eq!(eve.session.expect("a session").waiting_on.len(), 1);
    let unproved = by_mail(&harness, &session, &gate.name, ("lead@example.com", "yes"), false).await;
    assert_eq!(unproved, Outcome::Recorded(ReplyOutcome::Unproved));
    let decided = by_mail(&harness, &session, &gate.name, ("lead@example.com", "yes\nfor Sam"), true).await;
    assert_eq!(decided, Outcome::Recorded(ReplyOutcome::Decided));
    assert_eq!(harness.look(&session.name).await.at, ["pay"]);
    let shown: v1::GetGateResponse = harness
        .ask("agent", "GetGate", &v1::GetGateRequest { name: gate.name.clone(), ..Default::default() })
        .await;
    let resolution = shown.gate.expect("a gate").resolution.expect("a decision");
    assert_eq!(
        (resolution.by.as_str(), resolution.comment.as_str(), resolution.via.as_str()),
        ("lead@example.com", "for Sam", "email")
    );
    assert_eq!(resolution.vouched_by, "");
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("approver", "DecideGate", &decide(&gate, GateDecision::Reject)).await;
    assert_eq!(refused(outcome, "ALREADY_RESOLVED").metadata["via"], "email");
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("operator", "DecideGate", &decide(&gate, GateDecision::Reject)).await;
    refused(outcome, "NOT_AN_APPROVER");

    let session = harness.refund().await;
    let gate = harness.gate_of(&session).await;
    let discuss =
        v1::DecideGateRequest { comment: "Which one?".into(), ..decide(&gate, GateDecision::Discuss) };
    let reply: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &discuss).await;
    let resolution = reply.gate.expect("a gate").resolution.expect("a decision");
    assert_eq!(resolution.decision(), GateDecision::Discuss);
    assert_eq!(harness.look(&session.name).await.at, ["talk"]);

    let session = harness.refund().await;
    let gate = harness.gate_of(&session).await;
    for from in ["", "lead@example.com\nbcc: all"] {
        let outcome: Result<v1::RecordReplyResponse, _> =
            harness.attempt("operator", "RecordReply", &mail(&session, from, "yes")).await;
        refused(outcome, "FIELD_INVALID");
    }
    harness.node.clock.advance(8 * HOUR_MS);
    let lapsed = async || {
        let lapsed = harness.look(&session.name).await.at == ["lapsed"];
        if !lapsed {
            // Each round falls due after the previous one is over.
            harness.node.clock.advance(HOUR_MS);
        }
        lapsed
    };
    until("the gate lapses", lapsed).await;
    let shown: v1::GetGateResponse = harness
        .ask("agent", "GetGate", &v1::GetGateRequest { name: gate.name.clone(), ..Default::default() })
        .await;
    assert_eq!(shown.gate.expect("a gate").status(), v1::GateStatus::Lapsed);
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    assert_eq!(refused(outcome, "ALREADY_RESOLVED").metadata["decision"], "timeout");
    harness.node.end().await;
}

/// The request by mail to this person, and its outcome.
async fn request_to(harness: &Harness, session: &v1::Session, person: &str) -> v1::Effect {
    let filter = format!("session=\"{}\"", session.name);
    let list = v1::ListEffectsRequest { filter, ..Default::default() };
    let listed: v1::ListEffectsResponse = harness.ask("agent", "ListEffects", &list).await;
    listed.effects.into_iter().find(|effect| effect.to == person).expect("the effect is pending")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whom_no_mail_reaches_stands_at_the_gate_until_it_is_sent_again() {
    let harness = Harness::start().await;
    let session = harness.refund().await;
    assert_eq!(harness.gate_of(&session).await.undeliverable, [""; 0]);
    let name = request_to(&harness, &session, "lead@example.com").await.name;
    let fail =
        v1::FailEffectRequest { name: name.clone(), code: "mail_rejected".into(), ..Default::default() };
    let _: v1::FailEffectResponse = harness.ask("operator", "FailEffect", &fail).await;
    let gate = harness.gate_of(&session).await;
    assert_eq!((gate.undeliverable.join(" "), gate.approvers.len()), ("lead@example.com".to_owned(), 2));
    let _: v1::RetryEffectResponse =
        harness.ask("operator", "RetryEffect", &v1::RetryEffectRequest { name, ..Default::default() }).await;
    assert_eq!(harness.gate_of(&session).await.undeliverable, [""; 0]);
    harness.node.end().await;
}

/// A person's token for a gate and a way in.
async fn token(
    harness: &Harness,
    session: &v1::Session,
    gate: &str,
    usage: TokenUse,
    person: &str,
) -> MailToken {
    let id: SessionId = session.name.rsplit('/').next().expect("a part").parse().expect("an id");
    let number = gate.rsplit('_').next().expect("a part").parse().expect("a number");
    let row = harness.node.cluster.shard_of(id.bucket()).read().await.expect("a shard");
    let row = row.row(&Key::tenancy(TenantId(1))).expect("rows").expect("the shard knows the tenant");
    let Row::Tenancy(tenancy) = &*row else { panic!("{row:?}") };
    tenancy.mail_keys(&harness.node.cluster.ring(), TenantId(1))[0].token(
        usage,
        TenantId(1),
        id,
        OpenId(number),
        0,
        person,
    )
}

/// The decision page of a recipient of the gate.
pub(crate) async fn page(harness: &Harness, session: &v1::Session, gate: &str, person: &str) -> String {
    let token = token(harness, session, gate, TokenUse::Page, person).await;
    text(&harness.node.line.send(get(&format!("/a/{token}"))).await)
}

/// Ingests a mail from a recipient.
pub(crate) async fn by_mail(
    harness: &Harness,
    session: &v1::Session,
    gate: &str,
    (person, text): (&str, &str),
    authenticated: bool,
) -> Outcome {
    let token = token(harness, session, gate, TokenUse::Reply, person).await;
    let digest = Digest::of_parts(&[person.as_bytes(), text.as_bytes(), &[u8::from(authenticated)]]);
    let reply = RecordReply {
        token: Some(token),
        from: person.to_owned(),
        subject: "Re: it".to_owned(),
        text: own_text(text),
        authenticated,
        signed: authenticated,
        pages_only: false,
        brought_by: None,
        vouched: false,
        model: false,
        evidence: None,
        limits: None,
    };
    harness.node.api.record_mail(reply, digest).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_must_approve_where_the_start_says_so_and_everybody_sees_how_many_have() {
    let harness = Harness::start().await;
    harness.deploy(REFUND).await;
    let session = harness.refund_with(Some(Rule::All(true))).await;
    let gate = harness.gate_of(&session).await;
    assert_eq!((gate.approvals_needed, gate.votes.len()), (2, 0));
    let shown = page(&harness, &session, &gate.name, "lead@example.com").await;
    assert!(
        shown.contains("0 of 2") && shown.contains("2 of the 2 people asked must approve, each once."),
        "{shown}"
    );
    let reply: v1::DecideGateResponse =
        harness.ask("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    let gate = reply.gate.expect("a gate");
    assert_eq!((gate.status(), gate.approvals_needed), (v1::GateStatus::Open, 2));
    let votes: Vec<_> = gate.votes.iter().map(|vote| (vote.by.as_str(), vote.via.as_str())).collect();
    assert_eq!(votes, [("approver@acme", "rpc")]);
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    assert_eq!(refused(outcome, "ALREADY_RESOLVED").metadata["by"], "approver@acme");
    let shown = page(&harness, &session, &gate.name, "lead@example.com").await;
    assert!(shown.contains("1 of 2 (approver@acme)"), "{shown}");
    // The request has a digest, as arguments do.
    assert!(shown.contains(&gate.args_digest), "{shown}");
    let hers = page(&harness, &session, &gate.name, "approver@acme").await;
    assert!(hers.contains("approved at") && hers.contains("More approvals are needed."), "{hers}");
    assert!(!hers.contains("value=\"approve\"") && hers.contains("value=\"reject\""), "{hers}");
    let decided = by_mail(&harness, &session, &gate.name, ("lead@example.com", "yes"), true).await;
    assert_eq!(decided, Outcome::Recorded(ReplyOutcome::Decided));
    assert_eq!(harness.look(&session.name).await.at, ["pay"]);
    let shown = page(&harness, &session, &gate.name, "lead@example.com").await;
    assert!(shown.contains("Approved by approver@acme, lead@example.com."), "{shown}");
    harness.node.end().await;
}

/// A gate of a tool call addresses nobody in particular: the vote of anyone who may decide counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_asked_about_shows_how_many_have_approved_it() {
    let harness = Harness::start().await;
    let quorum = Some(v1::Quorum { rule: Some(Rule::AtLeast(2)) });
    let start = v1::StartSessionRequest { definition: "release".into(), quorum, ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("admin", "StartSession", &start).await;
    let session = reply.session.expect("a session");
    harness.authorize(&session.name, "mcp:filesystem:write_file").await;
    let gate = harness.gate_of(&harness.look(&session.name).await).await;
    assert_eq!((gate.kind(), gate.approvals_needed), (v1::GateKind::ToolAsk, 2));
    let counted =
        |gate: &v1::Gate| gate.votes.iter().map(|vote| vote.by.clone()).collect::<Vec<_>>().join(" ");
    for (person, status, votes) in [
        ("approver", v1::GateStatus::Open, "approver@acme"),
        ("operator", v1::GateStatus::Decided, "approver@acme operator@acme"),
    ] {
        let reply: v1::DecideGateResponse =
            harness.ask(person, "DecideGate", &decide(&gate, GateDecision::Approve)).await;
        let gate = reply.gate.expect("a gate");
        assert_eq!((gate.status(), counted(&gate).as_str()), (status, votes), "{person}");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quorum_that_cannot_be_is_refused_where_it_stands() {
    let harness = Harness::start().await;
    harness.deploy(REFUND).await;
    let bad = [
        (Rule::Any(false), "quorum.any"),
        (Rule::All(false), "quorum.all"),
        (Rule::AtLeast(0), "quorum"),
        (Rule::AtLeast(4), "quorum"),
        (Rule::AtLeast(1_001), "quorum"),
    ];
    for (rule, field) in bad {
        let quorum = Some(v1::Quorum { rule: Some(rule) });
        let request = v1::StartSessionRequest { definition: "refund".into(), quorum, ..Default::default() };
        let outcome: Result<v1::StartSessionResponse, _> =
            harness.attempt("admin", "StartSession", &request).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, [field]);
    }
    let session = harness.refund_with(Some(Rule::Any(true))).await;
    assert_eq!(harness.gate_of(&session).await.approvals_needed, 0);
    harness.node.end().await;
}
