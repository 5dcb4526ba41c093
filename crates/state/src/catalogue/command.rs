//! Commands about the catalogue.

use minicbor::{Decode, Encode};
use switchward_machine::{Digest, Machine, TenantId, Time};

use crate::catalogue::{
    AssignVoters, Directory, Finding, FoundCluster, JoinServer, LinkAuth, PutQuotas, RaiseLevel,
    RecordTransfers, Role, SetServerState, Settings, SourceFile, Tenancy,
};
use crate::seal::Sealed;
use crate::session::Retention;
use crate::{AdmissionClass, ChangedTenant, CommandTraits, ScopeKind};

/// A command about the catalogue.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum CatalogueCommand {
    /// Make a machine known to a shard.
    #[n(0)]
    InstallMachine(#[n(0)] InstallMachine),
    /// A new tenant.
    #[n(1)]
    CreateTenant(#[n(0)] CreateTenant),
    /// Other switches.
    #[n(2)]
    UpdateTenant(#[n(0)] UpdateTenant),
    /// Other quotas.
    #[n(3)]
    PutQuotas(#[n(0)] PutQuotas),
    /// A new API key.
    #[n(4)]
    CreateKey(#[n(0)] CreateKey),
    /// An API key is void.
    #[n(5)]
    RevokeKey(#[n(0)] RevokeKey),
    /// A definition is published.
    #[n(6)]
    Deploy(#[n(0)] Deploy),
    /// Another version is used from now on.
    #[n(7)]
    ActivateVersion(#[n(0)] ActivateVersion),
    /// No session starts with a version any more.
    #[n(8)]
    RetireVersion(#[n(0)] RetireVersion),
    /// An assistant is created or replaced.
    #[n(9)]
    PutAssistant(#[n(0)] PutAssistant),
    /// An assistant is deleted; sessions that run keep what they began with.
    #[n(10)]
    DeleteAssistant(#[n(0)] DeleteAssistant),
    /// A tenant that had no mail tokens has them from now on.
    #[n(11)]
    EnsureTenancy(#[n(0)] EnsureTenancy),
    /// Who is who in a tenant.
    #[n(12)]
    PutDirectory(#[n(0)] PutDirectory),
    /// What a shard must know of a tenant.
    #[n(13)]
    InstallTenancy(#[n(0)] InstallTenancy),
    /// How long what has ended is kept.
    #[n(14)]
    PutRetention(#[n(0)] PutRetention),
    /// Secrets of a tenant are sealed under another key.
    #[n(15)]
    Reseal(#[n(0)] Reseal),
    /// A tenant is deleted, with all that it has.
    #[n(16)]
    DeleteTenant(#[n(0)] DeleteTenant),
    /// The server alone becomes the first one of a cluster.
    #[n(17)]
    FoundCluster(#[n(0)] FoundCluster),
    /// A server becomes one of the cluster.
    #[n(18)]
    JoinServer(#[n(0)] JoinServer),
    /// A server is drained, used again, or removed.
    #[n(19)]
    SetServerState(#[n(0)] SetServerState),
    /// Leaders were transferred away from a server.
    #[n(20)]
    RecordTransfers(#[n(0)] RecordTransfers),
    /// The cluster writes a higher feature level.
    #[n(21)]
    RaiseLevel(#[n(0)] RaiseLevel),
    /// Other servers are to vote in a group.
    #[n(22)]
    AssignVoters(#[n(0)] AssignVoters),
    /// A definition is put out of use, or used again.
    #[n(23)]
    ArchiveDefinition(#[n(0)] ArchiveDefinition),
    /// A definition, or a version of it, is deleted.
    #[n(24)]
    DeleteDefinition(#[n(0)] DeleteDefinition),
}

impl CatalogueCommand {
    /// What each kind says of itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        let in_catalogue = CommandTraits::of(ScopeKind::Catalogue, AdmissionClass::Neither);
        let in_shard = CommandTraits::of(ScopeKind::Shard, AdmissionClass::Neither);
        let changes = in_catalogue.changes_tenancy(ChangedTenant::Own);
        match self {
            Self::InstallMachine(_) => in_shard.grows(),
            Self::InstallTenancy(_) => in_shard.in_deleted_tenant(),
            Self::CreateTenant(_)
            | Self::CreateKey(_)
            | Self::Deploy(_)
            | Self::ActivateVersion(_)
            | Self::RetireVersion(_)
            | Self::PutAssistant(_) => in_catalogue.grows(),
            Self::PutDirectory(_) => changes.grows(),
            Self::UpdateTenant(_) | Self::PutRetention(_) | Self::Reseal(_) => changes,
            // A start of the server looks at every tenant.
            Self::EnsureTenancy(_) => changes.in_deleted_tenant(),
            Self::DeleteTenant(delete) => in_catalogue.changes_tenancy(ChangedTenant::Named(delete.tenant)),
            Self::RevokeKey(_) => CommandTraits::of(ScopeKind::Catalogue, AdmissionClass::Ends),
            Self::PutQuotas(_)
            | Self::DeleteAssistant(_)
            | Self::ArchiveDefinition(_)
            | Self::DeleteDefinition(_)
            | Self::FoundCluster(_)
            | Self::JoinServer(_)
            | Self::SetServerState(_)
            | Self::RecordTransfers(_)
            | Self::RaiseLevel(_)
            | Self::AssignVoters(_) => in_catalogue,
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Deploy(deploy) => deploy.files.iter().map(|file| file.bytes.len()).sum(),
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
            | Self::DeleteTenant(_)
            | Self::FoundCluster(_)
            | Self::JoinServer(_)
            | Self::SetServerState(_)
            | Self::RecordTransfers(_)
            | Self::RaiseLevel(_)
            | Self::AssignVoters(_)
            | Self::ArchiveDefinition(_)
            | Self::DeleteDefinition(_) => 0,
        }
    }
}

/// Make a machine known to a shard.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct InstallMachine {
    /// What a definition compiled to. The shard keeps it by its digest.
    #[cbor(n(0), with = "crate::row::machine_bytes")]
    pub machine: std::sync::Arc<Machine>,
}

/// A new tenant.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct CreateTenant {
    /// `[a-z0-9-]`, 1 to 63 characters.
    #[n(0)]
    pub name: String,
    /// For people.
    #[n(1)]
    pub display_name: String,
    /// Its switches.
    #[n(2)]
    pub settings: Settings,
}

/// Other switches.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct UpdateTenant {
    /// The tenant.
    #[n(0)]
    pub name: String,
    /// All of its switches.
    #[n(1)]
    pub settings: Settings,
    /// What the caller saw, see [`Tenant::etag`](crate::catalogue::Tenant::etag); empty if any will do.
    #[n(2)]
    pub etag: String,
}

/// A new API key.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct CreateKey {
    /// Its public id.
    #[n(0)]
    pub id: String,
    /// The name of the command's tenant.
    #[n(1)]
    pub tenant_name: String,
    /// SHA-256 of its secret.
    #[n(2)]
    pub hash: Digest,
    /// What it allows.
    #[n(3)]
    pub role: Role,
    /// The person or program that it stands for.
    #[n(4)]
    pub subject: String,
    /// For people.
    #[n(5)]
    pub display_name: String,
    /// When it stops working by itself.
    #[n(6)]
    pub expires: Option<Time>,
}

/// An assistant is created or replaced.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct PutAssistant {
    /// Its name: `[a-z0-9-]`, 1 to 63 characters.
    #[n(0)]
    pub name: String,
    /// Its workflows: names of definitions, each once.
    #[n(1)]
    pub workflows: Vec<String>,
    /// Its instructions beside those of a state.
    #[n(2)]
    pub instructions: String,
    /// What the caller saw, see [`Assistant::etag`](crate::catalogue::Assistant::etag); empty if any will do.
    #[n(3)]
    pub etag: String,
}

/// Removes an assistant, unless it has changed since its etag was read.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DeleteAssistant {
    /// The name of an assistant of the command's tenant.
    #[n(0)]
    pub name: String,
    /// What the caller saw; empty if any will do.
    #[n(1)]
    pub etag: String,
}

/// An API key is void.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RevokeKey {
    /// Its public id.
    #[n(0)]
    pub id: String,
}

/// A definition is published.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Deploy {
    /// The name under which its versions are counted: a definition of the command's tenant.
    #[n(0)]
    pub name: String,
    /// Its format: `checkpoint`.
    #[n(1)]
    pub format: String,
    /// The files as published.
    #[n(2)]
    pub files: Vec<SourceFile>,
    /// Of the files; the same bytes are the same version.
    #[n(3)]
    pub source: Digest,
    /// What they compiled to.
    #[cbor(n(4), with = "crate::row::machine_bytes")]
    pub machine: std::sync::Arc<Machine>,
    /// Whether new sessions use it from now on.
    #[n(5)]
    pub activate: bool,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    #[n(6)]
    pub etag: String,
    /// What the author is informed of: a repetition of the request returns the same, whatever compiles it then.
    #[n(7)]
    pub findings: Vec<Finding>,
}

/// Another version is used from now on.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct ActivateVersion {
    /// The definition.
    #[n(0)]
    pub name: String,
    /// The number of the version that new sessions get, from 1.
    #[n(1)]
    pub version: u32,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    #[n(2)]
    pub etag: String,
}

/// No session starts with a version any more.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RetireVersion {
    /// The definition.
    #[n(0)]
    pub name: String,
    /// The version, which must not be the active one.
    #[n(1)]
    pub version: u32,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    #[n(2)]
    pub etag: String,
}

/// A definition is put out of use, or used again.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct ArchiveDefinition {
    /// The definition.
    #[n(0)]
    pub name: String,
    /// Whether it is archived from now on.
    #[n(1)]
    pub archived: bool,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    #[n(2)]
    pub etag: String,
}

/// A definition, or a version of it, is deleted. The sender has made sure that no session is pinned to it.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DeleteDefinition {
    /// The definition, which must be archived if it is deleted as a whole.
    #[n(0)]
    pub name: String,
    /// The version, which must be retired; `None`: the definition with all of them.
    #[n(1)]
    pub version: Option<u32>,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    #[n(2)]
    pub etag: String,
}

/// A tenant gets what its mail tokens are made with. If it has it already, nothing changes.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct EnsureTenancy {
    /// The tenant's setting of the same name.
    #[n(0)]
    pub any_approver_address: bool,
    /// The tenant's setting of the same name.
    #[n(1)]
    pub link_auth: Option<LinkAuth>,
    /// Drawn for this tenant; used if it has none yet. `None` if the server has no key ring.
    #[n(2)]
    pub key: Option<Sealed>,
}

/// Who is who in a tenant, all of it.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct PutDirectory {
    /// The entries in any order.
    #[n(0)]
    pub directory: Directory,
    /// Drawn for this tenant; used if it has no key for its mail tokens yet.
    #[n(1)]
    pub key: Option<Sealed>,
    /// What the caller saw, see [`Directory::etag`]; empty if any will do.
    #[n(2)]
    pub etag: String,
}

/// What a shard must know of a tenant; an older revision than the one that it knows changes nothing.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct InstallTenancy {
    /// The catalogue's record.
    #[n(0)]
    pub tenancy: Tenancy,
}

/// Secrets of a tenant are sealed under another key: those that still are as they were become as they shall be.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Reseal {
    /// Each secret as it is sealed now, and as it shall be sealed.
    #[n(0)]
    pub secrets: Vec<(Sealed, Sealed)>,
    /// The names of the sources of webhooks that may have some of them.
    #[n(1)]
    pub sources: Vec<String>,
}

/// A tenant is deleted, by an admin of another one.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DeleteTenant {
    /// The number of the tenant that is deleted, not the command's own.
    #[n(0)]
    pub tenant: TenantId,
    /// The tenant's name, which must lead to that number.
    #[n(1)]
    pub name: String,
    /// What the caller saw, see [`Tenant::etag`](crate::catalogue::Tenant::etag); empty if any will do.
    #[n(2)]
    pub etag: String,
}

/// How long what has ended is kept.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct PutRetention {
    /// The rules.
    #[n(0)]
    pub retention: Retention,
    /// What mail tokens are made with, if the tenant has none of it yet.
    #[n(1)]
    pub key: Option<Sealed>,
    /// The etag that the caller saw; empty for any.
    #[n(2)]
    pub etag: String,
}
