//! The service of the one port: calls go straight to the services, everything else to the pages.

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower::{BoxError, Service};

use crate::admission::Admission;
use crate::around::Answer;
use crate::body::discard_refused;
use crate::guard::check_uri;
use crate::transcode;
use crate::unread::Unread;

/// The services behind their layers, also as a service of tower. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Calls(Arc<dyn Fn(Request<Body>) -> Answer + Send + Sync>);

impl Calls {
    /// The services that answer like this.
    pub(crate) fn new(answer: impl Fn(Request<Body>) -> Answer + Send + Sync + 'static) -> Self {
        Self(Arc::new(answer))
    }
}

impl Service<Request<Body>> for Calls {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        (self.0)(request)
    }
}

/// The whole port. Cheap to clone.
#[derive(Clone)]
pub struct Port {
    calls: Option<Calls>,
    /// The pages; a path that no page has goes to the calls, too.
    pages: Router,
}

impl Port {
    /// The port of these calls and pages. A path that none of the pages has goes to the calls.
    pub(crate) fn new(calls: Calls, pages: Router) -> Self {
        Self { pages: pages.fallback_service(calls.clone()), calls: Some(calls) }
    }

    /// The port of these calls, and of these pages at all other paths.
    pub(crate) fn of_gateway(calls: Calls, pages: Router) -> Self {
        Self { pages, calls: Some(calls) }
    }

    /// Answers a request, by the services or by the pages.
    pub(crate) fn answer<B>(&self, request: Request<B>) -> Answer
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let request = request.map(Body::new);
        if let Err(refusal) = check_uri(request.uri()) {
            return Box::pin(async move {
                discard_refused(request.into_body()).await;
                Ok(transcode::refused(StatusCode::URI_TOO_LONG, refusal))
            });
        }
        // Most requests are calls, and a router in front of them costs more than this look at their path.
        if let Some(Calls(answer)) = &self.calls
            && Admission::guards(request.uri().path())
        {
            return answer(request);
        }
        let (request, unread) = Unread::of(request);
        let answering = self.pages.clone().call(request);
        Box::pin(async move {
            let answered = answering.await;
            unread.discard().await;
            answered
        })
    }
}

impl From<Router> for Port {
    /// A port of pages alone.
    fn from(pages: Router) -> Self {
        Self { calls: None, pages }
    }
}
