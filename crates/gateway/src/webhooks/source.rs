//! Messages of a tenant's sources: proven by what the source signs, and taken for an event of one of its sessions.

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde_json::{Value, json};
use std::time::Duration;
use switchward_engine::limits::MESSAGE_KNOWN_MS;
use switchward_engine::{Actor, Key, Once, Place, Role, Row, Tenant, View as _, WebhookSource};
use switchward_machine::{Digest, TenantId};
use switchward_webhook::{Covers, Greeting, Unproven, greeting, verify};
use tonic::metadata::MetadataMap;

use super::answer::{self, Outcome, Refused};
use super::event::{self, Brought, message_id};
use super::request::{body, check_head, read, with_headers};
use crate::auth::{self, Caller};
use crate::door::{Door, unreadable};
use crate::error::Refusal;
use crate::names;
use crate::services::kind_named;

/// `POST /v1/in/{tenant}/{source}`.
pub(super) async fn receive(
    State(door): State<Door>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request<Body>,
) -> Response<Body> {
    let recorded = async {
        check_head(&request)?;
        let Path((tenant, source)) = path.map_err(|_| auth::invalid())?;
        let (head, body) = request.into_parts();
        // Read before anything is looked up, so that its size tells nothing of what there is.
        let (body, _held) = self::body(body, door.bodies.begin(None, &head.extensions)).await?;
        take(&door, &tenant, &source, &head.headers, &body).await
    };
    answer::of(recorded.await)
}

async fn take(
    door: &Door,
    tenant: &str,
    source: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Outcome, Refused> {
    let (tenant, source) = find(door, tenant, source)?.ok_or_else(unproven)?;
    let id = prove(door, (tenant.id, &source), headers, body)?;
    door.webhook_rates.take((tenant.id, source.name.clone()), door.cluster.now())?;
    let said: Value = read(body)?;
    match with_headers(headers, |headers| greeting(kind_named(&source), headers, &said)) {
        Some(Greeting::Ping) => return Ok(Outcome::Greeted(json!({ "pong": true }))),
        Some(Greeting::Challenge(challenge)) => {
            return Ok(Outcome::Greeted(json!({ "challenge": challenge })));
        }
        None => {}
    }
    let caller = Caller {
        tenant: tenant.id,
        tenant_name: tenant.name,
        settings: tenant.settings,
        actor: Actor { subject: format!("source:{}", source.name), role: Role::Integration },
        key_id: String::new(),
    };
    let call = door.call_of(caller, &MetadataMap::from_headers(headers.clone()));
    let session_name = text(&said, &source.correlation.session, "session")?;
    let key = text(&said, &source.correlation.event_key, "event_key")?;
    let data = match said.pointer(&source.correlation.data) {
        Some(Value::Object(data)) => data.clone(),
        Some(_) | None => {
            let problem = match source.correlation.data.as_str() {
                "" => "the body is no JSON object".to_owned(),
                place => format!("there is no object at {place:?} of the body"),
            };
            return Err(Refusal::field("data", problem).into());
        }
    };
    let session = names::session(&call.caller, "session", &session_name)?;
    let id = id.map(|id| message_id(&format!("source:{}", source.name), &id));
    let once = once(&source, body);
    let (state, token, webhook) = (None, None, Some(source.name));
    event::record(&call, Brought { session, session_name, key, data, state, token, webhook, once, id }).await
}

/// By what a copy of the message is known, where its proof is as good at any other time.
fn once(source: &WebhookSource, body: &Bytes) -> Option<Once> {
    let known_ms = source.correlation.known_ms.unwrap_or(MESSAGE_KNOWN_MS);
    match kind_named(source).covers() {
        // One secret and one body have one signature: the body stands for it, and under the secret before it too.
        Covers::Body => {
            let signed = Digest::of_parts(&[source.name.as_bytes(), body]);
            signed.0.first_chunk().map(|message| Once { message: *message, known_ms })
        }
        Covers::BodyAndTime | Covers::Nothing => None,
    }
}

/// The source, and its tenant; nothing where either does not exist.
fn find(door: &Door, tenant: &str, source: &str) -> Result<Option<(Tenant, WebhookSource)>, Refused> {
    let view = door.cluster.catalogue().read_stale();
    let row = view.row(&Key::tenant(tenant)).map_err(unreadable)?;
    let Some(Row::Tenant(tenant)) = row.as_deref() else { return Ok(None) };
    let row = view.row(&Key::webhook_source(tenant.id, source)).map_err(unreadable)?;
    let Some(Row::WebhookSource(source)) = row.as_deref() else { return Ok(None) };
    Ok(Some((tenant.clone(), source.clone())))
}

/// What identifies the message, where the source proves that it has sent it.
fn prove(
    door: &Door,
    (tenant, source): (TenantId, &WebhookSource),
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Option<String>, Refused> {
    let now = door.cluster.now();
    let secrets = source.good_secrets(&door.cluster.ring(), tenant, now);
    let secrets: Vec<&str> = secrets.iter().map(|secret| secret.as_str()).collect();
    let unsigned = if door.development { Unproven::Allowed } else { Unproven::Refused };
    let now = Duration::from_millis(now.0);
    let verified =
        with_headers(headers, |headers| verify(kind_named(source), &secrets, headers, body, now, unsigned));
    verified.map(|verified| verified.id).map_err(|why| {
        // For whoever has set the source up; who sends is told nothing.
        tracing::info!(source = source.name, why = why.word(), "a webhook was refused");
        unproven()
    })
}

/// One answer for no such tenant, no such source, and a message that nothing proves.
fn unproven() -> Refused {
    let message = "the message is not proven to come from a source of webhooks";
    Refusal::new(crate::error::Reason::CredentialInvalid, message).into()
}

/// The text of a place.
fn text(said: &Value, place: &Place, field: &str) -> Result<String, Refused> {
    match place {
        Place::Fixed(text) => Ok(text.clone()),
        Place::Pointer(pointer) => match said.pointer(pointer) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) if !number.is_f64() => Ok(number.to_string()),
            Some(_) | None => {
                Err(Refusal::field(field, format!("there is no text at {pointer:?} of the body")).into())
            }
        },
    }
}
