//! What came for a run while its data stood still.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, Port};

use crate::run::{Fault, Json};

/// What came for a run while an approval of it was open; it enters in its order when the approval closes.
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
        /// The requester of what follows if the run stays in its state: whose result it is.
        #[n(3)]
        requester: String,
    },
    /// An attempt of a server at work that has failed.
    #[n(2)]
    Failed {
        /// The work, which is done.
        #[n(0)]
        item: OpenId,
        /// What has gone wrong. It counts only if the run stays in its state.
        #[n(1)]
        fault: Fault,
    },
    /// A wait, or the delay before the next attempt, was over.
    #[n(3)]
    TimeOver {
        /// The wait or timer, which is closed.
        #[n(0)]
        item: OpenId,
        /// How the wait ends; `None` if the body begins again. It counts only if the run stays in its state.
        #[n(1)]
        port: Option<Port>,
    },
}

impl PendingInput {
    /// The object that it brings; `None` if it brings no data.
    #[must_use]
    pub fn data(&self) -> Option<&Json> {
        match self {
            Self::Event { data, .. } | Self::Work { data, .. } => Some(data),
            Self::Failed { .. } | Self::TimeOver { .. } => None,
        }
    }

    /// What has gone wrong with the work; `None` if nothing has.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Failed { fault, .. } => Some(fault),
            Self::Event { .. } | Self::Work { .. } | Self::TimeOver { .. } => None,
        }
    }

    /// What it counts for, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let key = match self {
            Self::Event { key, .. } => key.len(),
            Self::Work { .. } | Self::Failed { .. } | Self::TimeOver { .. } => 0,
        };
        key.saturating_add(self.data().map_or(0, |data| crate::run::json_length(&data.0)))
    }
}
