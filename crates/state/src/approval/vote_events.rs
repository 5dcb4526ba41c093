//! What happens at gates that need several approvals.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::OpenId;

use crate::approval::{Asked, Quorum, Vote};

/// A fact about approvals that are counted. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum VoteFact {
    /// The session's gates need this many approvals.
    #[n(0)]
    QuorumSet {
        /// How many.
        #[n(0)]
        quorum: Quorum,
    },
    /// Somebody has approved.
    #[n(1)]
    Given {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Who, and how.
        #[n(1)]
        vote: Vote,
        /// How many approvals it takes now.
        #[n(2)]
        need: u32,
    },
    /// Others are asked too, and it takes another number of approvals.
    #[n(2)]
    Needed {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// How many it takes now.
        #[n(1)]
        need: u32,
    },
    /// People are notified of a gate that was opened without any.
    #[n(3)]
    Notified {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Who, and of what.
        #[n(1)]
        asked: Box<Asked>,
    },
    /// These are asked, too, if those whom a gate asks do not decide.
    #[n(100)]
    EscalationSet {
        /// Addresses and names.
        #[n(0)]
        contacts: Vec<String>,
    },
    /// These are not asked: data or the start names them, and the directory does not hold them.
    #[n(102)]
    Dropped {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Addresses and names, as they were given.
        #[n(1)]
        who: Vec<String>,
    },
}
