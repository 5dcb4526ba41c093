//! Commands about the catalogue.

use switchward_machine::{Digest, Machine, Time};

use crate::AdmissionClass;
use crate::catalogue::{Directory, LinkAuth, PutQuotas, Role, Settings, Tenancy};
use crate::delivery::{Correlation, SourceSecret};
use crate::seal::Sealed;
use crate::session::{DeleteTenant, PutRetention};

/// A command about the catalogue.
#[derive(Debug, Clone)]
pub enum CatalogueCommand {
    /// Make a machine known to a shard.
    InstallMachine(InstallMachine),
    /// A new tenant.
    CreateTenant(CreateTenant),
    /// Other switches.
    UpdateTenant(UpdateTenant),
    /// Other quotas.
    PutQuotas(PutQuotas),
    /// A new API key.
    CreateKey(CreateKey),
    /// An API key is void.
    RevokeKey(RevokeKey),
    /// A definition is published.
    Deploy(Deploy),
    /// Another version is used from now on.
    ActivateVersion(ActivateVersion),
    /// No session starts with a version any more.
    RetireVersion(RetireVersion),
    /// An assistant is created or replaced.
    PutAssistant(PutAssistant),
    /// An assistant is deleted.
    DeleteAssistant(DeleteAssistant),
    /// A tenant that had no mail tokens has them from now on.
    EnsureTenancy(EnsureTenancy),
    /// Who is who in a tenant.
    PutDirectory(PutDirectory),
    /// What a shard must know of a tenant.
    InstallTenancy(InstallTenancy),
    /// How long what has ended is kept.
    PutRetention(PutRetention),
    /// Secrets of a tenant are sealed under another key.
    Reseal(Reseal),
    /// A tenant is deleted, with all that it has.
    DeleteTenant(DeleteTenant),
}

impl CatalogueCommand {
    /// What the command does to the load of a shard.
    #[must_use]
    pub fn admission(&self) -> AdmissionClass {
        match self {
            Self::RevokeKey(_) => AdmissionClass::Ends,
            Self::InstallMachine(_)
            | Self::CreateTenant(_)
            | Self::UpdateTenant(_)
            | Self::PutQuotas(_)
            | Self::CreateKey(_)
            | Self::Deploy(_)
            | Self::ActivateVersion(_)
            | Self::RetireVersion(_)
            | Self::PutAssistant(_)
            | Self::DeleteAssistant(_)
            | Self::EnsureTenancy(_)
            | Self::PutDirectory(_)
            | Self::InstallTenancy(_)
            | Self::PutRetention(_)
            | Self::Reseal(_)
            | Self::DeleteTenant(_) => AdmissionClass::Neither,
        }
    }

    /// Returns true if the command makes the stored data grow.
    #[must_use]
    pub fn grows(&self) -> bool {
        match self {
            Self::InstallMachine(_)
            | Self::CreateTenant(_)
            | Self::CreateKey(_)
            | Self::Deploy(_)
            | Self::ActivateVersion(_)
            | Self::RetireVersion(_)
            | Self::PutAssistant(_)
            | Self::PutDirectory(_) => true,
            Self::UpdateTenant(_)
            | Self::PutQuotas(_)
            | Self::RevokeKey(_)
            | Self::DeleteAssistant(_)
            | Self::EnsureTenancy(_)
            | Self::InstallTenancy(_)
            | Self::PutRetention(_)
            | Self::Reseal(_)
            | Self::DeleteTenant(_) => false,
        }
    }

