//! Mail ingress, the one call by plain HTTP.

use axum::body::{Body, Bytes};
use http::{Request, StatusCode};
use std::future::poll_fn;
use std::time::Duration;
use tonic::codegen::Service as _;

use super::{Target, endpoint, silent};
use crate::exit::Exit;

/// The maximum size of a response, bytes.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The response to a message.
pub(crate) struct Brought {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Posts a message. `query` contains the envelope, if the transport knows it.
///
/// # Errors
/// The address is malformed, or the server does not respond in time.
pub(crate) async fn bring_mail(
    target: &Target,
    timeout: Duration,
    query: String,
    raw: Vec<u8>,
) -> Result<Brought, Exit> {
    let bring = async {
        let gone = |error: &tonic::transport::Error| silent(&target.address, error);
        let mut channel =
            endpoint(&target.address, target.ca.as_deref())?.connect().await.map_err(|error| gone(&error))?;
        let request = Request::post(format!("/v1/mail?{query}"))
            .header("authorization", format!("Bearer {}", target.key))
            .header("content-type", "message/rfc822")
            .body(tonic::body::Body::new(Body::from(raw)))
            .map_err(|_| Exit::usage("the API key has characters that are not allowed in a key"))?;
        poll_fn(|context| channel.poll_ready(context)).await.map_err(|error| gone(&error))?;
        let answer = channel.call(request).await.map_err(|error| gone(&error))?;
        let status = answer.status();
        let body = axum::body::to_bytes(Body::new(answer.into_body()), ANSWER_BYTES_MAX).await;
        let broken = |_| Exit::unreachable(format!("the response from {} was interrupted", target.address));
        Ok(Brought { status, body: body.map_err(broken)? })
    };
    let late = |_| Exit::unreachable(format!("no response from {} within {timeout:?}", target.address));
    tokio::time::timeout(timeout, bring).await.map_err(late)?
}
