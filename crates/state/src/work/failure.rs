//! Why attempts at work fail.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::DeliveryReason;

use crate::delivery::DeliveryDetail;

/// Why an attempt at work has failed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum WorkFailure {
    /// A worker says so, through the API.
    #[n(0)]
    Reported {
        /// The worker's own text; maybe empty.
        #[n(0)]
        text: String,
    },
    /// An attempt of a server has failed.
    #[n(1)]
    Attempt {
        /// The reason code.
        #[n(0)]
        reason: DeliveryReason,
        /// What has gone wrong.
        #[n(1)]
        detail: DeliveryDetail,
    },
    /// The work is larger than the bus accepts.
    #[n(2)]
    TooLarge,
}

impl WorkFailure {
    /// The bytes of its text or detail.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Reported { text } => text.len(),
            Self::Attempt { detail, .. } => detail.bytes(),
            Self::TooLarge => 0,
        }
    }
}
