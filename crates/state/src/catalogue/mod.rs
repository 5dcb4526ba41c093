//! The catalogue: tenants, keys, definitions, assistants, settings and quotas.

pub(crate) mod apply;
pub(crate) mod apply_usage;
mod bound_events;
mod command;
pub(crate) mod directory;
pub(crate) mod directory_index;
mod directory_warning;
mod event;
mod event_binding;
mod facts;
mod finding;
mod memory;
mod quotas;
mod role;
mod rows;
mod servers;
mod settings;
mod summary;
mod tenancy;
mod tenant_change;
mod usage;

pub use command::CatalogueCommand;
pub use command::{
    ActivateVersion, ArchiveDefinition, CreateKey, CreateTenant, DeleteAssistant, DeleteDefinition,
    DeleteTenant, Deploy, EnsureTenancy, InstallMachine, InstallTenancy, PutAssistant, PutDirectory,
    PutRetention, Reseal, RetireVersion, RevokeKey, UpdateTenant,
};
pub use directory::{Directory, DirectoryEntry};
pub use directory_index::DirectoryIndex;
pub use directory_warning::{DirectoryList, DirectoryWarning};
pub use event::CatalogueEvent;
pub use event_binding::EventBinding;
pub use facts::{AssistantFact, DeletedVersion, TenantFact, VersionFact};
pub use finding::{Finding, FindingSeverity};
pub use quotas::{PutQuotas, Quota, Quotas};
pub use role::Role;
pub(crate) use rows::etag;
pub use rows::{ApiKey, Assistant, Definition, Disposal, Retired, SourceFile, Tenant, Version};
pub use servers::{
    AssignVoters, BucketMap, BucketRange, ClusterChange, ClusterMap, FIRST_EPOCH, FoundCluster,
    GroupReplicas, JoinServer, LeaderTransfer, MapEpochs, RaiseLevel, RecordTransfers, Server, ServerState,
    SetServerState,
};
pub use settings::{DefaultEffect, DefaultSetIn, LinkAuth, Settings};
pub use summary::{AssistantSummary, KeySummary, VersionSummary};
pub use tenancy::{Deletion, Tenancy, TenantOutbox};
pub use tenant_change::{ChangedPart, TenantChange, between, changed};
pub use usage::Usage;
