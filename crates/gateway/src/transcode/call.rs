//! A JSON request as an in-process gRPC call, and its reply as a JSON answer.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Version, header, request::Parts};
use http_body_util::BodyExt;
use prost::Message;
use prost_reflect::{DynamicMessage, MethodDescriptor};
use tonic::Status;

use super::answer::internal;
use super::{answer, request};
use crate::admission::{Admission, Counted};
use crate::around::Answers;
use crate::calls::{frame, unframe};
use crate::error::{Reason, Refusal};
use crate::limits::MESSAGE_BYTES_MAX;
use crate::{beside, body};

const GRPC_STATUS: &str = "grpc-status";
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const CONNECT_TIMEOUT: HeaderName = HeaderName::from_static("connect-timeout-ms");
const CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
/// Digits that the Connect protocol allows in a time-out.
const TIMEOUT_DIGITS_MAX: usize = 10;
/// Milliseconds that still fit into the eight digits of a gRPC time-out.
const GRPC_TIMEOUT_MS_MAX: u64 = 99_999_999;

/// Headers of one hop, or of the JSON body, which mean nothing to the gRPC call.
const DROPPED: [HeaderName; 13] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::DATE,
];

/// Carries out one unary call.
///
/// # Errors
/// Whatever is wrong with the request, and every answer of the service except OK.
pub(super) async fn unary(
    inner: impl Answers,
    admission: &Admission,
    method: &MethodDescriptor,
    request: Request<Body>,
) -> Result<Response<Body>, Status> {
    let (parts, body) = request.into_parts();
    let mut parts = grpc_head(parts)?;
    let mut hold = admission.admit(parts.uri.path(), &parts.headers, &parts.extensions).await?;
    parts.extensions.insert(Counted);
    let bytes = body::read(body, MESSAGE_BYTES_MAX, 0, &mut hold.body).await?;
    let read = || Ok::<_, Refusal>(request::message(method.input(), &bytes)?.encode_to_vec());
    let share = hold.share;
    let permit = admission.permit(share, bytes.len()).await?;
    let message = beside::run(bytes.len(), read)?;
    drop((permit, bytes, hold));
    let Ok(response) = inner.answer(Request::from_parts(parts, Body::from(frame(&message)))).await;

    let (head, body) = response.into_parts();
    if head.headers.contains_key(GRPC_STATUS) {
        accepted(&head.headers)?;
    }
    let collected =
        body.collect().await.map_err(|error| internal(&format!("the reply ended early: {error}")))?;
    let trailers = collected.trailers().cloned().unwrap_or_default();
    if !head.headers.contains_key(GRPC_STATUS) {
        accepted(&trailers)?;
    }
    let bytes = collected.to_bytes();
    let _permit = admission.permit(share, bytes.len()).await?;
    beside::run(bytes.len(), || answer::ok(&reply(method, &bytes)?, &head.headers, &trailers))
}

/// The head of the gRPC call: the caller's own headers, credentials and traces among them, without those of JSON.
fn grpc_head(mut parts: Parts) -> Result<Parts, Refusal> {
    let encoding = parts.headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(Refusal::new(
            Reason::Unimplemented,
            "a compressed body is not supported: send it uncompressed",
        ));
    }
    if parts.headers.get(CONNECT_VERSION).is_some_and(|version| version != "1") {
        return Err(Refusal::field(CONNECT_VERSION.as_str(), "must be 1"));
    }
    let timeout = timeout(&parts.headers)?;
    let names: Vec<HeaderName> = parts.headers.keys().cloned().collect();
    for name in names {
        let foreign = name.as_str().starts_with("grpc-") || name.as_str().starts_with("connect-");
        if foreign || DROPPED.contains(&name) {
            parts.headers.remove(&name);
        }
    }
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    parts.headers.insert(header::TE, HeaderValue::from_static("trailers"));
    if let Some(timeout) = timeout {
        parts.headers.insert(GRPC_TIMEOUT, timeout);
    }
    parts.version = Version::HTTP_2;
    Ok(parts)
}

/// `connect-timeout-ms` as a `grpc-timeout`.
fn timeout(headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
    let Some(value) = headers.get(CONNECT_TIMEOUT) else { return Ok(None) };
    let bad = || Refusal::field(CONNECT_TIMEOUT.as_str(), "must be one to ten digits");
    let text = value.to_str().map_err(|_| bad())?;
    if text.is_empty() || text.len() > TIMEOUT_DIGITS_MAX || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let millis: u64 = text.parse().map_err(|_| bad())?;
    let timeout =
        if millis <= GRPC_TIMEOUT_MS_MAX { format!("{millis}m") } else { format!("{}S", millis / 1_000) };
    HeaderValue::from_str(&timeout).map(Some).map_err(|_| bad())
}

/// Returns `Ok` if these headers or trailers have the status OK.
fn accepted(headers: &HeaderMap) -> Result<(), Status> {
    match Status::from_header_map(headers) {
        Some(status) if status.code() == tonic::Code::Ok => Ok(()),
        Some(status) => Err(status),
        None => Err(internal("the reply has no status")),
    }
}

fn reply(method: &MethodDescriptor, body: &Bytes) -> Result<DynamicMessage, Status> {
    let message = unframe(body).map_err(|_| internal("the reply is not one message"))?;
    DynamicMessage::decode(method.output(), message.bytes)
        .map_err(|error| internal(&format!("the reply cannot be decoded: {error}")))
}
