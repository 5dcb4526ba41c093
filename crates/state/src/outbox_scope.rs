//! Outboxes belong to a session or to a tenant.

use switchward_machine::SessionId;

use crate::Scope;

/// Whose an outbox is. The tenant's own holds messages that are about no session, and is in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutboxScope {
    /// It belongs to this session.
    Session(SessionId),
    /// It belongs to the tenant as a whole.
    Tenant,
}

/// The least of all ids, which no session has. It stands for the session in keys and delivery jobs of the tenant's own
/// effects.
pub const NO_SESSION: SessionId = SessionId([0; 16]);

impl OutboxScope {
    /// What a command about its effects is about.
    #[must_use]
    pub fn scope(self) -> Scope {
        match self {
            Self::Session(session) => Scope::Session(session),
            Self::Tenant => Scope::Catalogue,
        }
    }

    /// What stands for it in keys and delivery jobs: the session's id, or an id that no session has.
    #[must_use]
    pub fn id(self) -> SessionId {
        match self {
            Self::Session(session) => session,
            Self::Tenant => NO_SESSION,
        }
    }
}

impl From<SessionId> for OutboxScope {
    /// Reads what [`OutboxScope::id`] gave.
    fn from(id: SessionId) -> Self {
        if id == NO_SESSION { Self::Tenant } else { Self::Session(id) }
    }
}
