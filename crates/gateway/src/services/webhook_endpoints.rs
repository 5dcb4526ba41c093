//! WebhookEndpointService: stores the URLs that receive a tenant's events, tests them and repeats missed events.

use switchward_query::GetTenantRecord;
use switchward_state::delivery::{ChangeEndpoint, DeliveryCommand};
mod pings;
mod recover;

use switchward_api::v1::{self, webhook_endpoint_service_server::WebhookEndpointService};
use switchward_messages::delivery_failure;
use switchward_state::delivery::{DeliveryFailure, DisabledReason, Endpoint, EndpointSummary};
use switchward_state::limits::ROTATION_MS_MAX;
use switchward_state::seal::{Sealed, SecretOf};
use switchward_state::{Body, Reply, RequestId};
use switchward_webhook::{EventType, Filters, SigningSecret};
use tonic::{Request, Response, Status};

pub use pings::{Pinged, Pings};

use crate::api::{Api, Call, request_id};
use crate::auth::{Caller, roles};
use crate::convert::{ms_of, timestamp};
use crate::error::{Reason, Refusal};
use crate::mask::Mask;
use crate::pages::{Page, order};
use crate::refusals::{named, odd};
use crate::{names, sealing};

type Answered<T> = Result<Response<T>, Status>;

/// How long the previous secret also signs if the caller does not say: a day, milliseconds.
const OVERLAP_MS: u64 = 24 * 3_600_000;
/// Random bytes of a secret.
const DRAWN_BYTES: usize = 32;

