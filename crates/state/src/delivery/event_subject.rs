//! What the events that endpoints receive are about.

use minicbor::{CborLen, Decode, Encode};

use crate::delivery::DisabledReason;

/// What exactly an event for endpoints is about.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EventSubject {
    /// Something of a session: the number of a gate or of an effect, a state, a capability or the unit of a budget, as the
    /// event's type has it.
    #[n(0)]
    OfSession(#[n(0)] String),
    /// A version of a definition.
    #[n(1)]
    Version {
        /// The name of the definition.
        #[n(0)]
        definition: String,
        /// Counted from 1.
        #[n(1)]
        number: u32,
    },
    /// An endpoint that was disabled.
    #[n(2)]
    Endpoint {
        /// Its name.
        #[n(0)]
        id: String,
        /// Why it is sent nothing any more.
        #[n(1)]
        reason: DisabledReason,
    },
}

impl EventSubject {
    /// Returns what an event about a session has; `None` if it is about the tenant itself.
    #[must_use]
    pub fn of_session(&self) -> Option<&str> {
        match self {
            Self::OfSession(text) => Some(text),
            Self::Version { .. } | Self::Endpoint { .. } => None,
        }
    }

    /// What its texts hold, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::OfSession(text) => text.len(),
            Self::Version { definition, .. } => definition.len(),
            Self::Endpoint { id, .. } => id.len(),
        }
    }
}
