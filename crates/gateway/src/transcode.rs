//! JSON over HTTP: every unary method as `POST /switchward.v1.<Service>/<Method>` with `application/json`, the unary
//! shape of the Connect protocol.
//!
//! One piece of code serves every method: the body becomes a message by its descriptor, the message a gRPC call to the
//! very services that gRPC clients call, and the reply JSON again. So the three protocols cannot differ. Requests of the
//! gRPC family pass through untouched; everything else is refused here with a message.
//!
//! Chosen: prost-reflect over the embedded descriptors. Rejected: serde implementations generated for every message
//! (pbjson), a second description of each message to keep equal.

mod answer;
mod call;
mod json;
mod request;

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use prost_reflect::{DynamicMessage, MethodDescriptor};
use tonic_web::GrpcWebLayer;
use tower::{Layer as _, Service as _, ServiceExt as _};

use crate::admission::Admission;
use crate::around::{Answer, Answers, Around, AsService};
use crate::body::discard_refused;
use crate::calls::method_at;
use crate::error::{Reason, Refusal};
pub(crate) use request::check_nodes;

pub(crate) const JSON: &str = "application/json";
/// The content types of gRPC and gRPC-Web that are understood.
const GRPC: [&str; 2] = ["application/grpc", "application/grpc+proto"];
const GRPC_WEB: [&str; 4] = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web-text",
    "application/grpc-web-text+proto",
];

/// See the module.
#[derive(Clone)]
pub(crate) struct Transcode(pub(crate) Admission);

impl<S: Answers<Future = Answer> + Clone + 'static> Around<S> for Transcode {
    fn answer(&self, inner: &S, mut request: Request<Body>) -> Answer {
        match Kind::of(&request) {
            Kind::Grpc => inner.answer(request),
            Kind::GrpcWeb => {
                // The layer knows the bare types alone, and takes what has parameters for something else.
                for name in [header::CONTENT_TYPE, header::ACCEPT] {
                    let bare = essence_of(request.headers(), &name);
                    if let Some(known) = GRPC_WEB.into_iter().find(|known| *known == bare) {
                        request.headers_mut().insert(name, HeaderValue::from_static(known));
                    }
                }
                let inner = AsService(inner.clone())
                    .map_request(|request: Request<tonic::body::Body>| request.map(Body::new));
                let answered = GrpcWebLayer::new().layer(inner).call(request);
                Box::pin(async move { Ok(answered.await?.map(Body::new)) })
            }
            Kind::Json(method) => {
                let (inner, admission) = (inner.clone(), self.0.clone());
                Box::pin(async move {
                    let answered = call::unary(inner, &admission, method, request).await;
                    Ok(answered.unwrap_or_else(|status| answer::error(&status)))
                })
            }
            Kind::Refused(refused) => Box::pin(async move {
                discard_refused(request.into_body()).await;
                Ok(refused.into_response())
            }),
        }
    }
}

/// The kind of a request, by its head.
enum Kind {
    Grpc,
    GrpcWeb,
    Json(&'static MethodDescriptor),
    Refused(Box<Refused>),
}

impl Kind {
    fn of<B>(request: &Request<B>) -> Self {
        let http2 = request.version() >= Version::HTTP_2;
        if http2 && request.method() == Method::POST && says_grpc(request.headers()) {
            return Self::Grpc;
        }
        let essence = essence(request.headers());
        let grpc = GRPC.contains(&essence.as_str());
        if grpc && !http2 {
            let message = "gRPC needs HTTP/2; over HTTP/1.1 send gRPC-Web or JSON";
            return Refused::new(StatusCode::HTTP_VERSION_NOT_SUPPORTED, Reason::Unimplemented, message)
                .into();
        }
        if request.method() == Method::POST {
            if grpc {
                return Self::Grpc;
            }
            if GRPC_WEB.contains(&essence.as_str()) {
                return Self::GrpcWeb;
            }
        }
        let path = request.uri().path();
        let Some(method) = method_at(path) else {
            let message = format!("there is no method at {path:?}");
            return Refused::new(StatusCode::NOT_FOUND, Reason::Unimplemented, message).into();
        };
        if request.method() != Method::POST {
            let refused =
                Refused::new(StatusCode::METHOD_NOT_ALLOWED, Reason::Unimplemented, "only POST is supported");
            return refused.with(header::ALLOW, "POST").into();
        }
        if essence != JSON {
            let message = format!("content type {essence:?} is not supported; send {JSON}");
            let refused = Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Reason::FieldInvalid, message);
            return refused.with(header::HeaderName::from_static("accept-post"), JSON).into();
        }
        if method.is_server_streaming() {
            let message = format!("{} is a stream: call it over gRPC or gRPC-Web", method.name());
            return Refused::new(StatusCode::NOT_IMPLEMENTED, Reason::Unimplemented, message).into();
        }
        Self::Json(method)
    }
}

/// Reads a JSON body as the message that the method at `path` takes, exactly as a call does. Returns `None` if there is no
/// such method.
///
/// # Errors
/// As the call is refused.
pub fn read(path: &str, body: &[u8]) -> Option<Result<DynamicMessage, Refusal>> {
    Some(request::message(method_at(path)?.input(), body))
}

/// The answer to a request that is refused, with the HTTP status that says so.
pub(crate) fn refused(status: StatusCode, refusal: Refusal) -> Response<Body> {
    Refused { status, refusal, header: None }.into_response()
}

/// Returns true if the content type is one of gRPC as clients of gRPC write it, so that nothing of it has to be taken off.
fn says_grpc(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE);
    given.is_some_and(|given| GRPC.iter().any(|grpc| given.as_bytes() == grpc.as_bytes()))
}

/// The content type without parameters, in lower case; empty when there is none.
pub(crate) fn essence(headers: &HeaderMap) -> String {
    essence_of(headers, &header::CONTENT_TYPE)
}

fn essence_of(headers: &HeaderMap, name: &header::HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A request that is no call, with the HTTP status that says so.
struct Refused {
    status: StatusCode,
    refusal: Refusal,
    header: Option<(header::HeaderName, HeaderValue)>,
}

impl Refused {
    fn new(status: StatusCode, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, refusal: Refusal::new(reason, message), header: None }
    }

    fn with(mut self, name: header::HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }

    fn into_response(self) -> Response<Body> {
        let mut response = answer::error(&self.refusal.into());
        *response.status_mut() = self.status;
        response.headers_mut().extend(self.header);
        response
    }
}

impl From<Refused> for Kind {
    fn from(refused: Refused) -> Self {
        Self::Refused(Box::new(refused))
    }
}
