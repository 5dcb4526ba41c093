//! The services of the one port: the gRPC services with health and reflection, JSON and gRPC-Web over the same
//! services, and the plain pages.

use axum::{Router, routing::get};
use http::{
    HeaderName, HeaderValue, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;
use switchward_messages::server_pages::probes::{Readiness, readiness};
use switchward_shard::Cluster;
use tonic_health::{
    ServingStatus,
    server::{HealthReporter, health_reporter},
};
use tower::{Layer as _, Service as _};
use tower_http::cors::CorsLayer;

use crate::admission::Admission;
use crate::around::{Answers, AsService, Surrounded};
use crate::by_name::ByName;
use crate::guard::Guard;
use crate::hide::HidingServices;
use crate::port::Calls;
use crate::trace::TraceLayer;
use crate::transcode::Transcode;

pub use crate::by_name::GrpcServer;

/// The health service's name for "the process lives". It stays so while leaders change and the server drains.
const LIVENESS: &str = "liveness";
/// The health service's name for "calls can be routed".
const READINESS: &str = "readiness";
/// The health service's name for "everything may be written". It stops serving while the disk runs low or a shard has
/// failed.
const WRITES: &str = "writes";
/// How long a browser may remember that a page of another origin may call.
const PREFLIGHT_KEPT: Duration = Duration::from_secs(600);
/// The health service's name for the server as a whole.
const WHOLE: &str = "";

/// The gRPC services of the port.
///
/// Messages are limited by the guard before them, so a service needs no limits of its own.
pub struct Services {
    by_name: ByName,
    /// Looks up the role of a caller, to hide what they may not read.
    callers: Option<Cluster>,
}

impl Services {
    /// No services but health and reflection, and the handle that says how they are. They begin as not ready.
    pub async fn new() -> (Self, Health) {
        let (mut services, health) = Self::of_gateway().await;
        // Most clients of reflection in other languages still ask by the older name.
        let reflection = reflected().build_v1().expect("the embedded descriptors are valid");
        let older = reflected().build_v1alpha().expect("the embedded descriptors are valid");
        services.by_name.add(reflection);
        services.by_name.add(older);
        (services, health)
    }

    /// Only health: reflection needs a key, which a gateway cannot check.
    pub(crate) async fn of_gateway() -> (Self, Health) {
        let (reporter, health_service) = health_reporter();
        let mut by_name = ByName::default();
        by_name.add(health_service);
        let health = Health {
            reporter,
            ready: Arc::default(),
            disk_low: Arc::default(),
            shard_failed: Arc::default(),
            cut_off: Arc::default(),
            clock_off: Arc::default(),
        };
        health.reporter.set_service_status(WRITES, ServingStatus::Serving).await;
        health.reporter.set_service_status(LIVENESS, ServingStatus::Serving).await;
        health.set_not_ready().await;
        (Self { by_name, callers: None }, health)
    }

    /// With one more service.
    #[must_use]
    pub fn with<S: GrpcServer>(mut self, service: S) -> Self {
        self.by_name.add(service);
        self
    }

    /// Hides in replies what their callers may not read, by the roles of their keys in this cluster.
    #[must_use]
    pub(crate) fn hiding(self, callers: Cluster) -> Self {
        Self { callers: Some(callers), ..self }
    }

    /// The services, which hide what their callers may not read.
    pub(crate) fn into_hiding(self) -> HidingServices {
        HidingServices::new(self.by_name, self.callers)
    }
}

fn reflected() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(switchward_api::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_types::pb::FILE_DESCRIPTOR_SET)
}

/// Calls by gRPC, gRPC-Web and JSON.
pub(crate) fn calls(
    services: impl Answers + Clone + 'static,
    origins: Vec<HeaderValue>,
    admission: &Admission,
) -> Calls {
    let guarded = Surrounded { around: Guard(admission.clone()), inner: services };
    let answers = Surrounded { around: Transcode(admission.clone()), inner: guarded };
    if origins.is_empty() {
        return Calls::new(move |request| TraceLayer.layer(AsService(&answers)).call(request));
    }
    let service = cors(origins).layer(TraceLayer.layer(AsService(answers)));
    Calls::new(move |request| Box::pin(service.clone().call(request)))
}

/// The answer to browsers that call from a page of another origin. Credentials are headers, never cookies, so browsers may
/// not send any by themselves.
fn cors(origins: Vec<HeaderValue>) -> CorsLayer {
    let header = HeaderName::from_static;
    CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::POST])
        .allow_headers([
            AUTHORIZATION,
            CONTENT_TYPE,
            header("grpc-timeout"),
            header("traceparent"),
            header("x-grpc-web"),
            header("x-user-agent"),
        ])
        .expose_headers([
            RETRY_AFTER,
            header("grpc-message"),
            header("grpc-status"),
            header("grpc-status-details-bin"),
            header("x-request-id"),
        ])
        .max_age(PREFLIGHT_KEPT)
}

