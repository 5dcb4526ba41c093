//! The gRPC services of the port by name: each call is one look at the service's name in its path.
//!
//! Rejected: tonic's own routes, which are a router of axum: it matches patterns, and boxes each answer twice more.

use axum::{body::Body, response::IntoResponse};
use futures::future::Either;
use http::{Request, Response};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::{Status, server::NamedService};
use tower::util::{BoxCloneSyncService, Oneshot};
use tower::{Service, ServiceExt as _};

type GrpcService = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// A generated server of a gRPC service, as `SessionServiceServer::new(...)` makes it.
pub trait GrpcServer:
    Service<Request<tonic::body::Body>, Response: IntoResponse, Error = Infallible, Future: Send + 'static>
    + NamedService
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> GrpcServer for S where
    S: Service<
            Request<tonic::body::Body>,
            Response: IntoResponse,
            Error = Infallible,
            Future: Send + 'static,
        > + NamedService
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Services by name. Cheap to clone. A call of another service is answered with UNIMPLEMENTED.
#[derive(Clone, Default)]
pub(crate) struct ByName(Arc<HashMap<&'static str, GrpcService>>);

impl ByName {
    /// Adds a service under the name that its methods' paths begin with; an earlier one of that name is replaced.
    pub(crate) fn add<S: GrpcServer>(&mut self, service: S) {
        let service = service
            .map_request(|request: Request<Body>| request.map(tonic::body::Body::new))
            .map_response(IntoResponse::into_response);
        Arc::make_mut(&mut self.0).insert(S::NAME, BoxCloneSyncService::new(service));
    }

    /// The service at a path, which is `/` with the service's name, `/` and the method's name.
    fn at(&self, path: &str) -> Option<&GrpcService> {
        let (service, _) = path.strip_prefix('/')?.split_once('/')?;
        self.0.get(service)
    }
}

impl Service<Request<Body>> for ByName {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<Oneshot<GrpcService, Request<Body>>, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self.at(request.uri().path()) {
            Some(service) => Either::Left(service.clone().oneshot(request)),
            None => Either::Right(ready(Ok(Status::unimplemented("").into_http()))),
        }
    }
}
