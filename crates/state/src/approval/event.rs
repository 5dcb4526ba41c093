//! Events about gates and the people who decide them.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId, Time};

use crate::approval::{Gate, PageCodeFact, Reminders, Reminding, ReplyFact, Via, VoteFact};
use crate::run::Json;

/// An event about gates and the people who decide them. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ApprovalEvent {
    /// A person owes a decision.
    #[n(0)]
    Opened {
        /// Its number.
        #[n(0)]
        gate: OpenId,
        /// The run.
        #[n(1)]
        run: RunId,
        /// What it is about.
        #[n(2)]
        body: Box<Gate>,
    },
    /// A person decided.
    #[n(1)]
    Closed {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// What.
        #[n(1)]
        decision: switchward_machine::Decision,
        /// Who.
        #[n(2)]
        by: String,
        /// Why.
        #[n(3)]
        comment: String,
        /// Which way it came.
        #[cbor(n(4), default)]
        via: Via,
    },
    /// A person said something at a gate, and it stays open.
    #[n(2)]
    Commented {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Who.
        #[n(1)]
        by: String,
        /// What.
        #[n(2)]
        comment: String,
    },
    /// What was open is closed: its node was left.
    #[n(3)]
    Voided {
        /// Gates.
        #[n(0)]
        gates: Vec<OpenId>,
        /// Grants.
        #[n(1)]
        grants: Vec<u64>,
        /// Work, waits and timers.
        #[cbor(n(2), default)]
        items: Vec<OpenId>,
        /// The run that they belong to.
        #[cbor(n(3), default)]
        run: Option<RunId>,
    },
    /// Nobody decided in this round, and others are asked, too.
    #[n(4)]
    Escalated {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Who may decide from now on, beside those who might before.
        #[n(1)]
        to: Vec<String>,
        /// When the next round is over; `None` if it has no end.
        #[n(2)]
        due: Option<Time>,
    },
    /// Nobody decided in time.
    #[n(5)]
    Lapsed {
        /// The gate.
        #[n(0)]
        gate: OpenId,
    },
    /// Those who have not decided are written to again.
    #[n(6)]
    Reminded {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Who; empty if nobody could be.
        #[n(1)]
        to: Vec<String>,
        /// The next reminder; `None` if this was the last.
        #[n(2)]
        next: Option<Reminding>,
    },
    /// A participant has answered their part of a task.
    #[n(7)]
    Answered {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Who.
        #[n(1)]
        by: String,
        /// What.
        #[n(2)]
        answer: Json,
        /// Words beside it.
        #[n(3)]
        comment: String,
        /// Which way it came.
        #[n(4)]
        via: Via,
    },
    /// A reply came by mail.
    #[n(8)]
    ReplyRecorded(#[n(0)] ReplyFact),
    /// Somebody who wrote is written back to.
    #[n(9)]
    ReplyAnswered {
        /// The gate; 0 if it is about none.
        #[n(0)]
        gate: OpenId,
        /// The run, if it is about no gate.
        #[n(2)]
        run: Option<RunId>,
        /// Who.
        #[n(1)]
        to: String,
    },
    /// These are notified of gates that address nobody.
    #[n(10)]
    AudienceSet {
        /// Addresses and names.
        #[n(0)]
        audience: Vec<String>,
    },
    /// How those who are asked to decide are reminded.
    #[n(11)]
    RemindersSet {
        /// How.
        #[n(0)]
        reminders: Reminders,
    },
    /// Something about the codes by which a decision page recognises a person.
    #[n(12)]
    PageCodes(#[n(0)] PageCodeFact),
    /// Something about approvals that are counted.
    #[n(13)]
    Votes(#[n(0)] VoteFact),
}

impl ApprovalEvent {
    /// The run that the event is about; `None` if it is about a gate alone.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Opened { run, .. } | Self::ReplyRecorded(ReplyFact { run, .. }) => Some(*run),
            Self::Voided { run, .. } => *run,
            Self::Closed { .. }
            | Self::Commented { .. }
            | Self::Escalated { .. }
            | Self::Lapsed { .. }
            | Self::Reminded { .. }
            | Self::Answered { .. }
            | Self::ReplyAnswered { .. }
            | Self::AudienceSet { .. }
            | Self::RemindersSet { .. }
            | Self::PageCodes(_)
            | Self::Votes(_) => None,
        }
    }
}
