//! What credentials allow.

use minicbor::{CborLen, Decode, Encode};

/// What a credential allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum Role {
    /// Drives sessions; never decides.
    #[n(0)]
    Agent,
    /// Deploys definitions.
    #[n(1)]
    Author,
    /// Decides gates.
    #[n(2)]
    Approver,
    /// Looks after sessions, and decides.
    #[n(3)]
    Operator,
    /// Everything inside the tenant.
    #[n(4)]
    Admin,
    /// The server itself; no credential has it.
    #[n(5)]
    Server,
    /// Does work; drives no session and decides nothing.
    #[n(6)]
    Worker,
    /// Brings what happened outside: events, and what users say. It drives no session, reads none and decides nothing.
    #[n(110)]
    Integration,
}

impl Role {
    /// The role's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Author => "author",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Admin => "admin",
            Self::Server => "server",
            Self::Worker => "worker",
            Self::Integration => "integration",
        }
    }

    /// Whether a gate may be decided with it.
    #[must_use]
    pub fn decides(self) -> bool {
        match self {
            Self::Approver | Self::Operator | Self::Admin => true,
            Self::Agent | Self::Author | Self::Server | Self::Worker | Self::Integration => false,
        }
    }

    /// Whether it may say what happened outside: an event, or what a user has said.
    #[must_use]
    pub fn speaks_for_outside(self) -> bool {
        match self {
            Self::Operator | Self::Admin | Self::Integration => true,
            Self::Agent | Self::Author | Self::Approver | Self::Server | Self::Worker => false,
        }
    }
}