/// The health of the server, for load balancers and people. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Health {
    reporter: HealthReporter,
    ready: Arc<AtomicBool>,
    disk_low: Arc<AtomicBool>,
    shard_failed: Arc<AtomicBool>,
    /// Whether the server reaches no leader of the catalogue.
    cut_off: Arc<AtomicBool>,
    /// Whether the server leads nothing because of its clock.
    clock_off: Arc<AtomicBool>,
}

impl Health {
    /// From now on, calls can be routed. Notifies all watchers of the health service.
    pub async fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
        self.publish().await;
    }

    /// From now on, calls cannot be routed. Notifies all watchers of the health service.
    pub async fn set_not_ready(&self) {
        self.ready.store(false, Ordering::Release);
        self.publish().await;
    }

    /// From now on, the server reaches no leader of the catalogue, so it can check no credentials: calls are routed to other
    /// servers. A server that leads nothing and reaches leaders is ready.
    pub async fn set_cut_off(&self) {
        self.cut_off.store(true, Ordering::Release);
        self.publish().await;
    }

    /// From now on, the server reaches the leader of the catalogue.
    pub async fn set_in_contact(&self) {
        self.cut_off.store(false, Ordering::Release);
        self.publish().await;
    }

    /// From now on, the server leads nothing because its clock differs from the others'. It stays ready.
    pub fn set_clock_off(&self) {
        self.clock_off.store(true, Ordering::Release);
    }

    /// From now on, its clock is no reason not to lead.
    pub fn set_clock_good(&self) {
        self.clock_off.store(false, Ordering::Release);
    }

    async fn publish(&self) {
        let ready = self.ready.load(Ordering::Acquire) && !self.cut_off.load(Ordering::Acquire);
        let status = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        let services = switchward_api::descriptor_pool().services();
        for service in services {
            self.reporter.set_service_status(service.full_name(), status).await;
        }
        self.reporter.set_service_status(READINESS, status).await;
        self.reporter.set_service_status(WHOLE, status).await;
    }

    /// From now on, growing writes are refused because the disk runs low. Reads and decisions go on, so the server stays
    /// ready.
    pub async fn set_disk_low(&self) {
        self.disk_low.store(true, Ordering::Release);
        self.reporter.set_service_status(WRITES, ServingStatus::NotServing).await;
    }

    /// From now on, the disk has enough space, and growing writes are accepted.
    pub async fn set_disk_enough(&self) {
        self.disk_low.store(false, Ordering::Release);
        if !self.shard_failed.load(Ordering::Acquire) {
            self.reporter.set_service_status(WRITES, ServingStatus::Serving).await;
        }
    }

    /// From now on, a shard's replica on this server answers nothing. The others do, so the server stays ready; only a
    /// restart mends it.
    pub async fn set_shard_failed(&self) {
        self.shard_failed.store(true, Ordering::Release);
        self.reporter.set_service_status(WRITES, ServingStatus::NotServing).await;
    }

    /// `/healthz`: 200 as long as the process lives. `/readyz`: 200 while calls can be routed, 503 otherwise.
    pub fn pages(&self) -> Router {
        let health = self.clone();
        let readyz = move || async move { health.readiness() };
        Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(readyz))
    }

    fn readiness(&self) -> (StatusCode, String) {
        let is = |flag: &AtomicBool| flag.load(Ordering::Acquire);
        let (status, state) = if !is(&self.ready) {
            (StatusCode::SERVICE_UNAVAILABLE, Readiness::NotReady)
        } else if is(&self.cut_off) {
            (StatusCode::SERVICE_UNAVAILABLE, Readiness::CutOff)
        } else if is(&self.shard_failed) {
            (StatusCode::OK, Readiness::ShardFailed)
        } else if is(&self.disk_low) {
            (StatusCode::OK, Readiness::DiskLow)
        } else if is(&self.clock_off) {
            (StatusCode::OK, Readiness::ClockOff)
        } else {
            (StatusCode::OK, Readiness::Ready)
        };
        (status, format!("{}\n", readiness(state)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_is_ready_while_it_reaches_leaders_whether_or_not_it_leads() {
        let (_, health) = Services::new().await;
        let status = || health.readiness().0;
        assert_eq!(status(), StatusCode::SERVICE_UNAVAILABLE);
        health.set_ready().await;
        health.set_clock_off();
        assert_eq!(status(), StatusCode::OK, "it leads nothing, and passes on what it is asked");
        assert_eq!(health.readiness().1, format!("{}\n", readiness(Readiness::ClockOff)), "and it says so");
        health.set_cut_off().await;
        assert_eq!(status(), StatusCode::SERVICE_UNAVAILABLE);
        health.set_in_contact().await;
        health.set_clock_good();
        assert_eq!(health.readiness(), (StatusCode::OK, "ready\n".to_owned()));
        // A server that stops does not become ready by reaching others.
        health.set_cut_off().await;
        health.set_not_ready().await;
        health.set_in_contact().await;
        assert_eq!(status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
