//! The calls of webhook sources and endpoints.

use super::*;
use crate::harness::create_source;

pub(super) fn sources() -> Vec<Rpc> {
    let name = Some(("name", Kind::Source));
    vec![
        Rpc {
            method: "CreateWebhookSource",
            // Any unused name is valid here.
            name: None,
            ready: ready!(|harness| create_source(&harness.fresh("shop"))),
            other: |message| put("source.event_key", "sent")(message),
        },
        read(
            "GetWebhookSource",
            name,
            ready!(|_harness| v1::GetWebhookSourceRequest { name: "acme-shop".into(), ..Default::default() }),
        ),
        read(
            "ListWebhookSources",
            Some(("parent", Kind::Tenant)),
            ready!(|_harness| v1::ListWebhookSourcesRequest::default()),
        ),
        Rpc {
            method: "UpdateWebhookSource",
            name: Some(("source.name", Kind::Source)),
            ready: ready!(|harness| v1::UpdateWebhookSourceRequest {
                source: create_source(&harness.source().await).source,
                ..Default::default()
            }),
            other: |message| put("source.event_key", "sent")(message),
        },
        Rpc {
            method: "RotateWebhookSourceSecret",
            name,
            ready: ready!(|harness| v1::RotateWebhookSourceSecretRequest {
                name: harness.source().await,
                ..Default::default()
            }),
            other: |message| put("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")(message),
        },
        Rpc {
            method: "DeleteWebhookSource",
            name,
            ready: ready!(|harness| v1::DeleteWebhookSourceRequest {
                name: harness.source().await,
                ..Default::default()
            }),
            other: short_name,
        },
    ]
}

pub(super) fn endpoints() -> Vec<Rpc> {
    let name = Some(("name", Kind::Endpoint));
    vec![
        Rpc {
            method: "PutWebhookEndpoint",
            // Any unused name is valid here.
            name: None,
            ready: ready!(|harness| harness.put_endpoint().await),
            other: |message| put("endpoint.url", "https://other.example/")(message),
        },
        read(
            "GetWebhookEndpoint",
            name,
            ready!(|_harness| v1::GetWebhookEndpointRequest {
                name: "acme-ops".into(),
                ..Default::default()
            }),
        ),
        read(
            "ListWebhookEndpoints",
            Some(("parent", Kind::Tenant)),
            ready!(|_harness| v1::ListWebhookEndpointsRequest::default()),
        ),
        Rpc {
            method: "RotateWebhookEndpointSecret",
            name,
            ready: ready!(|harness| v1::RotateWebhookEndpointSecretRequest {
                name: harness.endpoint().await,
                ..Default::default()
            }),
            other: short_name,
        },
        read(
            "PingWebhookEndpoint",
            name,
            ready!(|_harness| v1::PingWebhookEndpointRequest {
                name: "acme-ops".into(),
                ..Default::default()
            }),
        ),
        read(
            "RecoverWebhookEndpoint",
            name,
            ready!(|_harness| v1::RecoverWebhookEndpointRequest {
                name: "acme-ops".into(),
                since_time: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
                ..Default::default()
            }),
        ),
        Rpc {
            method: "DeleteWebhookEndpoint",
            name,
            ready: ready!(|harness| v1::DeleteWebhookEndpointRequest {
                name: harness.endpoint().await,
                ..Default::default()
            }),
            other: short_name,
        },
    ]
}
