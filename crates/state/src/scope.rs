//! What a command is about.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Bucket, SessionId, TenantId};

use crate::key::ledger_home;

/// What a command is about: whose rows it may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Scope {
    /// The rows of one session.
    #[n(0)]
    Session(#[n(0)] SessionId),
    /// The ledgers of one process, by its name.
    #[n(1)]
    Ledger(#[n(0)] String),
    /// Tenants, keys and definitions.
    #[n(2)]
    Catalogue,
    /// The shard that the command is sent to.
    #[n(3)]
    Shard,
}

impl Scope {
    /// The bucket that its rows live in; `None` for the catalogue and for a shard as a whole.
    #[must_use]
    pub fn bucket(&self, tenant: TenantId) -> Option<Bucket> {
        match self {
            Self::Session(session) => Some(session.bucket()),
            Self::Ledger(process) => Some(ledger_home(tenant, process).0),
            Self::Catalogue | Self::Shard => None,
        }
    }
}
