//! What stands around services and answers their calls, with one shell for all of it.
//!
//! Services are called by reference, unlike those of tower: these are cloned for each call, which counts up and down what all
//! cores share.

use axum::body::Body;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::convert::Infallible;
use std::task::{Context, Poll};
use tower::Service;

/// A service that answers every request, and is always ready.
pub(crate) trait Answers: Send + Sync {
    /// The answer to come.
    type Future: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static;

    /// Begins to answer a request.
    fn answer(&self, request: Request<Body>) -> Self::Future;
}

impl<S: Answers> Answers for &S {
    type Future = S::Future;

    fn answer(&self, request: Request<Body>) -> S::Future {
        S::answer(self, request)
    }
}

/// The answer to a request.
pub(crate) type Answer = BoxFuture<'static, Result<Response<Body>, Infallible>>;

/// What stands around a service.
pub(crate) trait Around<S>: Send + Sync {
    /// Answers a request, by `inner` or without it.
    fn answer(&self, inner: &S, request: Request<Body>) -> Answer;
}

/// A service with something around it.
#[derive(Clone)]
pub(crate) struct Surrounded<A, S> {
    pub(crate) around: A,
    pub(crate) inner: S,
}

impl<A: Around<S>, S: Answers> Answers for Surrounded<A, S> {
    type Future = Answer;

    fn answer(&self, request: Request<Body>) -> Answer {
        self.around.answer(&self.inner, request)
    }
}

/// The same as a service of tower, for the layers of others.
#[derive(Clone)]
pub(crate) struct AsService<S>(pub(crate) S);

impl<S: Answers> Service<Request<Body>> for AsService<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = S::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        self.0.answer(request)
    }
}
