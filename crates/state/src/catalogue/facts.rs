//! Facts about single things of the catalogue.

use minicbor::{CborLen, Decode, Encode};
use std::sync::Arc;
use switchward_machine::{Digest, Machine, TenantId};

use crate::catalogue::{Assistant, Tenancy, TenantChange};

/// A fact about an assistant in the catalogue. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum AssistantFact {
    /// It is this from now on.
    #[n(0)]
    Put {
        /// All of it, as it is from now on.
        #[n(0)]
        assistant: Assistant,
        /// The machine by which its sessions find out what a first message means.
        #[cbor(n(1), with = "crate::row::machine_bytes")]
        machine: Arc<Machine>,
    },
    /// It exists no more.
    #[n(1)]
    Deleted {
        /// The name that it had.
        #[n(0)]
        name: String,
    },
}

/// A fact about which versions new sessions use. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum VersionFact {
    /// They use this one from now on; it is no longer retired.
    #[n(0)]
    Activated {
        /// The definition.
        #[n(0)]
        name: String,
        /// The version.
        #[n(1)]
        number: u32,
    },
    /// None uses this one from now on.
    #[n(1)]
    Retired {
        /// The definition.
        #[n(0)]
        name: String,
        /// The version.
        #[n(1)]
        number: u32,
        /// Who said so: the subject of the credential.
        #[n(2)]
        by: String,
    },
    /// They use no version of this definition from now on.
    #[n(2)]
    Archived {
        /// The definition.
        #[n(0)]
        name: String,
        /// The subject of the credential that archived it.
        #[n(1)]
        by: String,
    },
    /// They use the definition again.
    #[n(3)]
    Unarchived {
        /// The definition.
        #[n(0)]
        name: String,
    },
    /// Versions exist no more.
    #[n(4)]
    Deleted {
        /// The definition.
        #[n(0)]
        name: String,
        /// Those that go, in the order of their numbers.
        #[n(1)]
        versions: Vec<DeletedVersion>,
        /// What they compiled to, without the machines that other versions compiled to as well.
        #[n(2)]
        machines: Vec<Digest>,
    },
    /// A definition without versions exists no more. Its name keeps the number of its last version.
    #[n(5)]
    DefinitionDeleted {
        /// The definition.
        #[n(0)]
        name: String,
        /// The subject of the credential that deleted it.
        #[n(1)]
        by: String,
    },
}

/// What is left of a version: its number, which is never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct DeletedVersion {
    /// Its number, from 1.
    #[n(0)]
    pub number: u32,
    /// The digest of its files.
    #[n(1)]
    pub source: Digest,
}

/// A fact about a tenant as a whole. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum TenantFact {
    /// A setting of the tenant was changed.
    #[n(0)]
    Changed {
        /// The number of the change, from 1.
        #[n(0)]
        number: u64,
        /// What was changed, when, and by whom.
        #[n(1)]
        change: TenantChange,
    },
    /// The deletion of another tenant has begun.
    #[n(1)]
    Deleted {
        /// The number of the tenant that is deleted, not the event's own.
        #[n(0)]
        tenant: TenantId,
        /// The tenant's name, as it is in resource names.
        #[n(1)]
        name: String,
        /// What every shard must know of the tenant afterwards.
        #[n(2)]
        tombstone: Box<Tenancy>,
    },
}
