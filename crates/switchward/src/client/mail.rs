//! The one call that is no gRPC: a message, as it came.

use std::future::poll_fn;
use std::time::Duration;

use axum::body::{Body, Bytes};
use http::{Request, StatusCode};
use tonic::codegen::Service as _;

use super::{Target, endpoint, silent};
use crate::exit::Exit;

/// An answer, bytes; it is a few words.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// What a server answers to a message.
pub(crate) struct Brought {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Brings a message. `query` says what the transport knew of it.
///
/// # Errors
/// The address is malformed, nobody answers there, or not in time.
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
            .map_err(|_| Exit::usage("the API key holds characters that no key has"))?;
        poll_fn(|context| channel.poll_ready(context)).await.map_err(|error| gone(&error))?;
        let answer = channel.call(request).await.map_err(|error| gone(&error))?;
        let status = answer.status();
        let body = axum::body::to_bytes(Body::new(answer.into_body()), ANSWER_BYTES_MAX).await;
        let broken = |_| Exit::unreachable(format!("{} broke off its answer", target.address));
        Ok(Brought { status, body: body.map_err(broken)? })
    };
    let late = |_| Exit::unreachable(format!("{} has not answered within {timeout:?}", target.address));
    tokio::time::timeout(timeout, bring).await.map_err(late)?
}
