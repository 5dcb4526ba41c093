//! Mail by HTTP: messages that a mail provider, or a person with a file, hands over.
//!
//! `POST /v1/mail` takes the bytes of one message, as `message/rfc822`, under a key of the role operator or admin. What its
//! transport knew may be in the query: `sender` (empty for the null sender), `recipient` (may be repeated),
//! `peer` with `helo` (the host that handed the message over to the caller, and the name that it gave itself).
//! Only sessions of the key's tenant are found, and the history says whose key a reply was delivered with. What the query
//! says about the message's path, and the authentication results of a trusted host in the message, are only as good as the
//! caller: they prove something only if the configuration names the caller as trusted.
//!
//! | Status | When |
//! |---|---|
//! | 200 | `{"outcome", "why"}`: `recorded`, `bounced`, `ignored` or `quarantined`. It need not be brought again. |
//! | 400 | The query is not understood. |
//! | 401, 403 | No key, or one of another role. |
//! | 405, 415 | No POST; no message. |
//! | 408, 413, 431 | The body did not come in time; body or headers are too large. |
//! | 503 | It cannot be taken now; `retry-after` says when to bring it again. |

use axum::{
    Router,
    body::Body,
    extract::{Query, State},
    routing::any,
};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use switchward_mail::{
    incoming::{Envelope, Peer},
    limits::MESSAGE_BYTES_MAX,
};
use switchward_shard::TenantPermits;

use super::{MailIngress, Outcome};
use crate::auth::{self, roles};
use crate::error::{Reason, Refusal};
use crate::guard::check_headers;
use crate::limits::{MAIL_AGAIN_S, MAIL_POSTS_MAX, MAIL_POSTS_OF_TENANT_MAX};
use crate::transcode::{JSON, essence};
use crate::{body, transcode};

/// The content type of a message.
const KIND: &str = "message/rfc822";

/// The state of the HTTP handler: the ingress, and the limit of messages at one time.
#[derive(Clone)]
struct Handler {
    ingress: MailIngress,
    /// Callers trusted about the path of a message: `TENANT/NAME`, the name being a key's subject.
    trusted: Arc<[String]>,
    permits: TenantPermits,
}

/// The route of mail, to be added to the other pages of [`one_port`](crate::one_port::one_port). Only the callers in
/// `trusted`, as `TENANT/NAME`, are believed about the path of a message.
pub fn pages(ingress: &MailIngress, trusted: &[String]) -> Router {
    let permits = TenantPermits::new(MAIL_POSTS_MAX, MAIL_POSTS_OF_TENANT_MAX);
    let handler = Handler { ingress: ingress.clone(), trusted: trusted.into(), permits };
    Router::new().route("/v1/mail", any(bring)).with_state(handler)
}

type Refused = (StatusCode, Refusal);

async fn bring(State(handler): State<Handler>, request: Request<Body>) -> Response<Body> {
    match brought(&handler, request).await {
        Ok(Outcome::Later) => later(),
        Ok(outcome) => {
            let (what, why) = outcome.words();
            let mut response = Response::new(Body::from(json!({ "outcome": what, "why": why }).to_string()));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
            response
        }
        Err((status, refusal)) => {
            let mut response = transcode::refused(status, refusal);
            if status == StatusCode::METHOD_NOT_ALLOWED {
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            }
            response
        }
    }
}

fn later() -> Response<Body> {
    let refusal = Refusal::new(Reason::Draining, "the message cannot be accepted now; send it again");
    let mut response = transcode::refused(StatusCode::SERVICE_UNAVAILABLE, refusal);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(MAIL_AGAIN_S));
    response
}

async fn brought(handler: &Handler, request: Request<Body>) -> Result<Outcome, Refused> {
    if request.method() != Method::POST {
        let refusal = Refusal::new(Reason::Unimplemented, "only POST is supported");
        return Err((StatusCode::METHOD_NOT_ALLOWED, refusal));
    }
    check_headers(&request).map_err(|refusal| (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, refusal))?;
    let cluster = &handler.ingress.api.cluster;
    let caller = auth::confirmed_caller(cluster, auth::credential(request.headers())).await;
    let caller = caller.map_err(|refusal| match refusal.reason() == Reason::CredentialInvalid {
        true => (StatusCode::UNAUTHORIZED, refusal),
        false => (StatusCode::SERVICE_UNAVAILABLE, refusal),
    })?;
    let caller = caller.allow(roles::OPERATE).map_err(|refusal| (StatusCode::FORBIDDEN, refusal))?;
    let kind = essence(request.headers());
    if kind != KIND {
        let refusal = Refusal::field("content-type", format!("{kind:?} is not supported; send {KIND}"));
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal));
    }
    let envelope = envelope(&request).map_err(|refusal| (StatusCode::BAD_REQUEST, refusal))?;
    let (head, body) = request.into_parts();
    let mut held = handler.ingress.api.bodies.begin(Some(caller.tenant), &head.extensions);
    let raw = match body::read(body, MESSAGE_BYTES_MAX, 0, &mut held).await {
        Err(refusal) if body::exceeds_budget(&refusal) => return Ok(Outcome::Later),
        read => read.map_err(|refusal| (body::status(&refusal), refusal))?,
    };
    // Taken once the message is complete, so that a slow sender holds no permit.
    let Some(_permit) = handler.permits.take(caller.tenant) else { return Ok(Outcome::Later) };
    let name = format!("{}/{}", caller.tenant_name, caller.actor.subject);
    let ingress = handler.ingress.of(caller.tenant, caller.actor.subject);
    if handler.trusted.contains(&name) {
        return Ok(ingress.ingest(&envelope, &raw).await);
    }
    let envelope = Envelope { peer: None, ..envelope };
    Ok(ingress.without_trust().ingest(&envelope, &raw).await)
}

/// Reads the message's envelope from the query.
fn envelope(request: &Request<Body>) -> Result<Envelope, Refusal> {
    let pairs: Query<Vec<(String, String)>> = Query::try_from_uri(request.uri())
        .map_err(|_| Refusal::field("query", "must have the form name=value&name=value"))?;
    let mut envelope = Envelope::default();
    let (mut address, mut helo) = (None::<IpAddr>, String::new());
    for (name, value) in pairs.0 {
        match name.as_str() {
            "sender" => envelope.sender = Some(value),
            "recipient" => envelope.recipients.push(value),
            "peer" => {
                let read = value.parse();
                address = Some(read.map_err(|_| Refusal::field("peer", "must be an IP address"))?);
            }
            "helo" => helo = value,
            other => {
                let known = "is unknown; use sender, recipient, peer and helo";
                return Err(Refusal::field(other, known));
            }
        }
    }
    envelope.peer = address.map(|address| Peer { address, helo });
    Ok(envelope)
}
