//! Who says something in a conversation.

use minicbor::{CborLen, Decode, Encode};

use crate::catalogue::Role;

/// Who has said something in a conversation. Stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Speaker {
    /// The user, as somebody says who may speak for what happens outside.
    #[n(0)]
    User,
    /// The agent, in its own name.
    #[n(1)]
    Agent,
    /// The user, as the agent says: what it relays confirms nothing.
    #[n(2)]
    Relayed,
}

impl Speaker {
    /// Who speaks if a key of this role hands in what the user has said.
    #[must_use]
    pub fn for_user(role: Role) -> Self {
        if role.speaks_for_outside() { Self::User } else { Self::Relayed }
    }
}
