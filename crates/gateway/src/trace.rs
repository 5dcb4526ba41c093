//! A span for every call, under the trace that the caller names in `traceparent`, and an id for every answer: the
//! caller's own `x-request-id`, or else one that was drawn.

use axum::body::Body;
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use opentelemetry::Context as TraceContext;
use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::TraceContextExt as _;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::pin;
use std::task::{Context, Poll};
use tonic::Status;
use tower::{Layer, Service};
use tracing::field::{Empty, display};
use tracing::{Instrument as _, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::proxy::ClientAddress;

/// Names one request in logs, on both sides.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Its longest; a longer one of the caller's is not taken over.
const REQUEST_ID_CHARS_MAX: usize = 128;
const HEX: &[u8; 16] = b"0123456789abcdef";

/// The header of W3C Trace Context.
pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Returns the caller's `traceparent` as version 00 writes it, `None` if it names no trace or no span. Anything else is not
/// kept.
pub(crate) fn traceparent(given: &str) -> Option<String> {
    let propagator = TraceContextPropagator::new();
    let mut carrier = HashMap::from([(TRACEPARENT.as_str().to_owned(), given.to_owned())]);
    let context = propagator.extract_with_context(&TraceContext::new(), &carrier);
    if !context.span().span_context().is_valid() {
        return None;
    }
    propagator.inject_context(&context, &mut carrier);
    carrier.remove(TRACEPARENT.as_str())
}

/// Puts a [`Traced`] before a service.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TraceLayer;

impl<S> Layer<S> for TraceLayer {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Traced<S> {
        Traced { inner }
    }
}

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct Traced<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Traced<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let id = request_id(request.headers());
        let span = span(&request, &id);
        let answered = self.inner.call(request);
        let named = async move {
            let mut response = answered.await?;
            // A call that was passed on has the id under which the far server has logged it.
            response.headers_mut().entry(REQUEST_ID).or_insert(id);
            Ok(response)
        };
        if span.is_disabled() {
            return Box::pin(named);
        }
        Box::pin(async move {
            let mut named = pin!(named.instrument(span));
            let response: Response<Body> = named.as_mut().await?;
            // A status that comes in the trailers is not known yet; a refusal comes in the headers.
            let status = response.headers().get(Status::GRPC_STATUS).and_then(|it| it.to_str().ok());
            named.span().record("rpc.response.status_code", status.unwrap_or("0"));
            Ok(response)
        })
    }
}

/// Returns the caller's own id of the request if it is valid, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(REQUEST_ID).filter(|id| {
        let bytes = id.as_bytes();
        (1..=REQUEST_ID_CHARS_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    });
    let mut id = given.cloned().unwrap_or_else(drawn);
    // No later response has the same id, so it must not displace repeated headers from the HTTP/2 header table.
    id.set_sensitive(true);
    id
}

/// Draws an id: 32 hex digits.
fn drawn() -> HeaderValue {
    let mut digits = [0u8; 32];
    let mut left = rand::random::<u128>();
    for digit in &mut digits {
        *digit = HEX[(left & 15) as usize];
        left >>= 4;
    }
    HeaderValue::from_bytes(&digits).expect("hex digits may stand in a header")
}

fn span<B>(request: &Request<B>, id: &HeaderValue) -> Span {
    let method = request.uri().path().trim_start_matches('/');
    let client = request.extensions().get::<ClientAddress>().map(|ClientAddress(client)| display(client));
    let span = tracing::info_span!(
        "rpc",
        otel.name = method,
        otel.kind = "server",
        rpc.system.name = "grpc",
        rpc.method = method,
        rpc.response.status_code = Empty,
        request_id = id.to_str().unwrap_or_default(),
        client.address = client,
    );
    // Without the header the span begins a trace, as it does by itself.
    if !span.is_disabled() && request.headers().contains_key(TRACEPARENT) {
        let parent = opentelemetry::global::get_text_map_propagator(|known| {
            known.extract(&Carrier(request.headers()))
        });
        // Fails only if no exporter was set up.
        let _alone = span.set_parent(parent);
    }
    span
}

struct Carrier<'a>(&'a HeaderMap);

impl Extractor for Carrier<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(http::HeaderName::as_str).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn only_what_names_a_trace_and_a_span_is_a_traceparent() {
        let good = format!("00-{TRACE}-{SPAN}-01");
        assert_eq!(traceparent(&good), Some(good.clone()));
        for bad in [
            "",
            "00-zz-zz-zz",
            &good.to_uppercase(),
            &format!("{good}-x"),
            &format!("ff-{TRACE}-{SPAN}-01"),
            &format!("00-{}-{SPAN}-01", "0".repeat(32)),
            &format!("00-{TRACE}-{}-01", "0".repeat(16)),
            &format!("00-{TRACE}x-{SPAN}-01"),
            &format!("00-{TRACE}{TRACE}-{SPAN}-01"),
        ] {
            assert_eq!(traceparent(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn each_request_without_an_id_gets_another_one() {
        let [one, two] = [0; 2].map(|_| request_id(&HeaderMap::new()));
        assert_ne!(one, two);
        for id in [one, two] {
            let text = id.to_str().expect("a text");
            assert!(text.len() == 32 && text.bytes().all(|byte| HEX.contains(&byte)), "{text}");
        }
    }

    #[test]
    fn what_is_kept_has_the_form_of_version_00() {
        let kept = Some(format!("00-{TRACE}-{SPAN}-01"));
        for given in [
            format!("00-{TRACE}-{SPAN}-1"),
            format!("00-{TRACE}-{SPAN}-03"),
            format!("01-{TRACE}-{SPAN}-01-x"),
        ] {
            assert_eq!(traceparent(&given), kept, "{given}");
        }
    }
}
