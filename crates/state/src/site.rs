//! Where and when an event holds.

use switchward_machine::{SessionId, TenantId, Time};

use crate::{Key, Scope, ViewError};

/// Where and when an event holds.
pub struct Site<'a> {
    /// The tenant whose rows change.
    pub tenant: TenantId,
    /// What the command was about.
    pub scope: &'a Scope,
    /// The time of the batch.
    pub at: Time,
}

impl Site<'_> {
    /// The session that the scope names.
    pub fn session(&self) -> Result<SessionId, ViewError> {
        match self.scope {
            Scope::Session(id) => Ok(*id),
            Scope::Ledger(_) | Scope::Catalogue | Scope::Shard => {
                Err(ViewError("the scope is no session".into()))
            }
        }
    }

    pub(crate) fn session_key(&self) -> Result<Key, ViewError> {
        Ok(Key::session(self.tenant, self.session()?))
    }
}
