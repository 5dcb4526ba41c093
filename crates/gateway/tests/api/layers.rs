//! Standalone policies: who may attach one, what it does to sessions of any format, and how every layer is reported.

use switchward_api::v1::{self, ToolDecision};

use crate::harness::Harness;
use crate::refusal::refused;

const GUARD: &str = r#"{"policy": "guard", "deny": [{"capability": "mcp:fs:wipe"}],
    "ask": [{"capability": "mcp:fs:*"}],
    "allow": [{"capability": "bash", "rate_limit": {"max_calls": 2, "window_seconds": 60}}],
    "default_effect": "allow"}"#;

async fn attach(harness: &Harness, definition: &str, policy: &str) -> v1::Definition {
    let request = v1::AttachPolicyRequest {
        definition: definition.into(),
        policy: policy.into(),
        ..v1::AttachPolicyRequest::default()
    };
    let reply: v1::AttachPolicyResponse = harness.ask("author", "AttachPolicy", &request).await;
    reply.definition.expect("a definition")
}

async fn set(harness: &Harness, policy: &str, version: Option<u32>) -> v1::TenantPolicy {
    let request = v1::SetTenantPolicyRequest {
        policy: policy.into(),
        version,
        ..v1::SetTenantPolicyRequest::default()
    };
    let reply: v1::SetTenantPolicyResponse = harness.ask("admin", "SetTenantPolicy", &request).await;
    reply.policy.expect("a policy")
}

async fn explain(harness: &Harness, session: &str, capability: &str) -> v1::ExplainDecisionResponse {
    let request = v1::ExplainDecisionRequest {
        session: session.into(),
        capability: capability.into(),
        ..v1::ExplainDecisionRequest::default()
    };
    harness.ask("agent", "ExplainDecision", &request).await
}

