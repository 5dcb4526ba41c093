//! What is said about the end of a run.

use minicbor::{CborLen, Decode, Encode};

use crate::run::{EndedRun, Fault, FaultCause};

/// What is said about the end of a run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EndComment {
    /// Somebody's own words; maybe empty.
    #[n(0)]
    Written(#[n(0)] String),
    /// What has gone wrong in the run.
    #[n(1)]
    Fault(#[n(0)] Fault),
    /// The run belongs to a session of a restored backup, which has ended and was removed since the backup was taken.
    #[n(2)]
    RemovedAfterBackup,
}

impl Default for EndComment {
    fn default() -> Self {
        Self::Written(String::new())
    }
}

impl From<FaultCause> for EndComment {
    fn from(cause: FaultCause) -> Self {
        Self::Fault(cause.into())
    }
}

impl EndComment {
    /// Returns the fault that the end of this run is for the run that has called it.
    #[must_use]
    pub fn into_fault(self, run: EndedRun) -> Fault {
        match self {
            Self::Written(comment) => Fault { cause: FaultCause::Ended { comment }, ended: vec![run] },
            // Said of the root run alone, which nobody has called.
            Self::RemovedAfterBackup => {
                Fault { cause: FaultCause::Ended { comment: String::new() }, ended: vec![run] }
            }
            Self::Fault(Fault { cause, mut ended }) => {
                ended.insert(0, run);
                Fault { cause, ended }
            }
        }
    }
}
