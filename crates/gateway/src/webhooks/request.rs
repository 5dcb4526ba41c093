//! A webhook as it comes: its head looked at, its body read within limits.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use serde::de::DeserializeOwned;
use switchward_webhook::Headers;

use super::answer::Refused;
use crate::bodies::Held;
use crate::error::{Reason, Refusal};
use crate::guard::check_headers;
use crate::limits::WEBHOOK_BYTES_MAX;
use crate::transcode::{JSON, check_nodes, essence};
use crate::{beside, body};

/// Refuses what cannot be a webhook, from its head alone: another method than POST, too large headers, a body that is not
/// JSON or is encoded.
pub(super) fn check_head<B>(request: &Request<B>) -> Result<(), Refused> {
    if request.method() != Method::POST {
        return Err(Refusal::new(Reason::Unimplemented, "only POST is supported").into());
    }
    let headers = request.headers();
    check_headers(request)
        .map_err(|refusal| Refused::with(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, refusal))?;
    let unsupported = |field: &str, problem: String| {
        Refused::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, Refusal::field(field, problem))
    };
    let kind = essence(headers);
    if kind != JSON && !(kind.starts_with("application/") && kind.ends_with("+json")) {
        return Err(unsupported("content-type", format!("{kind:?} is not supported; send {JSON}")));
    }
    // The signature covers the body as it comes, so it is not decompressed here.
    let encoded = headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity");
    if encoded {
        return Err(unsupported("content-encoding", "send the body uncompressed".into()));
    }
    Ok(())
}

/// The body, byte for byte, with what it takes of the budgets.
pub(super) async fn body(body: Body, mut held: Held) -> Result<(Bytes, Held), Refused> {
    match body::read(body, WEBHOOK_BYTES_MAX, 0, &mut held).await {
        Ok(bytes) => Ok((bytes, held)),
        Err(refusal) => Err(Refused::with(body::status(&refusal), refusal)),
    }
}

/// What the body says.
///
/// # Errors
/// If it is no JSON of this form, or has more than [`JSON_NODES_MAX`](crate::limits::JSON_NODES_MAX) values.
pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    beside::run(body.len(), || {
        check_nodes(body).map_err(|many| Refused::with(StatusCode::PAYLOAD_TOO_LARGE, many))?;
        let read = serde_json::from_slice(body);
        read.map_err(|error| Refusal::field("", format!("the body is not valid: {error}")).into())
    })
}

/// Calls `look` with a lookup of headers by name.
pub(super) fn with_headers<T>(headers: &HeaderMap, look: impl FnOnce(Headers<'_>) -> T) -> T {
    let pairs: Vec<(&str, &[u8])> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    look(Headers::new(&pairs))
}
