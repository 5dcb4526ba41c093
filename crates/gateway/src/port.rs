//! The service of the one port: calls go straight to the services, everything else to the pages.

use axum::{Router, body::Body};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use std::convert::Infallible;
use std::task::{Context, Poll, ready};
use tower::{BoxError, Service, util::BoxCloneSyncService};

use crate::admission::Admission;
use crate::around::Answers;
use crate::guard::check_uri;
use crate::transcode;

/// The services behind their layers.
type Calls = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// The whole port. Cheap to clone.
#[derive(Clone)]
pub struct Port {
    calls: Option<Calls>,
    /// The pages; a path that no page has goes to the calls, too.
    pages: Router,
}

impl Port {
    /// The port of these calls and pages. A path that none of the pages has goes to the calls.
    pub(crate) fn new(calls: impl Answers + Sync, pages: Router) -> Self {
        Self { pages: pages.fallback_service(calls.clone()), calls: Some(BoxCloneSyncService::new(calls)) }
    }

    /// The port of these calls, and of these pages at all other paths.
    pub(crate) fn of_gateway(calls: impl Answers + Sync, pages: Router) -> Self {
        Self { pages, calls: Some(BoxCloneSyncService::new(calls)) }
    }
}

impl From<Router> for Port {
    /// A port of pages alone.
    fn from(pages: Router) -> Self {
        Self { calls: None, pages }
    }
}

impl<B> Service<Request<B>> for Port
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if let Some(calls) = &mut self.calls {
            ready!(calls.poll_ready(context))?;
        }
        Service::<Request<Body>>::poll_ready(&mut self.pages, context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if let Err(refusal) = check_uri(request.uri()) {
            return Box::pin(async { Ok(transcode::refused(StatusCode::URI_TOO_LONG, refusal)) });
        }
        let request = request.map(Body::new);
        // Most requests are calls, and a router in front of them costs more than this look at their path.
        if let Some(calls) = &mut self.calls
            && Admission::guards(request.uri().path())
        {
            return calls.call(request);
        }
        Box::pin(self.pages.call(request))
    }
}
