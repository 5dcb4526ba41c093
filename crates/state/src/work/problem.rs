//! Why work was in vain.

use minicbor::{CborLen, Decode, Encode};

use crate::run::Fault;

/// Why work was in vain.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum WorkProblem {
    /// Its attempt has failed.
    #[n(0)]
    Fault(#[n(0)] Fault),
    /// Nobody could sort a reply, which counts as undecided.
    #[n(1)]
    Undecided,
}
