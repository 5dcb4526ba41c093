//! Messages of a tenant's sources: proven by the source's signature, and recorded as an event of one of its sessions.

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde_json::{Value, json};
use std::time::Duration;
use switchward_machine::{Digest, TenantId};
use switchward_query::FindWebhookSource;
use switchward_state::catalogue::{Role, Tenant};
use switchward_state::delivery::{TextSource, WebhookSource};
use switchward_state::limits::MESSAGE_KNOWN_MS;
use switchward_state::run::Once;
use switchward_state::{Actor, SharedRow};
use switchward_webhook::{Covers, Greeting, Unproven, greeting, verify};
use tonic::metadata::MetadataMap;

use super::answer::{Outcome, Refused};
use super::event::{Brought, message_id};
use super::request::{body, check_head, read, with_headers};
use super::{answer, event};
use crate::api::Api;
use crate::auth::Caller;
use crate::error::Refusal;
use crate::services::scheme_of;
use crate::stale;
use crate::{auth, names};

/// `POST /v1/in/{tenant}/{source}`.
pub(super) async fn receive(
    State(api): State<Api>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request<Body>,
) -> Response<Body> {
    let recorded = async {
        check_head(&request)?;
        let Path((tenant, source)) = path.map_err(|_| auth::invalid())?;
        let (head, body) = request.into_parts();
        // Read before anything is looked up, so that the response to a large body does not reveal which sources exist.
        let (body, _held) = self::body(body, api.bodies.begin(None, &head.extensions)).await?;
        take(&api, &tenant, &source, &head.headers, &body).await
    };
    answer::of(recorded.await)
}

async fn take(
    api: &Api,
    tenant: &str,
    source: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Outcome, Refused> {
    let (tenant, source) = find(api, tenant, source).await?.ok_or_else(unproven)?;
    let id = prove(api, tenant.id, &source, headers, body)?;
    api.webhook_rates.take(&(tenant.id, source.name.clone()), api.cluster.now())?;
    let said: Value = read(body)?;
    match with_headers(headers, |headers| greeting(scheme_of(source.kind), headers, &said)) {
        Some(Greeting::Ping) => return Ok(Outcome::Greeted(json!({ "pong": true }))),
        Some(Greeting::Challenge(challenge)) => {
            return Ok(Outcome::Greeted(json!({ "challenge": challenge })));
        }
        None => {}
    }
    let caller = Caller {
        tenant: tenant.id,
        tenant_name: tenant.name.clone(),
        settings: tenant.settings,
        actor: Actor { subject: format!("source:{}", source.name), role: Role::Integration },
        key_id: String::new(),
    };
    let call = api.call_of(caller, &MetadataMap::from_headers(headers.clone()));
    let session_name = text(&said, &source.correlation.session, "session")?;
    let key = text(&said, &source.correlation.event_key, "event_key")?;
    let data = match said.pointer(&source.correlation.data) {
        Some(Value::Object(data)) => data.clone(),
        Some(_) | None => {
            let problem = match source.correlation.data.as_str() {
                "" => "the body is not a JSON object".to_owned(),
                pointer => format!("the body has no object at {pointer:?}"),
            };
            return Err(Refusal::field("data", problem).into());
        }
    };
    let session = names::session(&call.caller, "session", &session_name)?;
    let id = id.map(|id| message_id(&format!("source:{}", source.name), &id));
    let once = once(&source, body);
    let (state, token, webhook) = (None, None, Some(source.name.clone()));
    event::record(&call, Brought { session, session_name, key, data, state, token, webhook, once, id }).await
}

/// Returns what identifies a copy of the message, if its signature does not cover a time.
fn once(source: &WebhookSource, body: &Bytes) -> Option<Once> {
    let known_ms = source.correlation.known_ms.unwrap_or(MESSAGE_KNOWN_MS);
    match scheme_of(source.kind).covers() {
        // One secret and one body have one signature: the body stands for it, and under the secret before it too.
        Covers::Body => {
            let signed = Digest::of_parts(&[source.name.as_bytes(), body]);
            signed.0.first_chunk().map(|message| Once { message: *message, known_ms })
        }
        Covers::BodyAndTime | Covers::Nothing => None,
    }
}

/// A source's tenant, and the source.
type TenantSource = (SharedRow<Tenant>, SharedRow<WebhookSource>);

/// Returns the source and its tenant; `None` if either does not exist.
async fn find(api: &Api, tenant: &str, source: &str) -> Result<Option<TenantSource>, Refused> {
    let query = FindWebhookSource { tenant: tenant.to_owned(), name: source.to_owned() };
    Ok(stale::find(&api.cluster, &query).await?)
}

/// Verifies that the source has sent the message, and returns the message's id if it has one.
fn prove(
    api: &Api,
    tenant: TenantId,
    source: &WebhookSource,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Option<String>, Refused> {
    let now = api.cluster.now_or_median();
    let secrets = source.good_secrets(&api.cluster.ring(), tenant, now);
    let secrets: Vec<&str> = secrets.iter().map(|secret| secret.as_str()).collect();
    let unsigned = if api.development { Unproven::Allowed } else { Unproven::Refused };
    let now = Duration::from_millis(now.0);
    let verified = with_headers(headers, |headers| {
        verify(scheme_of(source.kind), &secrets, headers, body, now, unsigned)
    });
    verified.map(|verified| verified.id).map_err(|why| {
        // For the operator who set the source up; the sender does not learn the reason.
        tracing::info!(source = source.name, why = why.word(), "a webhook was refused");
        unproven()
    })
}

/// One answer for no such tenant, no such source, and a message that nothing proves.
fn unproven() -> Refused {
    let message = "the message cannot be authenticated as one of a webhook source";
    Refusal::new(crate::error::Reason::CredentialInvalid, message).into()
}

/// The text that a source's setting gives or points to.
fn text(said: &Value, source: &TextSource, field: &str) -> Result<String, Refused> {
    match source {
        TextSource::Fixed(text) => Ok(text.clone()),
        TextSource::Pointer(pointer) => match said.pointer(pointer) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) if !number.is_f64() => Ok(number.to_string()),
            Some(_) | None => {
                Err(Refusal::field(field, format!("the body has no text at {pointer:?}")).into())
            }
        },
    }
}
