//! Commands that end data.

use minicbor::{Decode, Encode};
use switchward_machine::{SessionId, Time};

use crate::session::Removing;
use crate::{Key, ScopeKind};

/// The data of the scope's session, which has ended, is to be removed.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Remove {
    /// Why it is removed, and so what remains.
    #[n(0)]
    pub how: Removing,
    /// Only if it ended no later than this.
    #[n(1)]
    pub ended_by: Option<Time>,
}

/// A bounded step of a removal.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum RemoveStep {
    /// Rows of a session whose removal is under way.
    #[n(0)]
    Rows {
        /// The session whose removal goes on.
        #[n(0)]
        session: SessionId,
        /// Its rows, in the order of their keys.
        #[n(1)]
        keys: Vec<Key>,
        /// Set if no other row was left when the session stood at this sequence: the removal is done then.
        #[n(2)]
        last: Option<u64>,
    },
    /// Small sessions that ended no later than a time expire whole, each in one go.
    #[n(1)]
    Expire {
        /// Sessions of the command's tenant and of this shard.
        #[n(0)]
        sessions: Vec<Expiring>,
        /// None of them may have ended later.
        #[n(1)]
        ended_by: Time,
    },
    /// What remains of expired sessions that ended no later than a time.
    #[n(2)]
    Forget {
        /// The rows.
        #[n(0)]
        keys: Vec<Key>,
        /// None of the sessions may have ended later.
        #[n(1)]
        ended_by: Time,
    },
    /// Rows of the command's tenant, which is being deleted.
    #[n(3)]
    OfTenant {
        /// The rows.
        #[n(0)]
        keys: Vec<Key>,
    },
    /// The command's tenant has no row left, in the shard or, if the scope is the catalogue, there.
    #[n(4)]
    TenantGone,
}

impl RemoveStep {
    /// The scopes that the step may have.
    #[must_use]
    pub fn scope(&self) -> ScopeKind {
        match self {
            Self::Rows { .. } | Self::Expire { .. } | Self::Forget { .. } => ScopeKind::Shard,
            Self::OfTenant { .. } | Self::TenantGone => ScopeKind::ShardOrCatalogue,
        }
    }
}

/// A session that expires whole, as the caller saw it. One that is another by now stays as it is.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Expiring {
    /// The session that expires.
    #[n(0)]
    pub session: SessionId,
    /// All of its rows but its own, in the order of their keys.
    #[n(1)]
    pub keys: Vec<Key>,
    /// The sequence that the session must still stand at.
    #[n(2)]
    pub sequence: u64,
}
