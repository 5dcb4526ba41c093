//! The whole port of a server.

use axum::{Router, body::Body};
use http::{HeaderValue, Request, Response};
use std::convert::Infallible;
use std::task::{Context, Poll};
use tower::Service;

use crate::admission::Admission;
use crate::around::{Answer, Around as _};
use crate::port::Port;
use crate::proxy::PassOn;
use crate::routes::{HidingServices, Services, calls};

/// All gRPC services as one. Cheap to clone. A call of a service that is not among them is answered with UNIMPLEMENTED.
#[derive(Clone)]
pub struct OneService {
    services: HidingServices,
    /// Asked first.
    pass_on: Option<PassOn>,
}

impl OneService {
    /// These services, which answer everything themselves.
    #[must_use]
    pub fn of(services: Services) -> Self {
        Self { services: services.into_hiding(), pass_on: None }
    }

    /// Passes on what this server cannot answer.
    #[must_use]
    pub fn passing_on(self, pass_on: PassOn) -> Self {
        Self { pass_on: Some(pass_on), ..self }
    }
}

impl Service<Request<Body>> for OneService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.services.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        match &self.pass_on {
            Some(pass_on) if pass_on.is_needed() => pass_on.answer(self.services.clone(), request),
            Some(_) | None => self.services.call(request),
        }
    }
}

/// The whole port: `pages` at their own paths, and at every other path the services by gRPC, gRPC-Web and JSON. Pages of
/// the given origins may call the services from a browser. Bodies of calls are read as `admission` lets them.
pub fn one_port(
    services: OneService,
    pages: Router,
    origins: Vec<HeaderValue>,
    admission: &Admission,
) -> Port {
    Port::new(calls(services, origins, admission), pages)
}
