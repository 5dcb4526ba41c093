//! The services of the API: one file each.

mod api_keys;
mod assistants;
mod clock;
mod cluster;
mod conversation;
mod decisions;
mod definitions;
mod directory;
mod effects;
mod export;
pub mod first;
mod gates;
mod history;
mod mail;
mod own_words;
mod policies;
mod policy;
mod quotas;
mod retention;
mod sessions;
mod shown;
mod start;
mod tenants;
mod watch;
mod webhook_endpoints;
mod webhook_sources;
mod worker;

pub(crate) use clock::Advances;
pub use clock::MovableClock;
pub(crate) use mail::Deleted;
pub use webhook_endpoints::{Pinged, Pings};
pub(crate) use webhook_sources::scheme_of;
pub(crate) use worker::Claims;

use switchward_api::v1::{
    api_key_service_server::ApiKeyServiceServer, assistant_service_server::AssistantServiceServer,
    clock_service_server::ClockServiceServer, cluster_service_server::ClusterServiceServer,
    definition_service_server::DefinitionServiceServer, directory_service_server::DirectoryServiceServer,
    effect_service_server::EffectServiceServer, export_service_server::ExportServiceServer,
    gate_service_server::GateServiceServer, mail_service_server::MailServiceServer,
    policy_service_server::PolicyServiceServer, retention_service_server::RetentionServiceServer,
    session_service_server::SessionServiceServer, tenant_service_server::TenantServiceServer,
    webhook_endpoint_service_server::WebhookEndpointServiceServer,
    webhook_source_service_server::WebhookSourceServiceServer, worker_service_server::WorkerServiceServer,
};

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
        .with(ClusterServiceServer::new(api.clone()))
}
