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
        /// The assistant.
        #[n(0)]
        assistant: Assistant,
        /// Its machine.
        #[cbor(n(1), with = "crate::row::machine_bytes")]
        machine: Arc<Machine>,
    },
    /// It is deleted.
    #[n(1)]
    Deleted {
        /// Its name.
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
        /// The change.
        #[n(1)]
        change: TenantChange,
    },
    /// The deletion of another tenant has begun.
    #[n(1)]
    Deleted {
        /// It.
        #[n(0)]
        tenant: TenantId,
        /// Its name.
        #[n(1)]
        name: String,
        /// What every shard must know of the tenant afterwards.
        #[n(2)]
        tombstone: Box<Tenancy>,
    },
}
