//! Gates and tool calls: who may decide, how the first decision is reported, and whether explanations are right.

use std::collections::BTreeMap;
use switchward_api::v1::{self, GateDecision, ToolDecision};
use switchward_state::limits::GRANT_KEPT_MS;

use crate::harness::{Harness, tool_call};
use crate::node::Node;
use crate::refusal::{Refusal, refused};
use crate::servers::insist;

const HOUR_MS: u64 = 3_600_000;

fn decide(gate: &str, decision: GateDecision) -> v1::DecideGateRequest {
    v1::DecideGateRequest {
        name: gate.to_owned(),
        decision: decision.into(),
        ..v1::DecideGateRequest::default()
    }
}

/// Creates a key of acme's; returns its secret.
pub(crate) async fn key(harness: &Harness, role: v1::KeyRole, subject: &str) -> String {
    let create = v1::CreateApiKeyRequest {
        role: role.into(),
        subject: subject.to_owned(),
        ..v1::CreateApiKeyRequest::default()
    };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
    made.secret
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_cannot_decide() {
    let harness = Harness::start().await;
    let line = &harness.node.line;
    let asks = key(&harness, v1::KeyRole::Operator, "kim").await;
    let twins =
        [key(&harness, v1::KeyRole::Approver, "kim").await, key(&harness, v1::KeyRole::Admin, "kim").await];
    let review = |name: &str| v1::AnswerCheckpointRequest {
        name: name.to_owned(),
        answer: "review".into(),
        ..v1::AnswerCheckpointRequest::default()
    };
    let session = harness.session().await;
    let call = tool_call(&session.name, "mcp:filesystem:write_file");
    let asked: v1::AuthorizeToolCallResponse =
        line.ask(&asks, "AuthorizeToolCall", &call).await.expect("an ask");
    let other = harness.session().await;
    let held: v1::AnswerCheckpointResponse =
        line.ask(&asks, "AnswerCheckpoint", &review(&other.name)).await.expect("a review");
    let held = held.session.expect("a session").waiting_on[0].name.clone();
    for gate in [&asked.gate, &held] {
        let get = v1::GetGateRequest { name: gate.clone(), ..Default::default() };
        let shown: v1::GetGateResponse = harness.ask("agent", "GetGate", &get).await;
        assert_eq!(shown.gate.expect("a gate").requested_by, "kim");
        for secret in [&asks, &twins[0], &twins[1]] {
            for decision in [GateDecision::Approve, GateDecision::Reject] {
                let before = harness.node.state().await;
                let outcome: Result<v1::DecideGateResponse, _> =
                    line.ask(secret, "DecideGate", &decide(gate, decision)).await;
                refused(outcome, "SELF_APPROVAL");
                assert_eq!(harness.node.state().await, before);
            }
        }
        let decided: v1::DecideGateResponse =
            harness.ask("operator", "DecideGate", &decide(gate, GateDecision::Approve)).await;
        let resolution = decided.gate.expect("a gate").resolution.expect("a resolution");
        assert_eq!(resolution.by, "operator@acme");
    }
    harness.node.end().await;
}

/// A key whose subject is another spelling of the same mailbox is not a second person.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asked_cannot_decide_by_another_spelling() {
    let harness = Harness::start().await;
    let line = &harness.node.line;
    let asks = key(&harness, v1::KeyRole::Operator, "kim@acme.example").await;
    let session = harness.session().await;
    let call = tool_call(&session.name, "mcp:filesystem:write_file");
    let asked: v1::AuthorizeToolCallResponse =
        line.ask(&asks, "AuthorizeToolCall", &call).await.expect("an ask");
    for other in ["kim+lead@acme.example", "Kim@ACME.example"] {
        let twin = key(&harness, v1::KeyRole::Approver, other).await;
        let outcome: Result<v1::DecideGateResponse, _> =
            line.ask(&twin, "DecideGate", &decide(&asked.gate, GateDecision::Approve)).await;
        refused(outcome, "SELF_APPROVAL");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_decider_learns_of_the_first_decision() {
    let harness = Harness::start().await;
    let gate = harness.gate().await;
    let first = v1::DecideGateRequest {
        comment: "looked at \u{201e}it\u{201c} twice".into(),
        request_id: "mine".into(),
        ..decide(&gate, GateDecision::Reject)
    };
    let reply: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &first).await;
    harness.node.clock.advance(HOUR_MS);
    for decision in [GateDecision::Approve, GateDecision::Reject] {
        let outcome: Result<v1::DecideGateResponse, _> =
            harness.attempt("operator", "DecideGate", &decide(&gate, decision)).await;
        let metadata = refused(outcome, "ALREADY_RESOLVED").metadata;
        let wanted = BTreeMap::from([
            ("decision", "reject"),
            ("by", "approver@acme"),
            ("time", "2026-06-21T00:00:00Z"),
            ("comment", "looked at \u{201e}it\u{201c} twice"),
            ("via", "rpc"),
        ]);
        assert_eq!(metadata, wanted.into_iter().map(|(name, value)| (name.into(), value.into())).collect());
    }
    let again: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &first).await;
    assert_eq!(again, reply, "the decider may repeat the request");

    let session = harness.session().await;
    let gate = harness.authorize(&session.name, "mcp:filesystem:write_file").await.gate;
    harness.answer(&session.name, "go").await;
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("operator", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    let metadata = refused(outcome, "ALREADY_RESOLVED").metadata;
    assert_eq!(metadata["decision"], "voided", "{metadata:?}");
    let shown: v1::GetGateResponse =
        harness.ask("agent", "GetGate", &v1::GetGateRequest { name: gate, ..Default::default() }).await;
    assert_eq!(shown.gate.expect("a gate").status(), v1::GateStatus::Void);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_discussion_is_recorded_and_decides_nothing() {
    let harness = Harness::start().await;
    let gate = harness.gate().await;
    let discuss = |comment: &str| v1::DecideGateRequest {
        comment: comment.to_owned(),
        ..decide(&gate, GateDecision::Discuss)
    };
    for nothing in ["", " \n"] {
        let outcome: Result<v1::DecideGateResponse, _> =
            harness.attempt("approver", "DecideGate", &discuss(nothing)).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["comment"]);
    }
    let other = v1::DecideGateRequest { args_digest: Some("0".repeat(64)), ..discuss("why now?") };
    let outcome: Result<v1::DecideGateResponse, _> = harness.attempt("approver", "DecideGate", &other).await;
    refused(outcome, "STATE_MISMATCH");
    let reply: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &discuss("why now?")).await;
    let shown = reply.gate.expect("a gate");
    assert_eq!((shown.status(), &shown.resolution, &shown.end_time), (v1::GateStatus::Open, &None, &None));
    let look = harness.look(&shown.session).await;
    assert_eq!((look.sequence, look.waiting_on.len()), (reply.sequence, 1));
    let list = v1::ListSessionEventsRequest { name: shown.session, ..Default::default() };
    let events: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &list).await;
    let event = events.events.last().expect("an event");
    assert_eq!((event.r#type.as_str(), event.by.as_str()), ("approval.discussed", "approver@acme"));
    assert!(event.message.ends_with("by=approver@acme comment=why now?"), "{event:?}");
    let _: v1::DecideGateResponse =
        harness.ask("operator", "DecideGate", &decide(&gate, GateDecision::Reject)).await;
    let outcome: Result<v1::DecideGateResponse, _> =
        harness.attempt("approver", "DecideGate", &discuss("too late")).await;
    assert_eq!(refused(outcome, "ALREADY_RESOLVED").metadata["decision"], "reject");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_about_what_was_shown() {
    let harness = Harness::start().await;
    let session = harness.session().await;
    let call = v1::AuthorizeToolCallRequest {
        args: br#"{"path": "/b", "mode": 1}"#.to_vec().into(),
        ..tool_call(&session.name, "mcp:filesystem:write_file")
    };
    let asked: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &call).await;
    let get = v1::GetGateRequest { name: asked.gate.clone(), ..Default::default() };
    let shown: v1::GetGateResponse = harness.ask("approver", "GetGate", &get).await;
    let shown = shown.gate.expect("a gate");
    assert_eq!(shown.args, br#"{"mode":1,"path":"/b"}"#.as_slice());
    for (digest, reason) in [("0".repeat(64), "STATE_MISMATCH"), ("no digest".into(), "FIELD_INVALID")] {
        let request =
            v1::DecideGateRequest { args_digest: Some(digest), ..decide(&asked.gate, GateDecision::Approve) };
        refused(harness.attempt::<v1::DecideGateResponse>("approver", "DecideGate", &request).await, reason);
    }
    let request = v1::DecideGateRequest {
        args_digest: Some(shown.args_digest),
        ..decide(&asked.gate, GateDecision::Approve)
    };
    let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &request).await;
    let other = v1::AuthorizeToolCallRequest { args: br#"{"path":"/c"}"#.to_vec().into(), ..call.clone() };
    let replies: Vec<v1::AuthorizeToolCallResponse> = vec![
        harness.ask("agent", "AuthorizeToolCall", &other).await,
        harness.ask("agent", "AuthorizeToolCall", &call).await,
        harness.ask("agent", "AuthorizeToolCall", &call).await,
    ];
    let outcomes: Vec<_> = replies.iter().map(|reply| (reply.decision(), reply.grant_used)).collect();
    let wanted = [(ToolDecision::Ask, false), (ToolDecision::Allow, true), (ToolDecision::Ask, false)];
    assert_eq!(outcomes, wanted);
    harness.node.end().await;
}

/// A process that can lead to every kind of decision.
const LIMITED: &str = r#"{
  "name": "limited",
  "initial": "work",
  "session_budget_usd": 3,
  "states": {
    "work": { "question": "Done?", "answers": {
      "yes": { "next": null }, "review": { "next": null, "action": "notify_human" } } }
  },
  "policy": {
    "role": "agent",
    "allow": [
      { "capability": "bash", "rate_limit": { "max_calls": 2, "window_seconds": 3600 } },
      { "capability": "mcp:web:*", "budget_limit": { "max_usd": 1, "period": "daily" } },
      { "capability": "mcp:free:*" }
    ],
    "ask": [
      { "capability": "mcp:files:*", "rate_limit": { "max_calls": 1, "window_seconds": 3600 } },
      { "capability": "mcp:mail:*" }
    ],
    "deny": [{ "capability": "mcp:shell:*" }]
  }
}"#;

/// The explanation must equal the decision made right after it, and explaining must write nothing.
async fn agree(harness: &Harness, name: &str, capability: &str, cost: Option<&str>) -> ToolDecision {
    let explain = v1::ExplainDecisionRequest {
        session: name.to_owned(),
        capability: capability.to_owned(),
        est_cost_usd: cost.map(str::to_owned),
        ..v1::ExplainDecisionRequest::default()
    };
    let call =
        v1::AuthorizeToolCallRequest { est_cost_usd: cost.map(str::to_owned), ..tool_call(name, capability) };
    let before = harness.node.state().await;
    let explained: Result<v1::ExplainDecisionResponse, _> =
        harness.attempt("agent", "ExplainDecision", &explain).await;
    assert_eq!(harness.node.state().await, before, "explaining {capability} changed the state");
    let decided: Result<v1::AuthorizeToolCallResponse, _> =
        harness.attempt("agent", "AuthorizeToolCall", &call).await;
    let (explained, decided) = match (explained, decided) {
        (Ok(explained), Ok(decided)) => (explained, decided),
        (explained, decided) => {
            let refusal = |status| Refusal::of(&status);
            assert_eq!(explained.map_err(refusal).err(), decided.map_err(refusal).err(), "{capability}");
            return ToolDecision::Unspecified;
        }
    };
    assert_eq!(
        (explained.decision(), &explained.reason, &explained.matched_rule, explained.grant_available),
        (decided.decision(), &decided.reason, &decided.matched_rule, decided.grant_used),
        "{capability} of {cost:?}: {explained:?} {decided:?}"
    );
    assert!(!explained.message.is_empty(), "{explained:?}");
    // A plainly allowed call has no message in its decision.
    let silent = decided.decision() == ToolDecision::Allow && !decided.grant_used;
    assert!(silent || explained.message == decided.message, "{explained:?} {decided:?}");
    harness.node.quiet().await;
    decided.decision()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_explanation_agrees_with_the_decision_and_changes_nothing() {
    let harness = Harness::start().await;
    harness.deploy(LIMITED).await;
    let request = v1::StartSessionRequest { definition: "limited".into(), ..Default::default() };
    let session: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let name = session.session.expect("a session").name;
    let (allow, ask, deny) = (ToolDecision::Allow, ToolDecision::Ask, ToolDecision::Deny);
    for (capability, cost, wanted) in [
        ("bash", None, allow),
        ("bash", None, allow),
        ("bash", None, deny),
        ("mcp:shell:rm", None, deny),
        ("mcp:free:look", None, allow),
        ("mcp:other:look", None, allow),
        ("mcp:web:get", Some("0.6"), allow),
        ("mcp:web:get", Some("0.6"), deny),
        ("mcp:web:get", Some("0.4"), allow),
        ("mcp:web:get", None, deny),
        ("mcp:free:look", Some("9"), deny),
        ("mcp:files:write", None, ask),
        ("mcp:files:write", None, ask),
    ] {
        assert_eq!(agree(&harness, &name, capability, cost).await, wanted, "{capability} of {cost:?}");
    }
    let open = harness.look(&name).await.waiting_on[0].name.clone();
    let _: v1::DecideGateResponse =
        harness.ask("approver", "DecideGate", &decide(&open, GateDecision::Approve)).await;
    harness.node.quiet().await;
    assert_eq!(agree(&harness, &name, "mcp:files:write", None).await, allow, "the approval is used");
    assert_eq!(
        agree(&harness, &name, "mcp:files:write", None).await,
        deny,
        "the approval used up the budget"
    );
    harness.node.clock.advance(HOUR_MS);
    assert_eq!(agree(&harness, &name, "bash", None).await, allow, "an hour later");

    let pause = v1::PauseSessionRequest { name: name.clone(), ..v1::PauseSessionRequest::default() };
    let _: v1::PauseSessionResponse = harness.ask("operator", "PauseSession", &pause).await;
    assert_eq!(agree(&harness, &name, "mcp:free:look", None).await, deny, "paused");
    let resume = v1::ResumeSessionRequest { name: name.clone(), ..v1::ResumeSessionRequest::default() };
    let _: v1::ResumeSessionResponse = harness.ask("operator", "ResumeSession", &resume).await;
    harness.answer(&name, "review").await;
    assert_eq!(agree(&harness, &name, "mcp:free:look", None).await, deny, "under review");
    let cancel = v1::CancelSessionRequest { name: name.clone(), ..v1::CancelSessionRequest::default() };
    let _: v1::CancelSessionResponse = harness.ask("operator", "CancelSession", &cancel).await;
    assert_eq!(
        agree(&harness, &name, "bash", None).await,
        ToolDecision::Unspecified,
        "after the end of the session"
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_explanation_shows_what_is_used() {
    let harness = Harness::start().await;
    harness.deploy(LIMITED).await;
    let request = v1::StartSessionRequest { definition: "limited".into(), ..Default::default() };
    let session: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let name = session.session.expect("a session").name;
    let used = async |capability: &str| {
        let request = v1::ExplainDecisionRequest {
            session: name.clone(),
            capability: capability.to_owned(),
            ..v1::ExplainDecisionRequest::default()
        };
        let explained: v1::ExplainDecisionResponse = harness.ask("agent", "ExplainDecision", &request).await;
        let rule = explained.rules.into_iter().find(|rule| rule.decides).expect("a rule that decides");
        let limit = rule.limits[0].clone();
        (limit.used, limit.max, limit.available, limit.reset_time.is_some())
    };
    assert_eq!(used("bash").await, ("0".into(), "2".into(), true, false));
    assert_eq!(used("mcp:web:get").await, ("0".into(), "1".into(), true, false));
    harness.authorize(&name, "bash").await;
    let call =
        v1::AuthorizeToolCallRequest { est_cost_usd: Some("0.25".into()), ..tool_call(&name, "mcp:web:get") };
    let _: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &call).await;
    assert_eq!(used("bash").await, ("1".into(), "2".into(), true, false));
    assert_eq!(used("mcp:web:get").await, ("0.25".into(), "1".into(), true, false));
    harness.authorize(&name, "bash").await;
    assert_eq!(used("bash").await, ("2".into(), "2".into(), false, true));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_clock_is_behind_explains_by_the_median() {
    let harness = Harness::over(Node::start_three_comparing().await).await;
    harness.deploy(LIMITED).await;
    let request = v1::StartSessionRequest { definition: "limited".into(), ..Default::default() };
    let session: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let name = session.session.expect("a session").name;
    for _ in 0..2 {
        harness.authorize(&name, "bash").await;
    }
    let gate = harness.authorize(&name, "mcp:mail:send").await.gate;
    let _: v1::DecideGateResponse =
        harness.ask("approver", "DecideGate", &decide(&gate, GateDecision::Approve)).await;
    harness.node.quiet().await;
    let explained = async |capability: &str| {
        let request = v1::ExplainDecisionRequest {
            session: name.clone(),
            capability: capability.to_owned(),
            ..v1::ExplainDecisionRequest::default()
        };
        let explained: v1::ExplainDecisionResponse = insist(&harness, 2, "ExplainDecision", &request).await;
        explained.decision()
    };
    assert_eq!(explained("bash").await, ToolDecision::Deny, "the limit is reached");
    assert_eq!(explained("mcp:mail:send").await, ToolDecision::Allow, "an approval is at hand");
    harness.node.set_third_behind(GRANT_KEPT_MS).await;
    assert_eq!(explained("bash").await, ToolDecision::Allow, "the limit counts other calls by now");
    assert_eq!(explained("mcp:mail:send").await, ToolDecision::Ask, "the approval has expired");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_reported_once() {
    let harness = Harness::start().await;
    let name = harness.session().await.name;
    let call_id = harness.authorize(&name, "mcp:web:get").await.call_id;
    let report = v1::ReportToolUsageRequest {
        session: name.clone(),
        call_id,
        cost_usd: Some("0.0000001".into()),
        ..v1::ReportToolUsageRequest::default()
    };
    let reply: v1::ReportToolUsageResponse = harness.ask("agent", "ReportToolUsage", &report).await;
    assert_eq!(reply.budget.expect("a budget").used_usd, "0.000001", "rounded up to a micro");
    let before = harness.node.state().await;
    for capability in ["", "mcp:web:get"] {
        let again = v1::ReportToolUsageRequest { capability: capability.into(), ..report.clone() };
        let outcome: Result<v1::ReportToolUsageResponse, _> =
            harness.attempt("agent", "ReportToolUsage", &again).await;
        assert_eq!(refused(outcome, "ALREADY_RESOLVED").metadata["call_id"], report.call_id);
        assert_eq!(harness.node.state().await, before);
    }
    let unknown = v1::ReportToolUsageRequest { call_id: "another".into(), ..report.clone() };
    let outcome: Result<v1::ReportToolUsageResponse, _> =
        harness.attempt("agent", "ReportToolUsage", &unknown).await;
    refused(outcome, "NOT_FOUND");
    let cancel = v1::CancelSessionRequest { name: name.clone(), ..v1::CancelSessionRequest::default() };
    let _: v1::CancelSessionResponse = harness.ask("operator", "CancelSession", &cancel).await;
    for (report, reason) in [(&report, "ALREADY_RESOLVED"), (&unknown, "SESSION_TERMINAL")] {
        let outcome: Result<v1::ReportToolUsageResponse, _> =
            harness.attempt("agent", "ReportToolUsage", report).await;
        refused(outcome, reason);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_id_is_one_call_however_often_it_is_asked_for() {
    let harness = Harness::start().await;
    harness.deploy(LIMITED).await;
    let request = v1::StartSessionRequest { definition: "limited".into(), ..Default::default() };
    let session: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let name = session.session.expect("a session").name;
    let calls: Vec<v1::AuthorizeToolCallRequest> = (0..20)
        .map(|number| v1::AuthorizeToolCallRequest {
            call_id: "one".into(),
            request_id: format!("request-{number}"),
            ..tool_call(&name, "bash")
        })
        .collect();
    let asked = calls
        .iter()
        .map(|call| harness.attempt::<v1::AuthorizeToolCallResponse>("agent", "AuthorizeToolCall", call));
    let replies = futures::future::join_all(asked).await;
    let permitted = replies
        .iter()
        .filter(|reply| reply.as_ref().is_ok_and(|reply| reply.decision() == ToolDecision::Allow))
        .count();
    assert_eq!(permitted, 1, "{replies:?}");
    for reply in replies.into_iter().filter(Result::is_err) {
        assert_eq!(refused(reply, "REQUEST_ID_REUSED").metadata["call_id"], "one");
    }
    let again = v1::AuthorizeToolCallRequest { call_id: "two".into(), ..tool_call(&name, "bash") };
    for _ in 0..3 {
        let reply: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &again).await;
        let left = reply.remaining.as_ref().and_then(|left| left.calls);
        assert_eq!((reply.decision(), left), (ToolDecision::Allow, Some(0)));
    }
    harness.node.end().await;
}
