//! What becomes of replies, and what the server writes to people by itself: facts, which the crate `messages` puts into
//! words.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Decision, OpenId, SessionId, Time};

use crate::approval::Via;
use crate::policy::Shortage;

/// What somebody is informed of. Stored form. The request or the mail that it is about is named beside it, in
/// [`MessageText::Notice`](crate::delivery::MessageText::Notice).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Notice {
    /// Somebody who opened their decision page gets its code, which is made when the mail goes out.
    #[n(0)]
    PageCode,
    /// The reply is recorded as a decision.
    #[n(1)]
    Decided {
        /// What it decides.
        #[n(0)]
        decision: Decision,
        /// Which gate the writer's decision was recorded at, and when.
        #[n(1)]
        receipt: Receipt,
    },
    /// The reply counts as one of several approvals, and the request is still open.
    #[n(2)]
    Counted {
        /// Which gate the writer's approval was recorded at, and when.
        #[n(0)]
        receipt: Receipt,
        /// The approvals so far, this one among them.
        #[n(1)]
        progress: Progress,
    },
    /// The writer has approved the request before, and it is still open.
    #[n(3)]
    ApprovedBefore {
        /// The approvals so far.
        #[n(0)]
        progress: Progress,
    },
    /// The reply approves a call, which cannot be approved now.
    #[n(4)]
    CannotApprove {
        /// Why.
        #[n(0)]
        shortage: Shortage,
    },
    /// The reply does not count, and the request is still open.
    #[n(5)]
    NotCounted {
        /// The reason, which the mail explains.
        #[n(0)]
        why: NotCounted,
    },
    /// The reply is recorded as the answer of somebody who takes part in a task.
    #[n(6)]
    Answered {
        /// Which gate the writer's answer was recorded at, and when.
        #[n(0)]
        receipt: Receipt,
    },
    /// The reply was passed on as a question, and the request is still open.
    #[n(7)]
    PassedOn,
    /// The reply was recorded as a comment, and the request is still open.
    #[n(8)]
    Commented,
    /// The reply came after the request was closed.
    #[n(9)]
    Late {
        /// When the request was closed.
        #[n(0)]
        at: Time,
        /// What had closed it.
        #[n(1)]
        closing: Closing,
    },
    /// The reply answers a mail of a definition, and is passed on.
    #[n(10)]
    ReplyReceived,
    /// The reply answers a mail of a definition, and its meaning is not clear: an answer is still expected.
    #[n(11)]
    ReplyUnclear,
    /// The reply answers a mail of a definition, and no answer is expected.
    #[n(12)]
    ReplyUnexpected,
    /// The reply answers a mail of a definition, and its sender is not proved.
    #[n(13)]
    ReplyUnproved,
    /// Somebody has a question about the request, which is still open.
    #[n(14)]
    Question {
        /// The name of who asks.
        #[n(0)]
        by: String,
        /// The question; at most `NOTE_BYTES_MAX` bytes.
        #[n(1)]
        comment: String,
    },
    /// The request, or the reader's part of it, was handed to somebody else.
    #[n(15)]
    Assigned {
        /// Who handed it over.
        #[n(0)]
        by: Decider,
        /// The address of the person who is asked now.
        #[n(1)]
        to: String,
    },
}

/// What a receipt names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Receipt {
    /// The number of the gate in its session.
    #[n(0)]
    pub gate: OpenId,
    /// The session that the gate is of.
    #[n(1)]
    pub session: SessionId,
    /// When the reply was recorded.
    #[n(2)]
    pub at: Time,
}

/// Somebody who has decided, approved or answered.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Decider {
    /// The name that they did it under.
    #[n(0)]
    pub by: String,
    /// Which way it came.
    #[n(1)]
    pub via: Via,
}

/// The approvals of a gate that needs several.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Progress {
    /// Who has approved, oldest first.
    #[n(0)]
    pub approved: Vec<Decider>,
    /// How many approvals are needed.
    #[n(1)]
    pub need: u32,
}

/// Why a reply does not count at an open gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum NotCounted {
    /// It answers an earlier mail, and its writer was asked again since.
    #[n(0)]
    Earlier,
    /// Its writer is the requester.
    #[n(1)]
    Own,
    /// It answers a mail to somebody else.
    #[n(2)]
    Foreign,
    /// It approves what its mail did not show all of.
    #[n(3)]
    Unseen,
    /// It has no words of its own.
    #[n(4)]
    Empty,
    /// Its sender is not proved.
    #[n(5)]
    Unproved,
    /// Its writer is no longer asked.
    #[n(6)]
    NoLongerRecipient,
    /// It hands the writer's part to somebody whom the directory does not know as one person.
    #[n(7)]
    ReceiverUnknown,
    /// It hands the writer's part to somebody who cannot have it, or its writer cannot hand it over.
    #[n(8)]
    ReceiverUnfit,
}

/// How a request was closed to which a reply came late.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Closing {
    /// A person decided.
    #[n(0)]
    Decided {
        /// What was decided.
        #[n(0)]
        decision: Decision,
        /// The name that they decided under, and the way.
        #[n(1)]
        by: Decider,
        /// Who approved it, if several must, whatever was decided.
        #[n(2)]
        approved: Vec<Decider>,
    },
    /// The participant of a task answered.
    #[n(1)]
    Answered,
    /// Too few people decided in time.
    #[n(2)]
    Lapsed {
        /// Who approved it, if several must.
        #[n(0)]
        approved: Vec<Decider>,
    },
    /// The session moved on.
    #[n(3)]
    Voided,
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
    /// It hands its writer's part of a gate to somebody else.
    #[n(16)]
    Assigned,
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
            Self::Assigned => "assigned",
        }
    }
}

impl Notice {
    /// The size of its texts, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Counted { progress, .. } | Self::ApprovedBefore { progress } => names(&progress.approved),
            Self::CannotApprove { shortage } => shortage.bytes(),
            Self::Late { closing, .. } => closing.bytes(),
            Self::Question { by, comment } => by.len() + comment.len(),
            Self::Assigned { by, to } => by.by.len() + to.len(),
            Self::PageCode
            | Self::Decided { .. }
            | Self::NotCounted { .. }
            | Self::Answered { .. }
            | Self::PassedOn
            | Self::Commented
            | Self::ReplyReceived
            | Self::ReplyUnclear
            | Self::ReplyUnexpected
            | Self::ReplyUnproved => 0,
        }
    }
}

impl NotCounted {
    /// What became of the reply.
    #[must_use]
    pub fn outcome(self) -> ReplyOutcome {
        match self {
            Self::Earlier => ReplyOutcome::Earlier,
            Self::Own => ReplyOutcome::Own,
            Self::Foreign | Self::NoLongerRecipient => ReplyOutcome::Foreign,
            Self::Unseen => ReplyOutcome::Unseen,
            Self::Empty => ReplyOutcome::Empty,
            Self::Unproved => ReplyOutcome::Unproved,
            Self::ReceiverUnknown | Self::ReceiverUnfit => ReplyOutcome::Noted,
        }
    }
}

impl Closing {
    fn bytes(&self) -> usize {
        match self {
            Self::Decided { by, approved, .. } => by.by.len() + names(approved),
            Self::Lapsed { approved } => names(approved),
            Self::Answered | Self::Voided => 0,
        }
    }
}

/// The size of these names, bytes.
fn names(people: &[Decider]) -> usize {
    people.iter().map(|one| one.by.len()).sum()
}
