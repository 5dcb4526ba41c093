//! Answers in JSON: replies as proto-JSON, errors in the shape of the Connect protocol.

use axum::body::Body;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tonic::{
    Code, Status,
    metadata::{Binary, MetadataValue},
};

use crate::error::{Reason, Refusal};

/// The descriptors of `google.rpc`, to show an error's details in words.
static DETAILS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(tonic_types::pb::FILE_DESCRIPTOR_SET).expect("tonic-types ships valid descriptors")
});

/// The answer to a call that went well. Trailing metadata becomes headers that begin with `trailer-`.
///
/// # Errors
/// A reply that JSON cannot say, which is the server's own fault.
pub(super) fn ok(
    reply: &DynamicMessage,
    head: &HeaderMap,
    trailers: &HeaderMap,
) -> Result<Response<Body>, Status> {
    let body =
        serde_json::to_vec(reply).map_err(|error| internal(&format!("the reply is not JSON: {error}")))?;
    let mut response = json_response(StatusCode::OK, body);
    for (name, value) in own(head) {
        response.headers_mut().append(name, value.clone());
    }
    append_trailers(response.headers_mut(), trailers);
    Ok(response)
}

/// The answer to a call that was refused or failed.
pub(super) fn error(status: &Status) -> Response<Body> {
    let body = json!({
        "code": word(status.code()),
        "message": status.message(),
        "details": details(status.details()),
    });
    let mut response = json_response(http_status(status.code()), body.to_string().into_bytes());
    append_trailers(response.headers_mut(), &status.metadata().clone().into_headers());
    response
}

/// A failure that is the server's own fault.
pub(super) fn internal(message: &str) -> Status {
    Refusal::new(Reason::InternalError, message).into()
}

fn json_response(status: StatusCode, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(super::JSON));
    response
}

fn append_trailers(headers: &mut HeaderMap, trailers: &HeaderMap) {
    for (name, value) in own(trailers) {
        if let Ok(name) = HeaderName::try_from(format!("trailer-{name}")) {
            headers.append(name, value.clone());
        }
    }
}

/// The metadata that a service set, without what gRPC itself needs.
fn own(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    let gone = [header::CONTENT_TYPE, header::CONTENT_LENGTH, header::DATE, header::TE, header::TRAILER];
    headers.iter().filter(move |(name, _)| !name.as_str().starts_with("grpc-") && !gone.contains(name))
}

/// The details of an encoded `google.rpc.Status`: each with its type, its bytes in base64 and, in `debug`, its words.
fn details(encoded: &[u8]) -> Vec<Value> {
    let status = tonic_types::pb::Status::decode(encoded).unwrap_or_default();
    let details = status.details.iter().map(|detail| {
        let name = detail.type_url.rsplit('/').next().unwrap_or_default();
        let mut entry = json!({ "type": name, "value": base64(&detail.value) });
        if let Some(words) = words(name, &detail.value) {
            entry["debug"] = words;
        }
        entry
    });
    details.collect()
}

fn words(name: &str, value: &[u8]) -> Option<Value> {
    let descriptor = DETAILS.get_message_by_name(name)?;
    let message = DynamicMessage::decode(descriptor, value).ok()?;
    serde_json::to_value(message).ok()
}

/// Base64 without padding, as both gRPC and Connect write it.
fn base64(bytes: &[u8]) -> String {
    let value = MetadataValue::<Binary>::from_bytes(bytes);
    String::from_utf8_lossy(value.as_encoded_bytes()).into_owned()
}

/// The code's word in the Connect protocol.
fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "ok",
        Code::Cancelled => "canceled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

/// The code's HTTP status in the Connect protocol.
fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::Cancelled => StatusCode::from_u16(499).expect("499 is a valid status"),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
    }
}
