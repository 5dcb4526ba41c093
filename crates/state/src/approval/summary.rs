//! What a reply holds of a gate: what decides and who may, without arguments, texts and comments.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Decision, Digest, GateKind, Time};

use crate::approval::{Closed, OpenGate, RequestSubject, Resolution, Via};

/// A gate after a command. What its decider said beside the decision is in their request.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GateSummary {
    /// Says which decisions it takes.
    #[n(0)]
    pub kind: GateKind,
    /// The name of its node.
    #[n(1)]
    pub state: String,
    /// The definition of the session.
    #[n(2)]
    pub definition: String,
    /// The version that the session is pinned to.
    #[n(3)]
    pub version: u32,
    /// The call that it is about, if it is about one: its capability.
    #[n(4)]
    pub capability: Option<String>,
    /// The answer that it holds, if it is a review.
    #[n(5)]
    pub answer: Option<String>,
    /// Of what it shows, to which an approval is bound; `None` if it is bound to nothing.
    #[n(6)]
    pub shown: Option<Digest>,
    /// Who caused it, and so cannot decide.
    #[n(7)]
    pub requester: String,
    /// When it was opened.
    #[n(8)]
    pub at: Time,
    /// What people are asked, if it asks somebody in particular.
    #[n(9)]
    pub subject: Option<RequestSubject>,
    /// Who was asked or notified: addresses; `None` if the gate addresses nobody.
    #[n(10)]
    pub to: Option<Vec<String>>,
    /// Whether everybody may decide whose role allows it, and those in `to` are only notified.
    #[n(11)]
    pub open: bool,
    /// When the round is over, while it is open.
    #[n(12)]
    pub due: Option<Time>,
    /// How many approvals it needs; 0 if the first decision counts.
    #[n(13)]
    pub needed: u32,
    /// The approvals so far, oldest first.
    #[n(14)]
    pub votes: Vec<VoteSummary>,
    /// How and when it was closed; `None` while it is open.
    #[n(15)]
    pub ending: Option<GateEnding>,
}

/// One person's approval without their comment.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct VoteSummary {
    /// The name that they approved under.
    #[n(0)]
    pub by: String,
    /// When.
    #[n(1)]
    pub at: Time,
    /// Which way it came.
    #[n(2)]
    pub via: Via,
}

/// What a list shows of how a gate was closed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GateEnding {
    /// When.
    #[n(0)]
    pub at: Time,
    /// By a decision, by leaving its node, or by the end of its time.
    #[n(1)]
    pub how: GateEnd,
}

/// How a gate was closed.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum GateEnd {
    /// A person decided it, or answered.
    #[n(0)]
    Decided {
        /// What was decided; an answer to a task is one, too.
        #[n(0)]
        decision: Decision,
        /// The name that they decided under.
        #[n(1)]
        by: String,
        /// Which way it came.
        #[n(2)]
        via: Via,
    },
    /// Its node was left, or its run ended.
    #[n(1)]
    Voided,
    /// Nobody decided in time.
    #[n(2)]
    Lapsed,
}

impl GateEnding {
    /// Returns how a closed gate was closed, without votes and comments.
    #[must_use]
    pub fn of(closed: &Closed) -> Self {
        let how = match &closed.resolution {
            Resolution::Decided { decision, by, via, .. } => {
                GateEnd::Decided { decision: *decision, by: by.clone(), via: *via }
            }
            Resolution::Answered { by, via, .. } => {
                GateEnd::Decided { decision: Decision::Answer, by: by.clone(), via: *via }
            }
            Resolution::Voided => GateEnd::Voided,
            Resolution::Lapsed => GateEnd::Lapsed,
        };
        Self { at: closed.at, how }
    }
}

impl GateSummary {
    /// Summarises a gate that is open, or that has come to `ending`. The names are those of its node, the answer that it
    /// holds, and its session's definition.
    #[must_use]
    pub fn of(open: &OpenGate, names: GateNames, ending: Option<GateEnding>) -> Self {
        let asked = open.body.asked.as_ref();
        let voting = asked.and_then(|asked| asked.voting.as_ref());
        let vote =
            |vote: &crate::approval::Vote| VoteSummary { by: vote.by.clone(), at: vote.at, via: vote.via };
        let GateNames { state, answer, definition, version } = names;
        Self {
            kind: open.body.kind,
            state,
            definition,
            version,
            capability: open.body.call.as_ref().map(|call| call.capability.clone()),
            answer,
            shown: open.body.shown(),
            requester: open.body.requester.clone(),
            at: open.head.at,
            subject: asked.filter(|asked| !asked.open).map(|asked| asked.subject.clone()),
            to: asked.map(|asked| asked.to.clone()),
            open: asked.is_some_and(|asked| asked.open),
            due: asked.filter(|asked| !asked.open && ending.is_none()).and_then(|asked| asked.due),
            needed: voting.map_or(0, |voting| voting.need),
            votes: voting.iter().flat_map(|voting| &voting.votes).map(vote).collect(),
            ending,
        }
    }

    /// Whether this person may decide it, as far as addresses go: they are compared without regard to case.
    #[must_use]
    pub fn addresses(&self, person: &str) -> bool {
        match &self.to {
            Some(to) if !self.open => to.iter().any(|one| one.eq_ignore_ascii_case(person)),
            Some(_) | None => true,
        }
    }
}

/// Names of a gate that stand elsewhere than in its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateNames {
    /// The name of its node.
    pub state: String,
    /// The answer that it holds, if it is a review.
    pub answer: Option<String>,
    /// The definition of the session.
    pub definition: String,
    /// The version that the session is pinned to.
    pub version: u32,
}
