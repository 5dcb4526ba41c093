//! Where and when an event holds.

use switchward_machine::{SessionId, TenantId, Time};

use crate::{Key, OutboxScope, Scope, ViewError};

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

    /// The outbox that the scope's effects stand in.
    pub fn outbox(&self) -> Result<OutboxScope, ViewError> {
        match self.scope {
            Scope::Session(id) => Ok(OutboxScope::Session(*id)),
            Scope::Catalogue => Ok(OutboxScope::Tenant),
            Scope::Ledger(_) | Scope::Shard => Err(ViewError("the scope has no outbox".into())),
        }
    }

    pub(crate) fn session_key(&self) -> Result<Key, ViewError> {
        Ok(Key::session(self.tenant, self.session()?))
    }
}
