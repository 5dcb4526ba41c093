//! WebhookSourceService: stores the senders whose webhooks end waits, and their secrets.

use switchward_api::v1::{self, webhook_source_service_server::WebhookSourceService};
use switchward_query::{GetWebhookSource, ListWebhookSources};
use switchward_state::delivery::{
    ChangeWebhookSource, Correlation, DeliveryCommand, SourceSecret, SourceSummary, TextSource,
    WebhookSource, WebhookSourceKind,
};
use switchward_state::limits::{MESSAGE_KNOWN_MS, ROTATION_MS_MAX};
use switchward_state::seal::SecretOf;
use switchward_state::{Body, Reply, RequestId, Scope, SharedRow};
use switchward_webhook::{
    Covers, SigningSecret, SourceKind,
    limits::{SECRET_BYTES_MAX, SECRET_BYTES_MIN, SECRET_TEXT_CHARS_MAX, SECRET_TEXT_CHARS_MIN},
};
use tonic::{Request, Response, Status};

use crate::api::{Api, Call, request_id};
use crate::auth::{Caller, roles};
use crate::convert::{duration, known, ms_of, timestamp};
use crate::error::Refusal;
use crate::mask::Mask;
use crate::pages::{Page, order};
use crate::refusals::{named, odd};
use crate::{names, sealing};

type Answered<T> = Result<Response<T>, Status>;

/// How long the previous secret stays valid if the caller does not say: a day, milliseconds.
const OVERLAP_MS: u64 = 24 * 3_600_000;
/// Random bytes of a secret that is drawn here.
const DRAWN_BYTES: usize = 32;

