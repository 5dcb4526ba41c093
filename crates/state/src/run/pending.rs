//! What came for a run while its data stood still.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, Port};

use crate::run::Json;

/// Data that came for a run while an approval of it was open; they enter in their order when it closes.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum PendingInput {
    /// The data of an event.
    #[n(0)]
    Event {
        /// The event's key.
        #[n(0)]
        key: String,
        /// An object; may be empty.
        #[n(1)]
        data: Json,
    },
    /// A worker's result.
    #[n(1)]
    Work {
        /// The work, which is done.
        #[n(0)]
        item: OpenId,
        /// The keys that it writes, an object.
        #[n(1)]
        data: Json,
        /// How its part of the body ends.
        #[n(2)]
        port: Port,
    },
}

impl PendingInput {
    /// The object that it brings.
    #[must_use]
    pub fn data(&self) -> &Json {
        match self {
            Self::Event { data, .. } | Self::Work { data, .. } => data,
        }
    }

    /// What it counts for, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let key = match self {
            Self::Event { key, .. } => key.len(),
            Self::Work { .. } => 0,
        };
        key.saturating_add(crate::run::json_length(&self.data().0))
    }
}
