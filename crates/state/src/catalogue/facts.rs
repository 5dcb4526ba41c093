//! Facts about single things of the catalogue.

use minicbor::{CborLen, Decode, Encode};
use std::sync::Arc;
use switchward_machine::{Machine, TenantId};

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
