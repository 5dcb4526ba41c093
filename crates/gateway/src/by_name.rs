//! The gRPC services of the port by name: each call is one look at the service's name in its path.
//!
//! Rejected: tonic's own routes, which are a router of axum: it matches patterns, and boxes each answer twice more. Services
//! of tower in boxes, too: a box and a clone for each call, and one more box for its answer.

use axum::body::Body;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::convert::Infallible;
use std::future::ready;
use tonic::{Status, server::NamedService};
use tower::Service;

use crate::known::Known;

/// The answer of a gRPC service, as generated servers give it.
pub(crate) type Answered = BoxFuture<'static, Result<Response<tonic::body::Body>, Infallible>>;

type GrpcService = Box<dyn Fn(Request<Body>) -> Answered + Send + Sync>;

/// A generated server of a gRPC service, as `SessionServiceServer::new(...)` makes it. It is always ready.
pub trait GrpcServer:
    Service<Request<Body>, Response = Response<tonic::body::Body>, Error = Infallible, Future = Answered>
    + NamedService
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> GrpcServer for S where
    S: Service<Request<Body>, Response = Response<tonic::body::Body>, Error = Infallible, Future = Answered>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Services by name. A call of another service is answered with UNIMPLEMENTED.
#[derive(Default)]
pub(crate) struct ByName(Known<&'static str, GrpcService>);

impl ByName {
    /// Adds a service under the name that its methods' paths begin with; an earlier one of that name is replaced.
    pub(crate) fn add<S: GrpcServer>(&mut self, service: S) {
        self.0.insert(S::NAME, Box::new(move |request: Request<Body>| service.clone().call(request)));
    }

    /// Answers a call by the service at its path, which is `/` with the service's name, `/` and the method's name.
    pub(crate) fn call(&self, request: Request<Body>) -> Answered {
        match self.at(request.uri().path()) {
            Some(service) => service(request),
            None => Box::pin(ready(Ok(Status::unimplemented("").into_http()))),
        }
    }

    fn at(&self, path: &str) -> Option<&GrpcService> {
        let (service, _) = path.strip_prefix('/')?.split_once('/')?;
        self.0.get(service)
    }
}