/// The layers with their decisions.
fn decisions(layers: &[v1::LayerDecision]) -> Vec<(String, ToolDecision)> {
    let layer = |said: &v1::LayerDecision| said.rule.clone().unwrap_or_default().layer;
    layers.iter().map(|said| (layer(said), said.decision())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attached_policy_holds_for_new_sessions_and_names_itself() {
    let harness = Harness::start().await;
    let before = harness.talk().await;
    harness.deploy(GUARD).await;
    let definition = attach(&harness, "talk", "guard").await;
    assert_eq!(definition.policies, ["tenants/acme/definitions/guard"]);
    let after = harness.talk().await;
    let free = harness.authorize(&before.name, "mcp:fs:wipe").await;
    assert_eq!(free.decision(), ToolDecision::Allow, "a session keeps the policies of its start");
    let denied = harness.authorize(&after.name, "mcp:fs:wipe").await;
    let rule = denied.matched_rule.clone().expect("a rule");
    assert_eq!((denied.reason.as_str(), rule.layer.as_str()), ("POLICY_DENIED", "definition:guard@1"));
    let asked = harness.authorize(&after.name, "mcp:fs:read").await;
    assert_eq!((asked.decision(), asked.gate.is_empty()), (ToolDecision::Ask, false));
    for left in [Some(1), Some(0)] {
        let allowed = harness.authorize(&after.name, "bash").await;
        assert_eq!(allowed.remaining.expect("limits").calls, left);
    }
    let full = harness.authorize(&after.name, "bash").await;
    assert_eq!(full.reason, "RATE_LIMITED");
    assert!(full.message.contains("definition:guard@1"), "{}", full.message);
    let shown = explain(&harness, &after.name, "bash").await;
    assert_eq!(decisions(&shown.layers), [("definition:guard@1".into(), ToolDecision::Allow)]);
    let limits = &shown.rules.iter().find(|rule| rule.matches).expect("a rule").limits;
    assert_eq!((limits[0].layer.as_str(), limits[0].available), ("definition:guard@1", false));
    let list = v1::ListDecisionsRequest { session: after.name.clone(), ..Default::default() };
    let listed: v1::ListDecisionsResponse = harness.ask("agent", "ListDecisions", &list).await;
    let layers: Vec<String> =
        listed.decisions.iter().map(|record| record.matched_rule.clone().expect("a rule").layer).collect();
    assert_eq!(layers, vec!["definition:guard@1"; 5]);
    let detach = v1::DetachPolicyRequest {
        definition: "talk".into(),
        policy: "guard".into(),
        ..v1::DetachPolicyRequest::default()
    };
    let reply: v1::DetachPolicyResponse = harness.ask("author", "DetachPolicy", &detach).await;
    assert!(reply.definition.expect("a definition").policies.is_empty());
    let again: Result<v1::DetachPolicyResponse, _> = harness.attempt("author", "DetachPolicy", &detach).await;
    assert_eq!(refused(again, "NOT_FOUND").message, "the policy \"guard\" is not attached to \"talk\"");
    let remove = v1::RemoveTenantPolicyRequest { policy: "guard".into(), ..Default::default() };
    let unset: Result<v1::RemoveTenantPolicyResponse, _> =
        harness.attempt("admin", "RemoveTenantPolicy", &remove).await;
    assert_eq!(refused(unset, "NOT_FOUND").message, "the policy \"guard\" is not set for the tenant");
    let later = harness.talk().await;
    assert_eq!(harness.authorize(&later.name, "mcp:fs:wipe").await.decision(), ToolDecision::Allow);
    assert_eq!(harness.authorize(&after.name, "mcp:fs:wipe").await.decision(), ToolDecision::Deny);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_cap_is_not_raised_by_an_operator() {
    let harness = Harness::start().await;
    harness.deploy(r#"{"policy": "purse", "session_budget_usd": 2, "default_effect": "allow"}"#).await;
    let talk = harness.talk().await;
    let raise = v1::RaiseCapRequest {
        name: talk.name.clone(),
        cap: Some(v1::raise_cap_request::Cap::CostUsd("5".into())),
        ..v1::RaiseCapRequest::default()
    };
    let none: Result<v1::RaiseCapResponse, _> = harness.attempt("operator", "RaiseCap", &raise).await;
    let none = refused(none, "STATE_MISMATCH");
    assert!(!none.metadata.contains_key("layer"), "{none:?}");
    set(&harness, "purse", None).await;
    let capped: Result<v1::RaiseCapResponse, _> = harness.attempt("operator", "RaiseCap", &raise).await;
    let capped = refused(capped, "STATE_MISMATCH");
    assert_eq!(capped.metadata["layer"], "tenant:purse@1");
    assert!(capped.message.contains("only an admin of the tenant can change that"), "{capped:?}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_policy_holds_at_once_for_sessions_of_every_format() {
    let harness = Harness::start().await;
    let (process, talk) = (harness.session().await, harness.talk().await);
    harness.deploy(GUARD).await;
    assert_eq!(harness.authorize(&talk.name, "mcp:fs:wipe").await.decision(), ToolDecision::Allow);
    let held = set(&harness, "guard", None).await;
    assert_eq!((held.version, held.set_by.is_empty()), (1, false));
    for session in [&process.name, &talk.name] {
        let denied = harness.authorize(session, "mcp:fs:wipe").await;
        let rule = denied.matched_rule.clone().expect("a rule");
        assert_eq!((denied.decision(), rule.layer.as_str()), (ToolDecision::Deny, "tenant:guard@1"));
    }
    // One ledger for all definitions.
    assert_eq!(harness.authorize(&talk.name, "bash").await.decision(), ToolDecision::Allow);
    let said = harness.authorize(&process.name, "bash").await;
    assert_eq!(said.decision(), ToolDecision::Allow);
    assert!(decisions(&said.layers).contains(&("tenant:guard@1".into(), ToolDecision::Allow)), "{said:?}");
    for session in [&process.name, &talk.name] {
        assert_eq!(harness.authorize(session, "bash").await.reason, "RATE_LIMITED");
    }
    // A newly deployed version does not take effect: an author cannot change what the admin has set.
    harness.deploy(r#"{"policy": "guard", "default_effect": "allow"}"#).await;
    assert_eq!(harness.authorize(&talk.name, "mcp:fs:wipe").await.decision(), ToolDecision::Deny);
    let get = v1::GetTenantRequest { name: "tenants/acme".into(), ..Default::default() };
    let tenant: v1::GetTenantResponse = harness.ask("agent", "GetTenant", &get).await;
    let policies = tenant.tenant.expect("a tenant").policies;
    assert_eq!((policies.len(), policies[0].version), (1, 1));
    assert_eq!(set(&harness, "guard", Some(2)).await.version, 2);
    assert_eq!(harness.authorize(&talk.name, "mcp:fs:wipe").await.decision(), ToolDecision::Allow);
    let remove = v1::RemoveTenantPolicyRequest { policy: "guard".into(), ..Default::default() };
    let _: v1::RemoveTenantPolicyResponse = harness.ask("admin", "RemoveTenantPolicy", &remove).await;
    let again: Result<v1::RemoveTenantPolicyResponse, _> =
        harness.attempt("admin", "RemoveTenantPolicy", &remove).await;
    refused(again, "NOT_FOUND");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_stands_for_the_layers_that_asked_and_yields_to_a_later_deny() {
    let harness = Harness::start().await;
    harness.deploy(GUARD).await;
    attach(&harness, "talk", "guard").await;
    let talk = harness.talk().await;
    let approve = async |gate: &str| {
        let decide = v1::DecideGateRequest {
            name: gate.into(),
            decision: v1::GateDecision::Approve.into(),
            ..v1::DecideGateRequest::default()
        };
        let _: v1::DecideGateResponse = harness.ask("operator", "DecideGate", &decide).await;
    };
    let first = harness.authorize(&talk.name, "mcp:fs:read").await;
    approve(&first.gate).await;
    harness
        .deploy(r#"{"policy": "wall", "ask": [{"capability": "mcp:fs:*"}], "default_effect": "allow"}"#)
        .await;
    set(&harness, "wall", None).await;
    let second = harness.authorize(&talk.name, "mcp:fs:read").await;
    assert_eq!(second.decision(), ToolDecision::Ask, "the approver did not see the tenant's layer");
    assert_ne!(second.gate, first.gate);
    approve(&second.gate).await;
    harness
        .deploy(r#"{"policy": "stop", "deny": [{"capability": "mcp:fs:*"}], "default_effect": "allow"}"#)
        .await;
    set(&harness, "stop", None).await;
    let denied = harness.authorize(&talk.name, "mcp:fs:read").await;
    let rule = denied.matched_rule.expect("a rule");
    assert_eq!((denied.reason.as_str(), rule.layer.as_str()), ("POLICY_DENIED", "tenant:stop@1"));
    let remove = v1::RemoveTenantPolicyRequest { policy: "stop".into(), ..Default::default() };
    let _: v1::RemoveTenantPolicyResponse = harness.ask("admin", "RemoveTenantPolicy", &remove).await;
    let allowed = harness.authorize(&talk.name, "mcp:fs:read").await;
    assert_eq!((allowed.decision(), allowed.grant_used), (ToolDecision::Allow, true));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lesser_keys_attach_and_set_nothing() {
    let harness = Harness::start().await;
    harness.deploy(GUARD).await;
    let change = v1::AttachPolicyRequest {
        definition: "release".into(),
        policy: "guard".into(),
        ..v1::AttachPolicyRequest::default()
    };
    for role in ["agent", "approver", "operator", "worker"] {
        let outcome: Result<v1::AttachPolicyResponse, _> =
            harness.attempt(role, "AttachPolicy", &change).await;
        refused(outcome, "ROLE_NOT_ALLOWED");
    }
    attach(&harness, "release", "guard").await;
    let detach = v1::DetachPolicyRequest {
        definition: "release".into(),
        policy: "guard".into(),
        ..v1::DetachPolicyRequest::default()
    };
    for role in ["agent", "approver", "operator", "worker"] {
        let outcome: Result<v1::DetachPolicyResponse, _> =
            harness.attempt(role, "DetachPolicy", &detach).await;
        refused(outcome, "ROLE_NOT_ALLOWED");
    }
    let hold = v1::SetTenantPolicyRequest { policy: "guard".into(), ..Default::default() };
    let remove = v1::RemoveTenantPolicyRequest { policy: "guard".into(), ..Default::default() };
    set(&harness, "guard", None).await;
    for role in ["agent", "author", "approver", "operator", "worker"] {
        let outcome: Result<v1::SetTenantPolicyResponse, _> =
            harness.attempt(role, "SetTenantPolicy", &hold).await;
        refused(outcome, "ROLE_NOT_ALLOWED");
        let outcome: Result<v1::RemoveTenantPolicyResponse, _> =
            harness.attempt(role, "RemoveTenantPolicy", &remove).await;
        refused(outcome, "ROLE_NOT_ALLOWED");
    }
    let denied = harness.authorize(&harness.session().await.name, "mcp:fs:wipe").await;
    assert_eq!(denied.decision(), ToolDecision::Deny);
    // Only policies can be attached, a policy cannot be attached to a policy, and a policy cannot be started.
    for (definition, policy) in [("release", "release"), ("guard", "guard")] {
        let wrong = v1::AttachPolicyRequest {
            definition: definition.into(),
            policy: policy.into(),
            ..v1::AttachPolicyRequest::default()
        };
        let outcome: Result<v1::AttachPolicyResponse, _> =
            harness.attempt("author", "AttachPolicy", &wrong).await;
        refused(outcome, "STATE_MISMATCH");
    }
    let start = v1::StartSessionRequest { definition: "guard".into(), ..Default::default() };
    let outcome: Result<v1::StartSessionResponse, _> = harness.attempt("agent", "StartSession", &start).await;
    refused(outcome, "STATE_MISMATCH");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_default_names_where_it_was_set() {
    let harness = Harness::start().await;
    let talk = harness.talk().await;
    let by = async |set_in: v1::DefaultSetIn, decision: ToolDecision| {
        let said = harness.authorize(&talk.name, "mcp:web:get").await;
        let rule = said.matched_rule.clone().expect("a rule");
        assert_eq!((said.decision(), rule.default_set_in()), (decision, set_in), "{said:?}");
        let shown = explain(&harness, &talk.name, "mcp:web:get").await;
        assert_eq!(shown.matched_rule.expect("a rule").default_set_in(), set_in);
        said.message
    };
    by(v1::DefaultSetIn::Source, ToolDecision::Allow).await;
    let update = |effect: v1::DefaultEffect| {
        let tenant = v1::Tenant {
            name: "tenants/acme".into(),
            default_effect: effect.into(),
            ..v1::Tenant::default()
        };
        let update_mask = Some(prost_types::FieldMask { paths: vec!["default_effect".into()] });
        v1::UpdateTenantRequest { tenant: Some(tenant), update_mask, ..Default::default() }
    };
    let _: v1::UpdateTenantResponse =
        harness.ask("admin", "UpdateTenant", &update(v1::DefaultEffect::Deny)).await;
    let message = by(v1::DefaultSetIn::Tenant, ToolDecision::Deny).await;
    assert!(message.contains("the tenant denies by default"), "{message}");
    harness.deploy(r#"{"policy": "shut", "default_effect": "deny"}"#).await;
    set(&harness, "shut", None).await;
    let message = by(v1::DefaultSetIn::Policy, ToolDecision::Deny).await;
    assert!(message.contains("tenant:shut@1 denies by default"), "{message}");
    harness.node.end().await;
}
