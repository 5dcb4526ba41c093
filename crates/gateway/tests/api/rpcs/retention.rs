//! The calls of RetentionService.

use super::*;

/// A session that has ended.
async fn ended(harness: &Harness) -> String {
    let name = harness.session().await.name;
    let cancel = v1::CancelSessionRequest { name: name.clone(), ..Default::default() };
    let _: v1::CancelSessionResponse = harness.ask("admin", "CancelSession", &cancel).await;
    name
}

fn rules(days: i64) -> v1::PutRetentionRequest {
    let ended_sessions = Some(prost_types::Duration { seconds: days * 86_400, nanos: 0 });
    let rule = v1::RetentionRule { ended_sessions, ..Default::default() };
    let retention = Some(v1::Retention { rules: vec![rule], etag: String::new() });
    v1::PutRetentionRequest { retention, ..Default::default() }
}

pub(super) fn rows() -> Vec<Rpc> {
    let name = Some(("name", Kind::Session));
    let parent = Some(("parent", Kind::Tenant));
    vec![
        Rpc {
            method: "DeleteSession",
            name,
            ready: ready!(|harness| v1::DeleteSessionRequest {
                name: ended(harness).await,
                ..Default::default()
            }),
            other: short_name,
        },
        Rpc {
            method: "EraseSession",
            name,
            ready: ready!(|harness| v1::EraseSessionRequest {
                name: ended(harness).await,
                ..Default::default()
            }),
            other: short_name,
        },
        Rpc {
            method: "PutRetention",
            name: parent,
            ready: ready!(|_harness| rules(400)),
            other: |message| set(message, "retention.rules", Value::List(Vec::new())),
        },
        read(
            "GetRetention",
            parent,
            ready!(|harness| {
                let _: v1::PutRetentionResponse = harness.ask("admin", "PutRetention", &rules(300)).await;
                v1::GetRetentionRequest::default()
            }),
        ),
    ]
}
