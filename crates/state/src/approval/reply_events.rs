//! What replies by mail lead to.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId};

use crate::approval::{ReplyEvidence, ReplyOutcome};

/// What is known of the sender of a reply. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum SenderProof {
    /// Nothing.
    #[n(0)]
    None,
    /// The mail itself proves it.
    #[n(1)]
    Mail,
    /// An operator vouches for it: at a gate it is their own decision.
    #[n(2)]
    Vouched {
        /// The subject of the operator's key.
        #[n(0)]
        by: String,
    },
}

impl SenderProof {
    /// Who vouches for the sender.
    #[must_use]
    pub fn vouched_by(&self) -> &str {
        match self {
            Self::Vouched { by } => by,
            Self::None | Self::Mail => "",
        }
    }
}

/// A reply that came by mail. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ReplyFact {
    /// The run that the reply is recorded at.
    #[n(0)]
    pub run: RunId,
    /// Who wrote it.
    #[n(1)]
    pub from: String,
    /// The writer's own words.
    #[n(2)]
    pub text: String,
    /// What is known of its sender.
    #[n(3)]
    pub proof: SenderProof,
    /// The gate or the wait that it is about; `None` if there is none for this sender.
    #[n(4)]
    pub about: Option<OpenId>,
    /// What the checks of the mail have shown; `None` if an operator vouches for it.
    #[n(5)]
    pub evidence: Option<ReplyEvidence>,
    /// Why it moves nothing, if that is known at once.
    #[n(6)]
    pub why: Option<ReplyOutcome>,
    /// Who brought the mail with a key; `None` if a mail server did.
    #[n(7)]
    pub brought_by: Option<String>,
}
