//! Callbacks: a reply token lets an event into the state that it was made for. See
//! `docs/webhooks.md#with-a-reply-token`.

use axum::{
    body::Body,
    extract::{Path, State, rejection::PathRejection},
};
use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;
use switchward_state::RequestId;
use switchward_state::session::ReplyToken;
use switchward_webhook::{SourceKind, Unproven, verify};
use tonic::metadata::MetadataMap;

use super::answer::{Outcome, Refused};
use super::event::{Brought, message_id};
use super::request::{body, check_head, read, with_headers};
use super::{answer, event};
use crate::api::{Api, Call};
use crate::error::{Reason, Refusal};
use crate::{auth, reply_tokens};

/// The prefix of the digested ids of callbacks.
const FROM: &str = "callback";

/// What a sender posts to a callback URL; other fields are refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallbackBody {
    event_key: String,
    #[serde(default)]
    data: Map<String, Value>,
}

/// `POST /v1/callbacks/{token}`.
pub(super) async fn by_path(
    State(api): State<Api>,
    path: Result<Path<String>, PathRejection>,
    request: Request<Body>,
) -> Response<Body> {
    let recorded = async {
        check_head(&request)?;
        let Path(token) = path.map_err(|_| auth::invalid_token())?;
        let (call, token) = opened(&api, &token, request.headers()).await?;
        received(&call, token, None, request).await
    };
    answer::of(recorded.await)
}

/// `POST /v1/webhook/{session}/{state}`, with the token as `authorization: Bearer` or `?token=`.
pub(super) async fn by_state(
    State(api): State<Api>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request<Body>,
) -> Response<Body> {
    let recorded = async {
        check_head(&request)?;
        let token = brought(request.headers(), request.uri()).ok_or_else(auth::invalid_token)?;
        let (call, token) = opened(&api, &token, request.headers()).await?;
        let Path((session, state)) = path.map_err(|_| Refusal::field("", "the path is not valid text"))?;
        reply_tokens::session(&call.caller, &token, &session)?;
        received(&call, token, Some(state), request).await.map(Outcome::with_state)
    };
    answer::of(recorded.await)
}

/// The token of a request: from its header, else from its address.
fn brought(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    if let Some(token) = auth::credential(headers) {
        return Some(token.to_owned());
    }
    // A token's characters need no percent-encoding.
    uri.query()?.split('&').find_map(|part| part.strip_prefix("token=")).map(str::to_owned)
}

/// Returns the call of the token's holder, and counts it for the token and for its session.
async fn opened<'d>(
    api: &'d Api,
    token: &str,
    headers: &HeaderMap,
) -> Result<(Call<'d>, ReplyToken), Refused> {
    let token: ReplyToken = token.parse().map_err(|_| auth::invalid_token())?;
    let metadata = MetadataMap::from_headers(headers.clone());
    let call = api.call_by_token(&metadata, &token).await;
    let call =
        call.map_err(|no| if no.reason() == Reason::CredentialInvalid { auth::invalid_token() } else { no });
    let call = call?;
    api.callback_rates.take(&token, api.cluster.now())?;
    Ok((call, token))
}

/// Reads what the callback says, and records it.
async fn received(
    call: &Call<'_>,
    token: ReplyToken,
    state: Option<String>,
    request: Request<Body>,
) -> Result<Outcome, Refused> {
    let (head, body) = request.into_parts();
    let held = call.api.bodies.begin(Some(call.caller.tenant), &head.extensions);
    let (body, _held) = self::body(body, held).await?;
    let said: CallbackBody = read(&body)?;
    let id = id(&head.headers, &body)?;
    let brought = Brought {
        session: token.session,
        session_name: token.session.to_string(),
        key: said.event_key,
        data: said.data,
        state,
        token: Some(token),
        once: None,
        webhook: None,
        id,
    };
    event::record(call, brought).await
}

/// Returns the id of the message, if its sender gave one. The token has proven who the sender is.
fn id(headers: &HeaderMap, body: &Bytes) -> Result<Option<RequestId>, Refused> {
    let verified = with_headers(headers, |headers| {
        verify(SourceKind::None, &[], headers, body, Duration::ZERO, Unproven::Allowed)
    });
    let verified = verified.map_err(|problem| Refusal::field("webhook-id", problem.to_string()))?;
    Ok(verified.id.map(|id| message_id(FROM, &id)))
}