#[tonic::async_trait]
impl WebhookSourceService for Api {
    async fn create_webhook_source(
        &self,
        request: Request<v1::CreateWebhookSourceRequest>,
    ) -> Answered<v1::CreateWebhookSourceResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "CreateWebhookSource", &message)?;
        let requested = message.source.ok_or_else(|| Refusal::field("source", "is required"))?;
        let name = names::webhook_source(&call.caller, "source.name", &requested.name)?.to_owned();
        let kind = kind_of(known("source.kind", requested.kind)?)?;
        if kind == WebhookSourceKind::None && !call.api.development {
            return Err(
                Refusal::field("source.kind", "only a development server accepts the kind none").into()
            );
        }
        let scheme = scheme_of(kind);
        let correlation = correlation(scheme, &requested)?;
        let text = secret_of(scheme, message.secret)?;
        let secret = text.as_ref().map(|text| sealed(&call, &name, text)).transpose()?;
        let kept = secret.clone();
        let change = ChangeWebhookSource::Create { name, kind, secret, correlation };
        let row = changed(&call, request, async { Ok(change) }, &requested.name).await?;
        let (source, secret) = (Some(of_source(&call.caller, &row)), shown(&row, text, kept.as_ref()));
        Ok(Response::new(v1::CreateWebhookSourceResponse { source, secret }))
    }

    async fn get_webhook_source(
        &self,
        request: Request<v1::GetWebhookSourceRequest>,
    ) -> Answered<v1::GetWebhookSourceResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let mask = Mask::read("WebhookSource", message.read_mask)?;
        let name = names::webhook_source(&call.caller, "name", &message.name)?;
        let row = source(&call, name, &message.name).await?;
        let shown = mask.keep(of_source(&call.caller, &SourceSummary::of(&row)));
        Ok(Response::new(v1::GetWebhookSourceResponse { source: Some(shown) }))
    }

    async fn list_webhook_sources(
        &self,
        request: Request<v1::ListWebhookSourcesRequest>,
    ) -> Answered<v1::ListWebhookSourcesResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("WebhookSource", message.read_mask)?;
        order(&message.order_by, "name")?;
        let list = ["sources", call.caller.tenant_name.as_str()];
        let page = Page::read(message.page_size, &message.page_token, &list)?;
        let query = ListWebhookSources { tenant: call.caller.tenant, bounds: page.bounds() };
        let found = call.ask(&query).await?;
        let (sources, next_page_token) =
            page.shown(&found, |row| of_source(&call.caller, &SourceSummary::of(row)));
        let sources = mask.keep_each(sources);
        Ok(Response::new(v1::ListWebhookSourcesResponse { sources, next_page_token }))
    }

    async fn update_webhook_source(
        &self,
        request: Request<v1::UpdateWebhookSourceRequest>,
    ) -> Answered<v1::UpdateWebhookSourceResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "UpdateWebhookSource", &message)?;
        let requested = message.source.ok_or_else(|| Refusal::field("source", "is required"))?;
        let name = names::webhook_source(&call.caller, "source.name", &requested.name)?.to_owned();
        known::<v1::WebhookSourceKind>("source.kind", requested.kind)?;
        let change = async {
            let row = source(&call, &name, &requested.name).await?;
            let (correlation, etag) = (correlation(scheme_of(row.kind), &requested)?, requested.etag.clone());
            Ok(ChangeWebhookSource::Correlate { name, correlation, etag })
        };
        let row = changed(&call, request, change, &requested.name).await?;
        let source = Some(of_source(&call.caller, &row));
        Ok(Response::new(v1::UpdateWebhookSourceResponse { source }))
    }

    async fn rotate_webhook_source_secret(
        &self,
        request: Request<v1::RotateWebhookSourceSecretRequest>,
    ) -> Answered<v1::RotateWebhookSourceSecretResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "RotateWebhookSourceSecret", &message)?;
        let name = names::webhook_source(&call.caller, "name", &message.name)?.to_owned();
        let overlap_ms = message.overlap.map_or(Some(OVERLAP_MS), ms_of).filter(|ms| *ms <= ROTATION_MS_MAX);
        let overlap_ms = overlap_ms.ok_or_else(|| Refusal::field("overlap", "must be at most 7 days"))?;
        let (etag, mut text, mut kept) = (message.expected_etag, None, None);
        let change = async {
            let row = source(&call, &name, &message.name).await?;
            let secret = secret_of(scheme_of(row.kind), message.secret)?;
            let secret = secret.ok_or_else(|| Refusal::field("name", "the source's kind has no secret"))?;
            let sealed = sealed(&call, &name, &secret)?;
            (text, kept) = (Some(secret), Some(sealed.clone()));
            Ok(ChangeWebhookSource::Rotate { name, secret: sealed, overlap_ms, etag })
        };
        let row = changed(&call, request, change, &message.name).await?;
        let (source, secret) = (Some(of_source(&call.caller, &row)), shown(&row, text, kept.as_ref()));
        Ok(Response::new(v1::RotateWebhookSourceSecretResponse { source, secret }))
    }

    async fn delete_webhook_source(
        &self,
        request: Request<v1::DeleteWebhookSourceRequest>,
    ) -> Answered<v1::DeleteWebhookSourceResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "DeleteWebhookSource", &message)?;
        let name = names::webhook_source(&call.caller, "name", &message.name)?.to_owned();
        let body = Body::Delivery(DeliveryCommand::WebhookSource(ChangeWebhookSource::Delete {
            name,
            etag: message.expected_etag,
        }));
        let reply = call.execute_in_own_scope(request, body).await;
        reply.map_err(|refusal| named(refusal, "source", &message.name))?;
        Ok(Response::new(v1::DeleteWebhookSourceResponse {}))
    }
}

/// Executes a change, and returns the source afterwards.
async fn changed(
    call: &Call<'_>,
    request: Option<RequestId>,
    change: impl Future<Output = Result<ChangeWebhookSource, Refusal>>,
    asked: &str,
) -> Result<Box<SourceSummary>, Refusal> {
    let body = async { Ok(Body::Delivery(DeliveryCommand::WebhookSource(change.await?))) };
    let reply = call.execute_prepared(Scope::Catalogue, request, body).await;
    let reply = reply.map_err(|refusal| {
        let taken = refusal.reason() == crate::error::Reason::AlreadyExists;
        let refusal = if taken { refusal.resource("source", asked) } else { refusal };
        named(refusal, "source", asked)
    })?;
    if let Reply::Source(row) = reply { Ok(row) } else { Err(odd(&reply)) }
}

