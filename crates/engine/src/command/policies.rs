//! Policy documents, and what they hold for.

use switchward_machine::TenantId;

use super::Body;
use crate::seal::Sealed;

impl Body {
    /// The tenant of which it changes what every shard must know, if it does; `own` is the command's tenant.
    #[must_use]
    pub fn changes_tenancy(&self, own: TenantId) -> Option<TenantId> {
        if let Self::DeleteTenant(delete) = self {
            return Some(delete.tenant);
        }
        let directory = matches!(self, Self::EnsureTenancy(_) | Self::PutDirectory(_) | Self::Endpoint(_));
        let changes = directory
            || matches!(self, Self::PutRetention(_) | Self::HoldEffects(_) | Self::Reseal(_))
            || matches!(self, Self::SetTenantPolicy(_) | Self::RemoveTenantPolicy(_) | Self::UpdateTenant(_));
        changes.then_some(own)
    }
}

/// A policy document is attached to a definition, or detached from it.
#[derive(Debug, Clone)]
pub struct AttachPolicy {
    /// The definition.
    pub definition: String,
    /// The policy document.
    pub policy: String,
    /// Whether it is attached from now on; otherwise it is detached.
    pub attached: bool,
    /// What the caller saw, see [`Definition::etag`](crate::Definition::etag); empty if any will do.
    pub etag: String,
}

/// A policy document holds for a tenant, in one version.
#[derive(Debug, Clone)]
pub struct SetTenantPolicy {
    /// Its name.
    pub name: String,
    /// Its version; `None` stands for the one that is active now.
    pub version: Option<u32>,
    /// Drawn for the tenant; used if it has no key for its mail tokens yet.
    pub key: Option<Sealed>,
}

/// A policy document stops to hold for a tenant.
#[derive(Debug, Clone)]
pub struct RemoveTenantPolicy {
    /// Its name.
    pub name: String,
}