#[tonic::async_trait]
impl WebhookEndpointService for Api {
    async fn put_webhook_endpoint(
        &self,
        request: Request<v1::PutWebhookEndpointRequest>,
    ) -> Answered<v1::PutWebhookEndpointResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "PutWebhookEndpoint", &message)?;
        let requested = message.endpoint.ok_or_else(|| Refusal::field("endpoint", "is required"))?;
        let id = names::webhook_endpoint(&call.caller, "endpoint.name", &requested.name)?.to_owned();
        check_url(&requested.url)?;
        Filters::read(requested.event_types.iter().map(String::as_str))
            .map_err(|error| Refusal::field("endpoint.event_types", error.to_string()))?;
        let (tenant, ring) = (call.caller.tenant, &call.api.cluster.ring());
        let (secret, sealed) = drawn(&call, &id)?;
        let change = ChangeEndpoint::Put {
            id: id.clone(),
            url: requested.url,
            filters: requested.event_types,
            secret: sealed.clone(),
            key: sealing::mail_key(ring, tenant),
            etag: requested.etag,
        };
        let row = changed(&call, request, change, &requested.name).await?;
        let secret = shown(&row, secret, &sealed);
        let endpoint = Some(of_summary(&call.caller, *row));
        Ok(Response::new(v1::PutWebhookEndpointResponse { endpoint, secret }))
    }

    async fn get_webhook_endpoint(
        &self,
        request: Request<v1::GetWebhookEndpointRequest>,
    ) -> Answered<v1::GetWebhookEndpointResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let mask = Mask::read("WebhookEndpoint", message.read_mask)?;
        let id = names::webhook_endpoint(&call.caller, "name", &message.name)?;
        let shown = mask.keep(of_endpoint(&call.caller, &endpoint(&call, id, &message.name).await?));
        Ok(Response::new(v1::GetWebhookEndpointResponse { endpoint: Some(shown) }))
    }

    async fn list_webhook_endpoints(
        &self,
        request: Request<v1::ListWebhookEndpointsRequest>,
    ) -> Answered<v1::ListWebhookEndpointsResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("WebhookEndpoint", message.read_mask)?;
        order(&message.order_by, "name")?;
        let list = ["endpoints", call.caller.tenant_name.as_str()];
        let page = Page::read(message.page_size, &message.page_token, &list)?;
        let all = endpoints(&call).await?;
        let all = all.iter().map(|one| (one.id.clone().into_bytes(), of_endpoint(&call.caller, one)));
        let (endpoints, next_page_token) = page.cut(all.collect());
        let endpoints = mask.keep_each(endpoints);
        Ok(Response::new(v1::ListWebhookEndpointsResponse { endpoints, next_page_token }))
    }

    async fn rotate_webhook_endpoint_secret(
        &self,
        request: Request<v1::RotateWebhookEndpointSecretRequest>,
    ) -> Answered<v1::RotateWebhookEndpointSecretResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "RotateWebhookEndpointSecret", &message)?;
        let id = names::webhook_endpoint(&call.caller, "name", &message.name)?.to_owned();
        let overlap_ms = message.overlap.map_or(Some(OVERLAP_MS), ms_of).filter(|ms| *ms <= ROTATION_MS_MAX);
        let overlap_ms = overlap_ms.ok_or_else(|| Refusal::field("overlap", "must be at most 7 days"))?;
        let ((secret, sealed), etag) = (drawn(&call, &id)?, message.expected_etag);
        let change = ChangeEndpoint::Rotate { id: id.clone(), secret: sealed.clone(), overlap_ms, etag };
        let row = changed(&call, request, change, &message.name).await?;
        let secret = shown(&row, secret, &sealed);
        let endpoint = Some(of_summary(&call.caller, *row));
        Ok(Response::new(v1::RotateWebhookEndpointSecretResponse { endpoint, secret }))
    }

    async fn ping_webhook_endpoint(
        &self,
        request: Request<v1::PingWebhookEndpointRequest>,
    ) -> Answered<v1::PingWebhookEndpointResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let id = names::webhook_endpoint(&call.caller, "name", &message.name)?;
        let kind = match message.event_type.as_str() {
            "" => EventType::Ping,
            name => EventType::from_name(name).ok_or_else(|| unknown_type(name))?,
        };
        let row = endpoint(&call, id, &message.name).await?;
        let Some(pings) = self.pings.get() else {
            return Err(Refusal::new(Reason::StateMismatch, "this server sends no webhooks").into());
        };
        let pinged = pings.ping(call.caller.tenant, &call.caller.tenant_name, &row, kind).await;
        let duration = prost_types::Duration::try_from(pinged.took).ok();
        let Pinged { message_id, status, code, detail, body, .. } = pinged;
        let message = code.as_ref().map(|code| delivery_failure(code, detail.as_ref())).unwrap_or_default();
        let code = code.map(|code| code.to_string()).unwrap_or_default();
        let http_status = status.map_or(0, u32::from);
        let answer =
            v1::PingWebhookEndpointResponse { message_id, http_status, code, message, duration, body };
        Ok(Response::new(answer))
    }

    async fn recover_webhook_endpoint(
        &self,
        request: Request<v1::RecoverWebhookEndpointRequest>,
    ) -> Answered<v1::RecoverWebhookEndpointResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        Ok(Response::new(recover::recover(&call, message).await?))
    }

    async fn delete_webhook_endpoint(
        &self,
        request: Request<v1::DeleteWebhookEndpointRequest>,
    ) -> Answered<v1::DeleteWebhookEndpointResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "DeleteWebhookEndpoint", &message)?;
        let id = names::webhook_endpoint(&call.caller, "name", &message.name)?.to_owned();
        let body = Body::Delivery(DeliveryCommand::Endpoint(ChangeEndpoint::Delete {
            id,
            etag: message.expected_etag,
        }));
        let reply = call.execute_in_own_scope(request, body).await;
        reply.map_err(|refusal| named(refusal, "endpoint", &message.name))?;
        Ok(Response::new(v1::DeleteWebhookEndpointResponse {}))
    }
}

fn unknown_type(name: &str) -> Refusal {
    Refusal::field("event_type", format!("there is no type {name:?}; `switchward schema events` lists them"))
}

