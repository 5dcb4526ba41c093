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

use crate::api::Api;
use crate::routes::Services;

/// All services on one port.
#[must_use]
pub fn all(services: Services, api: &Api) -> Services {
    services
        .hiding(api.cluster.clone())
        .with(DefinitionServiceServer::new(api.clone()))
        .with(AssistantServiceServer::new(api.clone()))
        .with(WebhookSourceServiceServer::new(api.clone()))
        .with(WebhookEndpointServiceServer::new(api.clone()))
        .with(SessionServiceServer::new(api.clone()))
        .with(MailServiceServer::new(api.clone()))
        .with(PolicyServiceServer::new(api.clone()))
        .with(GateServiceServer::new(api.clone()))
        .with(DirectoryServiceServer::new(api.clone()))
        .with(RetentionServiceServer::new(api.clone()))
        .with(EffectServiceServer::new(api.clone()))
        .with(ExportServiceServer::new(api.clone()))
        .with(TenantServiceServer::new(api.clone()))
        .with(WorkerServiceServer::new(api.clone()))
        .with(ApiKeyServiceServer::new(api.clone()))
        .with(ClockServiceServer::new(api.clone()))
}
