//! Why an event for an endpoint cannot be sent.

use minicbor::{CborLen, Decode, Encode};

use crate::delivery::{DisabledReason, EventSubject, PublishedType};

/// Why an event for an endpoint cannot be sent: it is known before any attempt, and no other attempt changes it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EventProblem {
    /// It would go to an endpoint that takes nothing now.
    #[n(0)]
    EndpointDisabled {
        /// Why it is sent nothing any more.
        #[n(0)]
        reason: DisabledReason,
    },
    /// The session that the event is about does not exist.
    #[n(1)]
    NoSession,
    /// An event of this type cannot be about what the effect is about.
    #[n(2)]
    UnknownSubject {
        /// The event's type.
        #[n(0)]
        kind: PublishedType,
        /// What the effect says that it is about; `None` if it says nothing.
        #[n(1)]
        about: Option<EventSubject>,
    },
}
