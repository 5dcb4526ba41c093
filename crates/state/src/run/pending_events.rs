//! Data that come while an approval is open.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId};

use crate::run::PendingInput;

/// A fact about data that wait for an approval.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum PendingFact {
    /// They came while it was open, and enter when it closes.
    #[n(0)]
    Held {
        /// The run that the data are for.
        #[n(0)]
        run: RunId,
        /// The approval.
        #[n(1)]
        gate: OpenId,
        /// What came.
        #[n(2)]
        input: PendingInput,
    },
    /// What was held enters the data.
    #[n(1)]
    Entered {
        /// The run whose data they enter.
        #[n(0)]
        run: RunId,
        /// How many inputs.
        #[n(1)]
        count: u32,
    },
}