    /// Returns true if the command changes what every shard must know of its tenant.
    #[must_use]
    pub fn changes_tenancy(&self) -> bool {
        matches!(
            self,
            Self::EnsureTenancy(_)
                | Self::PutDirectory(_)
                | Self::PutRetention(_)
                | Self::Reseal(_)
                | Self::UpdateTenant(_)
                | Self::DeleteTenant(_)
        )
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Deploy(deploy) => deploy.files.iter().map(|(_, bytes)| bytes.len()).sum(),
            Self::PutAssistant(put) => {
                put.instructions.len() + put.workflows.iter().map(String::len).sum::<usize>()
            }
            Self::PutDirectory(put) => put.directory.bytes(),
            Self::InstallMachine(_)
            | Self::CreateTenant(_)
            | Self::UpdateTenant(_)
            | Self::PutQuotas(_)
            | Self::CreateKey(_)
            | Self::RevokeKey(_)
            | Self::ActivateVersion(_)
            | Self::RetireVersion(_)
            | Self::DeleteAssistant(_)
            | Self::EnsureTenancy(_)
            | Self::InstallTenancy(_)
            | Self::PutRetention(_)
            | Self::Reseal(_)
            | Self::DeleteTenant(_) => 0,
        }
    }
}

/// Make a machine known to a shard.
#[derive(Debug, Clone)]
pub struct InstallMachine {
    /// The machine.
    pub machine: std::sync::Arc<Machine>,
}

/// A new tenant.
#[derive(Debug, Clone)]
pub struct CreateTenant {
    /// `[a-z0-9-]`, 1 to 63 characters.
    pub name: String,
    /// For people.
    pub display_name: String,
    /// Its switches.
    pub settings: Settings,
}

/// Other switches.
#[derive(Debug, Clone)]
pub struct UpdateTenant {
    /// The tenant.
    pub name: String,
    /// All of its switches.
    pub settings: Settings,
    /// What the caller saw, see [`Tenant::etag`](crate::catalogue::Tenant::etag); empty if any will do.
    pub etag: String,
}

/// A new API key.
#[derive(Debug, Clone)]
pub struct CreateKey {
    /// Its public id.
    pub id: String,
    /// The name of the command's tenant.
    pub tenant_name: String,
    /// SHA-256 of its secret.
    pub hash: Digest,
    /// What it allows.
    pub role: Role,
    /// Whose it is.
    pub subject: String,
    /// For people.
    pub display_name: String,
    /// When it stops working by itself.
    pub expires: Option<Time>,
}

/// An assistant is created or replaced.
#[derive(Debug, Clone)]
pub struct PutAssistant {
    /// Its name: `[a-z0-9-]`, 1 to 63 characters.
    pub name: String,
    /// Its workflows: names of definitions, each once.
    pub workflows: Vec<String>,
    /// Its instructions beside those of a state.
    pub instructions: String,
    /// What the caller saw, see [`Assistant::etag`](crate::catalogue::Assistant::etag); empty if any will do.
    pub etag: String,
}

/// An assistant is deleted.
#[derive(Debug, Clone)]
pub struct DeleteAssistant {
    /// Its name.
    pub name: String,
    /// What the caller saw; empty if any will do.
    pub etag: String,
}

/// What changes about a source of webhooks.
#[derive(Debug, Clone)]
pub enum ChangeWebhookSource {
    /// A new one.
    Create {
        /// Its name: `[a-z0-9-]`, 1 to 63 characters.
        name: String,
        /// The word of how it proves who it is.
        kind: String,
        /// What with; none for a kind that proves nothing.
        secret: Option<SourceSecret>,
        /// Which event of which session a message is.
        correlation: Correlation,
    },
    /// Its messages are other events.
    Correlate {
        /// Its name.
        name: String,
        /// Which event of which session a message is.
        correlation: Correlation,
        /// What the caller saw; empty if any will do.
        etag: String,
    },
    /// It has another secret.
    Rotate {
        /// Its name.
        name: String,
        /// The new one.
        secret: SourceSecret,
        /// How long the one before it stays good, milliseconds.
        overlap_ms: u64,
        /// What the caller saw; empty if any will do.
        etag: String,
    },
    /// It is deleted.
    Delete {
        /// Its name.
        name: String,
        /// What the caller saw; empty if any will do.
        etag: String,
    },
}

/// An API key is void.
#[derive(Debug, Clone)]
pub struct RevokeKey {
    /// Its public id.
    pub id: String,
}

