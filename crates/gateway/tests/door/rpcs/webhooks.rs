//! Where webhooks come from, and where they go.

use super::*;
use crate::world::create_source;

pub(super) fn sources() -> Vec<Rpc> {
    let name = Some(("name", Kind::Source));
    vec![
        Rpc {
            method: "CreateWebhookSource",
            // A name that nobody has is as good as any other here.
            name: None,
            ready: ready!(|world| create_source(&world.fresh("shop"))),
            other: |message| put("source.event_key", "sent")(message),
        },
        read(
            "GetWebhookSource",
            name,
            ready!(|_world| v1::GetWebhookSourceRequest { name: "acme-shop".into(), ..Default::default() }),
        ),
        read(
            "ListWebhookSources",
            Some(("parent", Kind::Tenant)),
            ready!(|_world| v1::ListWebhookSourcesRequest::default()),
        ),
        Rpc {
            method: "UpdateWebhookSource",
            name: Some(("source.name", Kind::Source)),
            ready: ready!(|world| v1::UpdateWebhookSourceRequest {
                source: create_source(&world.source().await).source,
                ..Default::default()
            }),
            other: |message| put("source.event_key", "sent")(message),
        },
        Rpc {
            method: "RotateWebhookSourceSecret",
            name,
            ready: ready!(|world| v1::RotateWebhookSourceSecretRequest {
                name: world.source().await,
                ..Default::default()
            }),
            other: |message| put("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")(message),
        },
        Rpc {
            method: "DeleteWebhookSource",
            name,
            ready: ready!(|world| v1::DeleteWebhookSourceRequest {
                name: world.source().await,
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
            // A name that nobody has is as good as any other here.
            name: None,
            ready: ready!(|world| world.put_endpoint().await),
            other: |message| put("endpoint.url", "https://other.example/")(message),
        },
        read(
            "GetWebhookEndpoint",
            name,
            ready!(|_world| v1::GetWebhookEndpointRequest { name: "acme-ops".into(), ..Default::default() }),
        ),
        read(
            "ListWebhookEndpoints",
            Some(("parent", Kind::Tenant)),
            ready!(|_world| v1::ListWebhookEndpointsRequest::default()),
        ),
        Rpc {
            method: "RotateWebhookEndpointSecret",
            name,
            ready: ready!(|world| v1::RotateWebhookEndpointSecretRequest {
                name: world.endpoint().await,
                ..Default::default()
            }),
            other: short_name,
        },
        read(
            "PingWebhookEndpoint",
            name,
            ready!(|_world| v1::PingWebhookEndpointRequest { name: "acme-ops".into(), ..Default::default() }),
        ),
        read(
            "RecoverWebhookEndpoint",
            name,
            ready!(|_world| v1::RecoverWebhookEndpointRequest {
                name: "acme-ops".into(),
                since_time: Some(prost_types::Timestamp { seconds: 1, nanos: 0 }),
                ..Default::default()
            }),
        ),
        Rpc {
            method: "DeleteWebhookEndpoint",
            name,
            ready: ready!(|world| v1::DeleteWebhookEndpointRequest {
                name: world.endpoint().await,
                ..Default::default()
            }),
            other: short_name,
        },
    ]
}
