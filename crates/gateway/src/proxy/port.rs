//! The port of a gateway.

use http::HeaderValue;
use std::sync::Arc;

use super::forward::Proxy;
use super::pages::pages;
use super::service::GatewayCalls;
use crate::admission::Admission;
use crate::port::Port;
use crate::routes::{Health, Services, calls};

/// The path of the health service's methods.
const HEALTH_PATH: &str = "/grpc.health.v1.Health/{method}";

/// The whole port of a gateway: all calls by gRPC, gRPC-Web and JSON, and all pages, are passed on by `proxy`; only health is
/// answered here. A server is asked about the credential of a call before its body is read. Bodies of calls may take a part of
/// `memory`, bytes. Its health begins as not ready.
pub async fn gateway_port(proxy: &Proxy, origins: Vec<HeaderValue>, memory: usize) -> (Port, Health) {
    let (services, health) = Services::of_gateway().await;
    let admission = Admission::of_gateway(Arc::new(proxy.clone()), memory);
    let services = GatewayCalls { proxy: proxy.clone(), local: services.into_hiding() };
    let calls = calls(services, origins, &admission);
    let all_pages = health.pages().route_service(HEALTH_PATH, calls.clone()).merge(pages(proxy));
    (Port::of_gateway(calls, all_pages), health)
}
