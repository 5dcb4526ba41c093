//! Events about the catalogue.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Machine;

use crate::catalogue::{ApiKey, AssistantFact, ClusterChange, ClusterMap, Settings, TenantFact, VersionFact};

/// An event about the catalogue. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum CatalogueEvent {
    /// A shard knows a machine.
    #[n(0)]
    MachineInstalled {
        /// What a definition compiled to, known by its digest from now on.
        #[cbor(n(0), with = "crate::row::machine_bytes")]
        machine: std::sync::Arc<Machine>,
    },
    /// A tenant exists from now on.
    #[n(1)]
    TenantCreated(#[n(0)] crate::catalogue::Tenant),
    /// A tenant of this name has other switches, all of which these are.
    #[n(2)]
    TenantChanged(#[n(0)] String, #[n(1)] Settings),
    /// A key exists from now on.
    #[n(3)]
    KeyCreated(#[n(0)] ApiKey),
    /// The key of this public id is void.
    #[n(4)]
    KeyRevoked(#[n(0)] String),
    /// A version exists from now on.
    #[n(5)]
    VersionDeployed {
        /// The definition.
        #[n(0)]
        name: String,
        /// The word of the format that its files are in.
        #[n(1)]
        format: String,
        /// The new version, with its number and its files.
        #[n(2)]
        version: crate::catalogue::Version,
        /// What the version compiled to.
        #[cbor(n(3), with = "crate::row::machine_bytes")]
        machine: std::sync::Arc<Machine>,
    },
    /// New sessions use another version from now on, or never one.
    #[n(6)]
    Versions(#[n(0)] VersionFact),
    /// An assistant is another one from now on.
    #[n(7)]
    Assistants(#[n(0)] AssistantFact),
    /// What every shard must know of a tenant is this from now on: in the catalogue, or in one shard.
    #[n(8)]
    TenancyPut(#[n(0)] crate::catalogue::Tenancy),
    /// Something about a tenant as a whole.
    #[n(9)]
    Tenants(#[n(0)] TenantFact),
    /// A server of the cluster was added or changed.
    #[n(10)]
    ClusterChanged(#[n(0)] Box<ClusterChange>),
    /// The cluster has another feature level from now on; this is its map.
    #[n(11)]
    LevelRaised(#[n(0)] Box<ClusterMap>),
    /// Other servers are to vote in a group: the map from now on.
    #[n(12)]
    VotersPlaced(#[n(0)] Box<ClusterMap>),
}

impl CatalogueEvent {
    /// Returns true if the event may end what a key allows.
    #[must_use]
    pub fn changes_credentials(&self) -> bool {
        match self {
            Self::KeyRevoked(_) | Self::TenantChanged(..) | Self::Tenants(_) => true,
            Self::MachineInstalled { .. }
            | Self::TenantCreated(_)
            | Self::KeyCreated(_)
            | Self::VersionDeployed { .. }
            | Self::Versions(_)
            | Self::Assistants(_)
            | Self::TenancyPut(_)
            | Self::ClusterChanged(_)
            | Self::LevelRaised(_)
            | Self::VotersPlaced(_) => false,
        }
    }
}
