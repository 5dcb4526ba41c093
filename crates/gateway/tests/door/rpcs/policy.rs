//! The calls of PolicyService.

use super::*;

pub(super) fn rows() -> Vec<Rpc> {
    let name = Some(("session", Kind::Session));
    vec![
        Rpc {
            method: "AuthorizeToolCall",
            name,
            ready: ready!(|world| tool_call(&world.session().await.name, "bash")),
            other: |message| set(message, "args", Value::Bytes("{\"other\":1}".into())),
        },
        Rpc {
            method: "SendEmail",
            name,
            ready: ready!(|world| {
                let (session, to) = (world.session().await.name, vec!["ann@acme.example".into()]);
                let (subject, text) = ("Report".into(), "Done.".into());
                v1::SendEmailRequest { session, to, subject, text, ..v1::SendEmailRequest::default() }
            }),
            other: |message| set(message, "text", Value::String("Not done.".into())),
        },
        Rpc {
            method: "ReportToolUsage",
            name,
            ready: ready!(|world| {
                let session = world.session().await.name;
                let call_id = world.authorize(&session, "mcp:web:fetch").await.call_id;
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
            ready: ready!(|world| v1::ReportUsageRequest {
                session: world.session().await.name,
                tokens: 3,
                ..v1::ReportUsageRequest::default()
            }),
            other: |message| set(message, "tokens", Value::U64(7)),
        },
        read(
            "ExplainDecision",
            name,
            ready!(|world| v1::ExplainDecisionRequest {
                session: world.session().await.name,
                capability: "bash".into(),
                ..v1::ExplainDecisionRequest::default()
            }),
        ),
        read(
            "ListDecisions",
            name,
            ready!(|world| v1::ListDecisionsRequest {
                session: world.session().await.name,
                ..v1::ListDecisionsRequest::default()
            }),
        ),
    ]
}
