//! The services of the API: one file each.

mod api_keys;
mod assistants;
mod clock;
mod conversation;
mod definitions;
mod directory;
mod effects;
mod export;
pub mod first;
mod gates;
mod mail;
mod policies;
mod policy;
mod quotas;
mod retention;
mod sessions;
mod start;
mod tenants;
mod voided;
mod watch;
mod webhook_endpoints;
mod webhook_sources;
mod worker;

pub(crate) use api_keys::Revocations;
pub(crate) use clock::Advances;
pub(crate) use mail::Deleted;
pub use webhook_endpoints::{Pinged, Pings};
pub(crate) use webhook_sources::kind_named;
pub(crate) use worker::Claims;

use switchward_api::v1::api_key_service_server::ApiKeyServiceServer;
use switchward_api::v1::assistant_service_server::AssistantServiceServer;
use switchward_api::v1::clock_service_server::ClockServiceServer;
use switchward_api::v1::definition_service_server::DefinitionServiceServer;
use switchward_api::v1::directory_service_server::DirectoryServiceServer;
use switchward_api::v1::effect_service_server::EffectServiceServer;
use switchward_api::v1::export_service_server::ExportServiceServer;
use switchward_api::v1::gate_service_server::GateServiceServer;
use switchward_api::v1::mail_service_server::MailServiceServer;
use switchward_api::v1::policy_service_server::PolicyServiceServer;
use switchward_api::v1::retention_service_server::RetentionServiceServer;
use switchward_api::v1::session_service_server::SessionServiceServer;
use switchward_api::v1::tenant_service_server::TenantServiceServer;
use switchward_api::v1::webhook_endpoint_service_server::WebhookEndpointServiceServer;
use switchward_api::v1::webhook_source_service_server::WebhookSourceServiceServer;
use switchward_api::v1::worker_service_server::WorkerServiceServer;

use crate::door::Door;
use crate::routes::Services;

/// All services behind one door.
#[must_use]
pub fn all(services: Services, door: &Door) -> Services {
    services
        .hiding(door.cluster.clone())
        .with(DefinitionServiceServer::new(door.clone()))
        .with(AssistantServiceServer::new(door.clone()))
        .with(WebhookSourceServiceServer::new(door.clone()))
        .with(WebhookEndpointServiceServer::new(door.clone()))
        .with(SessionServiceServer::new(door.clone()))
        .with(MailServiceServer::new(door.clone()))
        .with(PolicyServiceServer::new(door.clone()))
        .with(GateServiceServer::new(door.clone()))
        .with(DirectoryServiceServer::new(door.clone()))
        .with(RetentionServiceServer::new(door.clone()))
        .with(EffectServiceServer::new(door.clone()))
        .with(ExportServiceServer::new(door.clone()))
        .with(TenantServiceServer::new(door.clone()))
        .with(WorkerServiceServer::new(door.clone()))
        .with(ApiKeyServiceServer::new(door.clone()))
        .with(ClockServiceServer::new(door.clone()))
}
