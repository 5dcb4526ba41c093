//! What stands around services and answers their calls, with one shell for all of it.

use axum::body::Body;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::convert::Infallible;
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// A service that answers every request.
pub(crate) trait Answers:
    Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
    + Clone
    + Send
    + 'static
{
}

impl<S> Answers for S where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static
{
}

/// The answer to a request.
pub(crate) type Answer = BoxFuture<'static, Result<Response<Body>, Infallible>>;

/// What stands around a service.
pub(crate) trait Around<S> {
    /// Answers a request, by `inner` or without it. `inner` is ready for one request.
    fn answer(&self, inner: &mut S, request: Request<Body>) -> Answer;
}

/// Takes a service for a future that calls it later, and leaves a clone: the service that was polled ready is the one that
/// must be called.
pub(crate) fn take_ready<S: Clone>(inner: &mut S) -> S {
    let next = inner.clone();
    std::mem::replace(inner, next)
}

/// Puts this around the services.
#[derive(Clone)]
pub(crate) struct AroundLayer<A>(pub(crate) A);

impl<A: Clone, S> Layer<S> for AroundLayer<A> {
    type Service = Surrounded<A, S>;

    fn layer(&self, inner: S) -> Surrounded<A, S> {
        Surrounded { around: self.0.clone(), inner }
    }
}

/// A service with something around it.
#[derive(Clone)]
pub(crate) struct Surrounded<A, S> {
    around: A,
    inner: S,
}

impl<A: Around<S>, S: Answers> Service<Request<Body>> for Surrounded<A, S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        self.around.answer(&mut self.inner, request)
    }
}
