//! What replies by mail lead to.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId};

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
        /// Who.
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

/// What became of a reply. Stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ReplyOutcome {
    /// It has decided a gate.
    #[n(0)]
    Decided,
    /// It is one of several approvals that a gate needs.
    #[n(1)]
    Counted,
    /// It is the answer of somebody who takes part in a task.
    #[n(2)]
    Answered,
    /// It has ended a wait.
    #[n(3)]
    Received,
    /// A model is asked what it means.
    #[n(4)]
    Read,
    /// Nothing says what it means, and what it is about is open as before.
    #[n(5)]
    Noted,
    /// Its writer has approved before.
    #[n(6)]
    Repeated,
    /// It approves a call whose limit is full.
    #[n(7)]
    Full,
    /// Nothing proves that its sender wrote it.
    #[n(8)]
    Unproved,
    /// It is to an earlier mail, and its writer was asked again since.
    #[n(9)]
    Earlier,
    /// What it is about is closed.
    #[n(10)]
    Late,
    /// Its token was made for somebody else.
    #[n(11)]
    Foreign,
    /// Its writer asked for the decision, and so cannot make it.
    #[n(12)]
    Own,
    /// Nothing waits for it.
    #[n(13)]
    Unexpected,
    /// It approves what its mail did not show all of.
    #[n(14)]
    Unseen,
    /// It has no words of its own.
    #[n(15)]
    Empty,
}

impl ReplyOutcome {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Counted => "counted",
            Self::Answered => "answered",
            Self::Received => "received",
            Self::Read => "read_by_model",
            Self::Noted => "noted",
            Self::Repeated => "approved_before",
            Self::Full => "limit_reached",
            Self::Unproved => "sender_not_proved",
            Self::Earlier => "earlier_mail",
            Self::Late => "closed_before",
            Self::Foreign => "not_addressed",
            Self::Own => "own_request",
            Self::Unexpected => "nothing_waits",
            Self::Unseen => "not_all_seen",
            Self::Empty => "empty",
        }
    }
}

/// A reply that came by mail. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ReplyFact {
    /// The run.
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
    /// The evidence of its origin; may be empty.
    #[cbor(n(5), default, skip_if = "String::is_empty")]
    pub evidence: String,
    /// Why it moves nothing, if that is known at once.
    #[n(6)]
    pub why: Option<ReplyOutcome>,
    /// Who brought the mail with a key; `None` if a mail server did.
    #[n(7)]
    pub brought_by: Option<String>,
}