/// The source of this name.
///
/// # Errors
/// NOT_FOUND, with the name from the request.
async fn source(call: &Call<'_>, name: &str, asked: &str) -> Result<SharedRow<WebhookSource>, Refusal> {
    let found = call.ask(&GetWebhookSource { tenant: call.caller.tenant, name: name.to_owned() }).await?;
    found.ok_or_else(|| Refusal::not_found("source", asked))
}

/// The secret as it is shown once; empty for a repeated request, whose secret was shown before.
fn shown(row: &SourceSummary, text: Option<String>, kept: Option<&SourceSecret>) -> String {
    let is_now = kept.is_some_and(|kept| row.secrets.is_newest(&kept.sealed));
    text.filter(|_| is_now).unwrap_or_default()
}

/// The secret of the source of this name, as it is stored.
fn sealed(call: &Call<'_>, name: &str, text: &str) -> Result<SourceSecret, Refusal> {
    let (tenant, ring) = (call.caller.tenant, call.api.cluster.ring());
    let sealed = sealing::text(&ring, tenant, SecretOf::Source(name), text).ok_or_else(sealing::no_ring)?;
    Ok(SourceSecret { sealed, until: None })
}

/// The secret that was given, or a new one.
fn secret_of(kind: SourceKind, given: String) -> Result<Option<String>, Refusal> {
    let draw = || {
        SigningSecret::of(&rand::random::<[u8; DRAWN_BYTES]>()).expect("the secret has enough bytes").text()
    };
    let text = match kind {
        SourceKind::None if given.is_empty() => return Ok(None),
        SourceKind::None => return Err(Refusal::field("secret", "must be empty for the kind none")),
        SourceKind::Stripe | SourceKind::Slack if given.is_empty() => {
            return Err(Refusal::field("secret", "is required: the other system generates it"));
        }
        SourceKind::StandardWebhooks | SourceKind::Github | SourceKind::Bearer if given.is_empty() => draw(),
        SourceKind::StandardWebhooks
        | SourceKind::Github
        | SourceKind::Stripe
        | SourceKind::Slack
        | SourceKind::Bearer => given,
    };
    if !kind.takes(&text) {
        let message = if kind == SourceKind::StandardWebhooks {
            format!("must be whsec_ and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in base64")
        } else {
            format!(
                "must be {SECRET_TEXT_CHARS_MIN} to {SECRET_TEXT_CHARS_MAX} characters of printable ASCII without \
                 spaces around them"
            )
        };
        return Err(Refusal::field("secret", format!("for the kind {} it {message}", kind.word())));
    }
    Ok(Some(text))
}

fn correlation(kind: SourceKind, requested: &v1::WebhookSource) -> Result<Correlation, Refusal> {
    let text_source = |name: &str, fixed: &str, pointer: &str| match (fixed, pointer) {
        ("", "") => Err(Refusal::field(format!("source.{name}"), format!("set it or {name}_pointer"))),
        (fixed, "") => Ok(TextSource::Fixed(fixed.to_owned())),
        ("", pointer) if pointer.starts_with('/') => Ok(TextSource::Pointer(pointer.to_owned())),
        ("", _) => {
            Err(Refusal::field(format!("source.{name}_pointer"), "must begin with a slash, like /order/id"))
        }
        _ => Err(Refusal::field(format!("source.{name}"), format!("set it or {name}_pointer, not both"))),
    };
    if !(requested.data_pointer.is_empty() || requested.data_pointer.starts_with('/')) {
        return Err(Refusal::field("source.data_pointer", "must begin with a slash, like /order"));
    }
    Ok(Correlation {
        session: text_source("session", &requested.session, &requested.session_pointer)?,
        event_key: text_source("event_key", &requested.event_key, &requested.event_key_pointer)?,
        data: requested.data_pointer.clone(),
        known_ms: known_ms(kind, requested.known_time)?,
    })
}

