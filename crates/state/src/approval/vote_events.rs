//! What happens at gates that need several approvals: what it changes, and what readers see of it.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::OpenId;

use crate::PublicEvent;
use crate::approval::{GateRequest, Quorum, Via, Vote};

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
        /// The number of the gate.
        #[n(0)]
        gate: OpenId,
        /// The approval with the name that it was given under, and the way.
        #[n(1)]
        vote: Vote,
        /// How many approvals it takes now.
        #[n(2)]
        need: u32,
    },
    /// Others are asked too, and it takes another number of approvals.
    #[n(2)]
    Needed {
        /// The number of the gate.
        #[n(0)]
        gate: OpenId,
        /// How many it takes now.
        #[n(1)]
        need: u32,
    },
    /// People are notified of a gate that was opened without any.
    #[n(3)]
    Notified {
        /// The number of the gate.
        #[n(0)]
        gate: OpenId,
        /// Who is notified, and of what.
        #[n(1)]
        asked: Box<GateRequest>,
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
        /// The number of the gate.
        #[n(0)]
        gate: OpenId,
        /// Addresses and names, as they were given.
        #[n(1)]
        who: Vec<String>,
    },
    /// A gate, or somebody's part of it, was handed to somebody else.
    #[n(103)]
    Assigned {
        /// The number of the gate, which stays open.
        #[n(0)]
        gate: OpenId,
        /// Who did it.
        #[n(1)]
        by: String,
        /// Which way it came.
        #[n(2)]
        via: Via,
        /// The addresses that are no longer asked; none if it had asked nobody.
        #[n(3)]
        from: Vec<String>,
        /// The address that is asked now.
        #[n(4)]
        to: String,
        /// Who is asked now, and what. Mails that wait and are not named there are dropped.
        #[n(5)]
        asked: Box<GateRequest>,
    },
}

impl VoteFact {
    pub(crate) fn change(&self) -> Change<'_> {
        match self {
            Self::QuorumSet { quorum } => Change::Quorum { quorum: *quorum },
            Self::Notified { gate, asked } | Self::Assigned { gate, asked, .. } => {
                Change::Recipients { gate: *gate, asked }
            }
            Self::EscalationSet { contacts } => Change::Escalation { contacts },
            Self::Dropped { gate, who } => Change::Dropped { gate: *gate, who },
            Self::Given { gate, vote, need } => {
                Change::Counted { gate: *gate, vote: Some(vote), need: *need }
            }
            Self::Needed { gate, need } => Change::Counted { gate: *gate, vote: None, need: *need },
        }
    }

    /// What a reader sees of the fact; `None` if it is internal.
    #[must_use]
    pub fn public(&self) -> Option<PublicEvent> {
        match self {
            Self::Given { gate, vote, need } => {
                let public = PublicEvent::of_gate("approval.voted", *gate).with("by", &vote.by);
                let public =
                    public.with("via", vote.via.word()).with("vouched_by", vote.via.vouched_by(&vote.by));
                let public = public.with("needed", need);
                Some(public.with("comment", &vote.comment))
            }
            Self::Notified { gate, asked } => {
                let public = PublicEvent::of_gate("approval.notified", *gate);
                Some(public.with("to", asked.to.join(" ")))
            }
            Self::Assigned { gate, by, via, from, to, .. } => {
                let public = PublicEvent::of_gate("approval.assigned", *gate).with("by", by);
                let public = public.with("via", via.word()).with("vouched_by", via.vouched_by(by));
                Some(public.with("from", from.join(" ")).with("to", to))
            }
            Self::QuorumSet { .. }
            | Self::Needed { .. }
            | Self::EscalationSet { .. }
            | Self::Dropped { .. } => None,
        }
    }
}

/// What a fact changes.
pub(crate) enum Change<'f> {
    /// How many approvals the session's gates need.
    Quorum { quorum: Quorum },
    /// Who is asked, too, if those whom the session's gates ask do not decide.
    Escalation { contacts: &'f [String] },
    /// Who is asked at a gate, and what. Mails that wait and are not named there are dropped; nothing says any more that
    /// nobody is asked.
    Recipients { gate: OpenId, asked: &'f GateRequest },
    /// Who is not asked at a gate, besides those who were not before.
    Dropped { gate: OpenId, who: &'f [String] },
    /// The vote that a gate has, too, if there is one, and how many it needs.
    Counted { gate: OpenId, vote: Option<&'f Vote>, need: u32 },
}
