//! The calls of PolicyService.

use super::*;

pub(super) fn rows() -> Vec<Rpc> {
    let mut rows = calls();
    rows.extend(policies());
    rows
}

fn calls() -> Vec<Rpc> {
    let name = Some(("session", Kind::Session));
    vec![
        Rpc {
            method: "AuthorizeToolCall",
            name,
            ready: ready!(|harness| tool_call(&harness.session().await.name, "bash")),
            other: |message| set(message, "args", Value::Bytes("{\"other\":1}".into())),
        },
        Rpc {
            method: "SendEmail",
            name,
            ready: ready!(|harness| {
                let (session, to) = (harness.session().await.name, vec!["ann@acme.example".into()]);
                let (subject, text) = ("Report".into(), "Done.".into());
                v1::SendEmailRequest { session, to, subject, text, ..v1::SendEmailRequest::default() }
            }),
            other: |message| set(message, "text", Value::String("Not done.".into())),
        },
        Rpc {
            method: "ReportToolUsage",
            name,
            ready: ready!(|harness| {
                let session = harness.session().await.name;
                let call_id = harness.authorize(&session, "mcp:web:fetch").await.call_id;
                let cost_usd = Some("0.25".into());
                v1::ReportToolUsageRequest {
                    session,
                    call_id,
                    cost_usd,
                    ..v1::ReportToolUsageRequest::default()
                }
            }),
            other: |message| set(message, "tokens", Value::U64(7)),
        },
        Rpc {
            method: "ReportUsage",
            name,
            ready: ready!(|harness| v1::ReportUsageRequest {
                session: harness.session().await.name,
                tokens: 3,
                ..v1::ReportUsageRequest::default()
            }),
            other: |message| set(message, "tokens", Value::U64(7)),
        },
        read(
            "ExplainDecision",
            name,
            ready!(|harness| v1::ExplainDecisionRequest {
                session: harness.session().await.name,
                capability: "bash".into(),
                ..v1::ExplainDecisionRequest::default()
            }),
        ),
        read(
            "ListDecisions",
            name,
            ready!(|harness| v1::ListDecisionsRequest {
                session: harness.session().await.name,
                ..v1::ListDecisionsRequest::default()
            }),
        ),
    ]
}

fn policies() -> Vec<Rpc> {
    vec![
        Rpc {
            method: "AttachPolicy",
            name: Some(("definition", Kind::Definition)),
            ready: ready!(|harness| {
                let definition = harness.acme.only.to_owned();
                let policy = harness.policy().await;
                v1::AttachPolicyRequest { definition, policy, ..v1::AttachPolicyRequest::default() }
            }),
            other: |message| set(message, "definition", Value::String("release".into())),
        },
        Rpc {
            method: "DetachPolicy",
            name: Some(("definition", Kind::Definition)),
            ready: ready!(|harness| {
                let definition = harness.acme.only.to_owned();
                let policy = harness.policy().await;
                let attach = v1::AttachPolicyRequest {
                    definition: definition.clone(),
                    policy: policy.clone(),
                    ..v1::AttachPolicyRequest::default()
                };
                let _: v1::AttachPolicyResponse = harness.ask("author", "AttachPolicy", &attach).await;
                v1::DetachPolicyRequest { definition, policy, ..v1::DetachPolicyRequest::default() }
            }),
            other: |message| set(message, "definition", Value::String("release".into())),
        },
        Rpc {
            method: "SetTenantPolicy",
            name: Some(("policy", Kind::Definition)),
            ready: ready!(|harness| {
                let policy = harness.policy().await;
                v1::SetTenantPolicyRequest { policy, ..v1::SetTenantPolicyRequest::default() }
            }),
            other: |message| set(message, "version", Value::U32(1)),
        },
        Rpc {
            method: "RemoveTenantPolicy",
            name: Some(("policy", Kind::Definition)),
            ready: ready!(|harness| {
                let policy = harness.policy().await;
                let set = v1::SetTenantPolicyRequest {
                    policy: policy.clone(),
                    ..v1::SetTenantPolicyRequest::default()
                };
                let _: v1::SetTenantPolicyResponse = harness.ask("admin", "SetTenantPolicy", &set).await;
                v1::RemoveTenantPolicyRequest { policy, ..v1::RemoveTenantPolicyRequest::default() }
            }),
            other: |message| {
                let full = format!("tenants/-/definitions/{}", text(message, "policy"));
                set(message, "policy", Value::String(full));
            },
        },
    ]
}
