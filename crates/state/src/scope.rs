//! What a command is about.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Bucket, SessionId, TenantId};

use crate::key::ledger_home;

/// What a command is about: whose rows it may change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
#[cbor(flat)]
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

/// The scopes that a kind of command may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeKind {
    /// One session, whose bucket its shard owns.
    Session,
    /// The ledger of one process of the tenant.
    Ledger,
    /// The catalogue's own group.
    Catalogue,
    /// The shard that the command is sent to.
    Shard,
    /// What an outbox belongs to: a session, or for a tenant's own one the catalogue.
    Outbox,
    /// What a due row belongs to, see [`Due::scope`](crate::Due::scope): a session, or the shard.
    Due,
    /// The shard that the command is sent to, or the catalogue.
    ShardOrCatalogue,
}

impl ScopeKind {
    /// Returns true if a command of this kind may have this scope.
    #[must_use]
    pub fn takes(self, scope: &Scope) -> bool {
        match self {
            Self::Session => matches!(scope, Scope::Session(_)),
            Self::Ledger => matches!(scope, Scope::Ledger(_)),
            Self::Catalogue => matches!(scope, Scope::Catalogue),
            Self::Shard => matches!(scope, Scope::Shard),
            Self::Outbox => matches!(scope, Scope::Session(_) | Scope::Catalogue),
            Self::Due => matches!(scope, Scope::Session(_) | Scope::Shard),
            Self::ShardOrCatalogue => matches!(scope, Scope::Shard | Scope::Catalogue),
        }
    }

    /// The scope of a command for which none is named: the only one of its kind, else the shard that the command is sent to.
    /// A command about a session, a ledger or an outbox cannot have that one, and is not decided.
    #[must_use]
    pub fn own(self) -> Scope {
        match self {
            Self::Catalogue => Scope::Catalogue,
            Self::Session
            | Self::Ledger
            | Self::Shard
            | Self::Outbox
            | Self::Due
            | Self::ShardOrCatalogue => Scope::Shard,
        }
    }
}
