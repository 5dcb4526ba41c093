//! Wishes that end data.

use switchward_machine::{SessionId, TenantId, Time};

use crate::Key;
use crate::seal::Sealed;
use crate::session::{Removing, Retention};

/// The data of the scope's session, which has ended, is to be removed.
#[derive(Debug, Clone)]
pub struct Remove {
    /// How.
    pub how: Removing,
    /// Only if it ended no later than this.
    pub ended_by: Option<Time>,
}

/// A bounded step of a removal. The scope is the shard.
#[derive(Debug, Clone)]
pub enum RemoveStep {
    /// Rows of a session whose removal is under way.
    Rows {
        /// The session.
        session: SessionId,
        /// Its rows, in the order of their keys.
        keys: Vec<Key>,
        /// Set if no other row was left when the session stood at this sequence: the removal is done then.
        last: Option<u64>,
    },
    /// Small sessions that ended no later than a time expire whole, each in one go.
    Expire {
        /// The sessions.
        sessions: Vec<Expiring>,
        /// The time.
        ended_by: Time,
    },
    /// What remains of expired sessions that ended no later than a time.
    Forget {
        /// The rows.
        keys: Vec<Key>,
        /// The time.
        ended_by: Time,
    },
    /// Rows of the command's tenant, which is being deleted.
    OfTenant {
        /// The rows.
        keys: Vec<Key>,
    },
    /// The command's tenant has no row left, in the shard or, if the scope is the catalogue, there.
    TenantGone,
}

/// A session that expires whole, as the caller saw it. One that is another by now stays as it is.
#[derive(Debug, Clone)]
pub struct Expiring {
    /// The session.
    pub session: SessionId,
    /// All of its rows but its own, in the order of their keys.
    pub keys: Vec<Key>,
    /// Its sequence.
    pub sequence: u64,
}

/// Nothing of a tenant goes out from now on, or what waits goes out again.
#[derive(Debug, Clone, Copy)]
pub struct HoldEffects {
    /// Which of the two.
    pub held: bool,
}

/// A tenant is deleted, by an admin of another one.
#[derive(Debug, Clone)]
pub struct DeleteTenant {
    /// It.
    pub tenant: TenantId,
    /// Its name.
    pub name: String,
    /// What the caller saw, see [`Tenant::etag`](crate::catalogue::Tenant::etag); empty if any will do.
    pub etag: String,
}

/// How long what has ended is kept.
#[derive(Debug, Clone)]
pub struct PutRetention {
    /// The rules.
    pub retention: Retention,
    /// What mail tokens are made with, if the tenant has none of it yet.
    pub key: Option<Sealed>,
    /// The etag that the caller saw; empty for any.
    pub etag: String,
}
