//! How many people must approve, and who has.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, Time};

use crate::approval::{Decider, Progress, Via};

/// How many of those whom a gate asks must approve, if one is not enough. Stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Quorum {
    /// Everybody who was asked, those whom an escalation added among them.
    #[n(0)]
    All,
    /// This many people, at least 1, however few are asked: then others have to be asked first.
    #[n(1)]
    AtLeast(#[n(0)] u32),
}

/// What a gate that needs several approvals has of them. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Voting {
    /// The rule.
    #[n(0)]
    pub quorum: Quorum,
    /// How many approvals that came to when it was counted last: when the gate opened, escalated or was approved.
    #[n(1)]
    pub need: u32,
    /// The approvals, oldest first; no two of one person.
    #[n(2)]
    pub votes: Vec<Vote>,
}

/// One person's approval. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Vote {
    /// Who, by the name that the person decided under.
    #[n(0)]
    pub by: String,
    /// Their address among those who are asked.
    #[n(1)]
    pub address: String,
    /// When.
    #[n(2)]
    pub at: Time,
    /// Their words beside it.
    #[n(3)]
    pub comment: String,
    /// Which way it came.
    #[n(4)]
    pub via: Via,
    /// The digest of what they were shown; it counts for nothing else.
    #[n(5)]
    pub shown: Digest,
}

impl Vote {
    /// Who approved, and which way.
    #[must_use]
    pub fn decider(&self) -> Decider {
        Decider { by: self.by.clone(), via: self.via }
    }
}

impl Voting {
    /// The approvals so far, for a message.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress { approved: self.votes.iter().map(Vote::decider).collect(), need: self.need }
    }
}