/// How long messages are remembered to detect copies.
fn known_ms(kind: SourceKind, time: Option<prost_types::Duration>) -> Result<Option<u64>, Refusal> {
    let Some(time) = time else { return Ok(None) };
    if kind.covers() != Covers::Body {
        let message = format!(
            "may not be set for the kind {}: it detects copies of messages in another way",
            kind.word()
        );
        return Err(Refusal::field("source.known_time", message));
    }
    ms_of(time).map(Some).ok_or_else(|| Refusal::field("source.known_time", "must not be negative"))
}

fn kind_of(kind: v1::WebhookSourceKind) -> Result<WebhookSourceKind, Refusal> {
    match kind {
        v1::WebhookSourceKind::StandardWebhooks => Ok(WebhookSourceKind::StandardWebhooks),
        v1::WebhookSourceKind::Github => Ok(WebhookSourceKind::Github),
        v1::WebhookSourceKind::Stripe => Ok(WebhookSourceKind::Stripe),
        v1::WebhookSourceKind::Slack => Ok(WebhookSourceKind::Slack),
        v1::WebhookSourceKind::Bearer => Ok(WebhookSourceKind::Bearer),
        v1::WebhookSourceKind::None => Ok(WebhookSourceKind::None),
        v1::WebhookSourceKind::Unspecified => {
            Err(Refusal::field("source.kind", "is required, for example WEBHOOK_SOURCE_KIND_GITHUB"))
        }
    }
}

/// Returns how messages of a source of this kind are verified.
pub(crate) fn scheme_of(kind: WebhookSourceKind) -> SourceKind {
    match kind {
        WebhookSourceKind::StandardWebhooks => SourceKind::StandardWebhooks,
        WebhookSourceKind::Github => SourceKind::Github,
        WebhookSourceKind::Stripe => SourceKind::Stripe,
        WebhookSourceKind::Slack => SourceKind::Slack,
        WebhookSourceKind::Bearer => SourceKind::Bearer,
        WebhookSourceKind::None => SourceKind::None,
    }
}

fn of_source(caller: &Caller, row: &SourceSummary) -> v1::WebhookSource {
    let kind = match row.kind {
        WebhookSourceKind::StandardWebhooks => v1::WebhookSourceKind::StandardWebhooks,
        WebhookSourceKind::Github => v1::WebhookSourceKind::Github,
        WebhookSourceKind::Stripe => v1::WebhookSourceKind::Stripe,
        WebhookSourceKind::Slack => v1::WebhookSourceKind::Slack,
        WebhookSourceKind::Bearer => v1::WebhookSourceKind::Bearer,
        WebhookSourceKind::None => v1::WebhookSourceKind::None,
    };
    let parts = |source: &TextSource| match source {
        TextSource::Fixed(text) => (text.clone(), String::new()),
        TextSource::Pointer(text) => (String::new(), text.clone()),
    };
    let (session, session_pointer) = parts(&row.correlation.session);
    let (event_key, event_key_pointer) = parts(&row.correlation.event_key);
    v1::WebhookSource {
        name: names::of_webhook_source(caller, &row.name),
        kind: kind.into(),
        session,
        session_pointer,
        event_key,
        event_key_pointer,
        data_pointer: row.correlation.data.clone(),
        old_secret_expire_time: row.secrets.old_until.map(timestamp),
        create_time: Some(timestamp(row.created)),
        update_time: Some(timestamp(row.updated)),
        etag: row.etag.clone(),
        known_time: (scheme_of(row.kind).covers() == Covers::Body)
            .then(|| duration(row.correlation.known_ms.unwrap_or(MESSAGE_KNOWN_MS))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_that_is_stored_can_be_verified() {
        let stored: Vec<&str> = WebhookSourceKind::ALL.iter().map(|kind| kind.word()).collect();
        let verified: Vec<&str> = SourceKind::ALL.iter().map(|kind| kind.word()).collect();
        assert_eq!(stored, verified);
        for kind in WebhookSourceKind::ALL {
            assert_eq!(scheme_of(*kind).word(), kind.word());
        }
    }
}
