//! The whole port of a server.

use axum::{Router, body::Body};
use futures::future::Either;
use http::{HeaderValue, Request};
use std::sync::Arc;

use crate::admission::Admission;
use crate::around::{Answer, Answers, Around as _};
use crate::hide::{HidingServices, Shown};
use crate::port::Port;
use crate::proxy::PassOn;
use crate::routes::{Services, calls};

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

/// The services as the layers before them call them.
#[derive(Clone)]
struct Called(Arc<OneService>);

impl Answers for Called {
    type Future = Either<Shown, Answer>;

    fn answer(&self, request: Request<Body>) -> Self::Future {
        let OneService { services, pass_on } = &*self.0;
        match pass_on {
            Some(pass_on) if pass_on.is_needed() => Either::Right(pass_on.answer(services, request)),
            Some(_) | None => Either::Left(services.answer(request)),
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
    Port::new(calls(Called(Arc::new(services)), origins, admission), pages)
}