/// A new secret for the endpoint of this name, as it is shown once and as it is stored.
fn drawn(call: &Call<'_>, id: &str) -> Result<(String, Sealed), Refusal> {
    let secret =
        SigningSecret::of(&rand::random::<[u8; DRAWN_BYTES]>()).expect("the secret has enough bytes").text();
    let (tenant, ring) = (call.caller.tenant, call.api.cluster.ring());
    let sealed =
        sealing::text(&ring, tenant, SecretOf::Endpoint(id), &secret).ok_or_else(sealing::no_ring)?;
    Ok((secret, sealed))
}

/// Executes a change, and returns the endpoint afterwards.
async fn changed(
    call: &Call<'_>,
    request: Option<RequestId>,
    change: ChangeEndpoint,
    asked: &str,
) -> Result<Box<EndpointSummary>, Refusal> {
    let reply = call.execute_in_own_scope(request, Body::Delivery(DeliveryCommand::Endpoint(change))).await;
    let reply = reply.map_err(|refusal| named(refusal, "endpoint", asked))?;
    if let Reply::Endpoint(row) = reply { Ok(row) } else { Err(odd(&reply)) }
}

async fn endpoints(call: &Call<'_>) -> Result<Vec<Endpoint>, Refusal> {
    let found = call.ask(&GetTenantRecord { tenant: call.caller.tenant }).await?;
    Ok(found.map(|record| record.endpoints.clone()).unwrap_or_default())
}

/// The endpoint of this name.
///
/// # Errors
/// NOT_FOUND, with the name from the request.
async fn endpoint(call: &Call<'_>, id: &str, asked: &str) -> Result<Endpoint, Refusal> {
    let found = endpoints(call).await?.into_iter().find(|one| one.id == id);
    found.ok_or_else(|| Refusal::not_found("endpoint", asked))
}

/// The secret as it is shown once; empty for an endpoint that existed before.
fn shown(row: &EndpointSummary, text: String, sealed: &Sealed) -> String {
    if row.secrets.is_newest(sealed) { text } else { String::new() }
}

fn of_endpoint(caller: &Caller, row: &Endpoint) -> v1::WebhookEndpoint {
    let health = row.health.clone().unwrap_or_default();
    let failed = health.failed.as_ref();
    v1::WebhookEndpoint {
        failing_since_time: health.failing_since.map(timestamp),
        last_success_time: health.succeeded.map(timestamp),
        last_failure_time: failed.map(|failed| timestamp(failed.at)),
        last_failure_code: failed.map(|failed| failed.code.to_string()).unwrap_or_default(),
        last_failure_message: failed.map(failure_text).unwrap_or_default(),
        ..of_summary(caller, EndpointSummary::of(row))
    }
}

fn failure_text(failure: &DeliveryFailure) -> String {
    delivery_failure(&failure.code, failure.detail.as_ref())
}

/// An endpoint after a command, without its health.
fn of_summary(caller: &Caller, row: EndpointSummary) -> v1::WebhookEndpoint {
    v1::WebhookEndpoint {
        name: names::of_webhook_endpoint(caller, &row.id),
        url: row.url,
        event_types: row.filters,
        disabled_reason: row.disabled.map(DisabledReason::word).unwrap_or_default().to_owned(),
        old_secret_expire_time: row.secrets.old_until.map(timestamp),
        create_time: Some(timestamp(row.created)),
        etag: row.etag,
        ..v1::WebhookEndpoint::default()
    }
}

/// Refuses an invalid URL. The rules about allowed destinations are applied when a message is sent.
fn check_url(url: &str) -> Result<(), Refusal> {
    let bad = |problem| Err(Refusal::field("endpoint.url", problem));
    let Some(rest) = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")) else {
        return bad("must begin with https://, or http:// if the server allows it");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return bad("must be an address with a host and without spaces");
    }
    if host.contains('@') {
        return bad("must not contain a user or a password: messages are authenticated by their signature");
    }
    Ok(())
}