/// A definition is published.
#[derive(Debug, Clone)]
pub struct Deploy {
    /// Its name.
    pub name: String,
    /// Its format: `checkpoint`.
    pub format: String,
    /// The files as published: path and bytes.
    pub files: Vec<(String, Vec<u8>)>,
    /// Of the files; the same bytes are the same version.
    pub source: Digest,
    /// What they compiled to.
    pub machine: std::sync::Arc<Machine>,
    /// Whether new sessions use it from now on.
    pub activate: bool,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    pub etag: String,
}

/// Another version is used from now on.
#[derive(Debug, Clone)]
pub struct ActivateVersion {
    /// The definition.
    pub name: String,
    /// The version.
    pub version: u32,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    pub etag: String,
}

/// No session starts with a version any more.
#[derive(Debug, Clone)]
pub struct RetireVersion {
    /// The definition.
    pub name: String,
    /// The version, which must not be the active one.
    pub version: u32,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    pub etag: String,
}

/// A tenant gets what its mail tokens are made with. If it has it already, nothing changes.
#[derive(Debug, Clone)]
pub struct EnsureTenancy {
    /// The tenant's setting of the same name.
    pub any_approver_address: bool,
    /// The tenant's setting of the same name.
    pub link_auth: Option<LinkAuth>,
    /// Drawn for this tenant; used if it has none yet. `None` if the server has no key ring.
    pub key: Option<Sealed>,
}

/// Who is who in a tenant, all of it.
#[derive(Debug, Clone)]
pub struct PutDirectory {
    /// The entries in any order.
    pub directory: Directory,
    /// Drawn for this tenant; used if it has no key for its mail tokens yet.
    pub key: Option<Sealed>,
    /// What the caller saw, see [`Directory::etag`]; empty if any will do.
    pub etag: String,
}

/// What a shard must know of a tenant; an older revision than the one that it knows changes nothing.
#[derive(Debug, Clone)]
pub struct InstallTenancy {
    /// The catalogue's record.
    pub tenancy: Tenancy,
}

/// A change of a tenant's endpoints.
#[derive(Debug, Clone)]
pub enum ChangeEndpoint {
    /// A new one, or another address and other filters for a known one; a disabled one is enabled again.
    Put {
        /// Its name: `[a-z0-9-]`, 1 to 63 characters.
        id: String,
        /// Where messages go.
        url: String,
        /// What it wants; the caller has looked at them.
        filters: Vec<String>,
        /// Drawn for it, sealed; used if it is new.
        secret: Sealed,
        /// Drawn for the tenant; used if it has no key for its mail tokens yet.
        key: Option<Sealed>,
        /// What the caller saw, see [`Endpoint::etag`](crate::delivery::Endpoint::etag); empty if any will do.
        etag: String,
    },
    /// It has another secret.
    Rotate {
        /// Its name.
        id: String,
        /// The new one, sealed.
        secret: Sealed,
        /// How long the one before it stays good, milliseconds.
        overlap_ms: u64,
        /// What the caller saw; empty if any will do.
        etag: String,
    },
    /// It is sent nothing any more, until it is put again.
    Disable {
        /// Its name.
        id: String,
        /// Why: `gone` or `failing`.
        reason: String,
    },
    /// It is deleted.
    Delete {
        /// Its name.
        id: String,
        /// What the caller saw; empty if any will do.
        etag: String,
    },
    /// An attempt to send it a message has ended.
    Note {
        /// Its name.
        id: String,
        /// What went wrong, a code and words; `None` if the message has arrived.
        failure: Option<(String, String)>,
    },
}

/// Secrets of a tenant are sealed under another key: those that still are as they were become as they shall be.
#[derive(Debug, Clone)]
pub struct Reseal {
    /// Each secret as it is sealed now, and as it shall be sealed.
    pub secrets: Vec<(Sealed, Sealed)>,
    /// The names of the sources of webhooks that may have some of them.
    pub sources: Vec<String>,
}
