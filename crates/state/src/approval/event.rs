//! Events about gates and the people who decide them.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId, Time};

use crate::approval::{Gate, Listed, PageCodeFact, Reminders, Reminding, ReplyFact, Via, VoteFact};
use crate::run::Json;

/// An event about gates and the people who decide them. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum ApprovalEvent {
    /// A person owes a decision.
    #[n(0)]
    Opened {
        /// Its number.
        #[n(0)]
        gate: OpenId,
        /// The run that waits at it.
        #[n(1)]
        run: RunId,
        /// What it is about.
        #[n(2)]
        body: Box<Gate>,
    },
    /// A person decided.
    #[n(1)]
    Closed {
        /// The number of the gate, which is closed now.
        #[n(0)]
        gate: OpenId,
        /// What was decided.
        #[n(1)]
        decision: switchward_machine::Decision,
        /// The name that they decided under.
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
        /// The number of the gate.
        #[n(0)]
        gate: OpenId,
        /// The name of who said it.
        #[n(1)]
        by: String,
        /// The text, as it was said.
        #[n(2)]
        comment: String,
    },
    /// What was open is closed: its node was left.
    #[n(3)]
    Voided {
        /// The numbers of gates.
        #[n(0)]
        gates: Vec<OpenId>,
        /// The numbers of grants that were not used.
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
        /// The number of the gate.
        #[n(0)]
        gate: OpenId,
        /// Who may decide from now on, beside those who might before.
        #[n(1)]
        to: Vec<String>,
        /// When the next round is over; `None` if it has no end.
        #[n(2)]
        due: Option<Time>,
        /// Those who are asked now and whom the directory leads to, those who were asked before among them.
        #[cbor(n(3), default, skip_if = "Listed::is_empty")]
        listed: Listed,
    },
    /// Nobody decided in time.
    #[n(5)]
    Lapsed {
        /// The number of the gate, which is closed now.
        #[n(0)]
        gate: OpenId,
    },
    /// Those who have not decided are written to again.
    #[n(6)]
    Reminded {
        /// The number of the gate.
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
        /// The number of the gate, which is closed now.
        #[n(0)]
        gate: OpenId,
        /// The name that they answered under.
        #[n(1)]
        by: String,
        /// Any value; the definition gives it its meaning.
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
        /// The address that the mail goes to.
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
        /// The interval and the number of reminders, for all gates of the session.
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

    /// Returns true if the event changes which work can be taken.
    #[must_use]
    pub fn changes_work(&self) -> bool {
        match self {
            Self::Voided { .. } => true,
            Self::Opened { .. }
            | Self::Closed { .. }
            | Self::Commented { .. }
            | Self::Escalated { .. }
            | Self::Lapsed { .. }
            | Self::Reminded { .. }
            | Self::Answered { .. }
            | Self::ReplyRecorded(_)
            | Self::ReplyAnswered { .. }
            | Self::AudienceSet { .. }
            | Self::RemindersSet { .. }
            | Self::PageCodes(_)
            | Self::Votes(_) => false,
        }
    }
}
