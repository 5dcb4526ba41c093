//! Facts about what moves inside a run, its data, the row of runs, and what cannot be delivered.

mod page_codes;
mod pending;
mod replies;
mod votes;

use minicbor::{CborLen, Decode, Encode};
pub use page_codes::{PageCodeFact, PageCodeStep};
pub use pending::PendingFact;
pub use replies::{ReplyFact, SenderProof, Standing};
use switchward_machine::{Digest, NodeIx, OpenId, Outcome, Port, RunId, Time};
pub use votes::VoteFact;

use super::{Speaker, Writer};
use crate::state::{
    Assisted, EventSource, Json, Judged, Loop, OpenItemBody, Parent, Pinned, Reminders, Reminding, Via,
};

/// A fact. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Flow {
    /// A queued run is the session's own from now on.
    #[n(0)]
    RunActivated {
        /// The run.
        #[n(0)]
        run: RunId,
    },
    /// Somebody said something in the conversation.
    #[n(1)]
    MessagePosted {
        /// What.
        #[n(0)]
        text: String,
        /// Who has said it.
        #[n(1)]
        speaker: Speaker,
    },
    /// The agent's turn is over.
    #[n(2)]
    TurnEnded {
        /// The run.
        #[n(0)]
        run: RunId,
    },
    /// The agent says that its work here is done. Nothing reads it.
    #[n(3)]
    Signalled {
        /// The run.
        #[n(0)]
        run: RunId,
    },
    /// A key of a run's data has this value from now on.
    #[n(4)]
    Wrote {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The top-level key.
        #[n(1)]
        key: String,
        /// The value, merged already.
        #[n(2)]
        value: Json,
        /// Who wrote it.
        #[n(3)]
        by: Writer,
    },
    /// The body has ended, and no exit was taken.
    #[n(5)]
    Rested {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The port at which it ended, if a person has not let it leave from there.
        #[cbor(n(1), default)]
        refused: Option<Port>,
    },
    /// Something has gone wrong in a node.
    #[n(6)]
    Faulted {
        /// The run.
        #[n(0)]
        run: RunId,
        /// The node.
        #[n(1)]
        node: NodeIx,
        /// The lower-case code.
        #[n(2)]
        code: String,
        /// What exactly.
        #[n(3)]
        message: String,
    },
    /// A node's body begins again.
    #[n(7)]
    Restarted {
        /// The run.
        #[n(0)]
        run: RunId,
        /// Whether the agent asked for it.
        #[n(1)]
        asked: bool,
    },
    /// Work, a wait or a timer is open.
    #[n(8)]
    ItemOpened {
        /// Its number.
        #[n(0)]
        item: OpenId,
        /// The run.
        #[n(1)]
        run: RunId,
        /// What it is.
        #[n(2)]
        body: OpenItemBody,
        /// The trace that it belongs to.
        #[n(3)]
        trace: Option<String>,
    },
    /// Work is done, a wait is over, a timer has fired.
    #[n(9)]
    ItemClosed {
        /// Its number.
        #[n(0)]
        item: OpenId,
        /// The run.
        #[n(1)]
        run: RunId,
    },
    /// A loop of the body is at this item, or is over.
    #[n(10)]
    Looped {
        /// The run.
        #[n(0)]
        run: RunId,
        /// How many loops stand outside of it.
        #[n(1)]
        level: u8,
        /// Where it is; `None` if it is over.
        #[n(2)]
        at: Option<Loop>,
    },
    /// An event came from outside.
    #[n(11)]
    EventRecorded {
        /// The run.
        #[n(0)]
        run: RunId,
        /// Its key.
        #[n(1)]
        key: String,
        /// If nothing listens to it yet: what came with it, until when it is kept, and whether a model can be asked about
        /// it.
        #[n(2)]
        early: Option<(Json, Time, bool)>,
        /// Where it came from.
        #[n(3)]
        source: EventSource,
    },
    /// Events that came early count from now on.
    #[n(12)]
    EarlyTaken {
        /// The run.
        #[n(0)]
        run: RunId,
        /// Their keys.
        #[n(1)]
        keys: Vec<String>,
        /// Their positions among those that are kept, ascending.
        #[cbor(n(2), default)]
        positions: Vec<u32>,
    },
    /// A worker has work, for a time.
    #[n(13)]
    WorkLeased {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// Who.
        #[n(1)]
        worker: String,
        /// Until when.
        #[n(2)]
        until: Time,
        /// Whether the worker had it before, and keeps it.
        #[n(3)]
        again: bool,
    },
    /// Work is nobody's again.
    #[n(14)]
    WorkReleased {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// Whether its lease lapsed.
        #[n(1)]
        lapsed: bool,
    },
    /// Work is done, for good or ill.
    #[n(15)]
    WorkDone {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// The run.
        #[n(1)]
        run: RunId,
        /// By whom.
        #[n(2)]
        worker: String,
        /// What was wrong, if something was.
        #[n(3)]
        wrong: Option<String>,
        /// Whether it may have been done all the same.
        #[cbor(n(4), default, skip_if = "super::facts::is_known")]
        unknown: bool,
    },
    /// The choice of an exit waits for a judgement.
    #[n(16)]
    ChoicePending {
        /// The run.
        #[n(0)]
        run: RunId,
        /// Whether only the exits that listen to events are looked at.
        #[n(1)]
        event: bool,
    },
    /// A judgement has come.
    #[n(17)]
    Judged {
        /// The run.
        #[n(0)]
        run: RunId,
        /// What it is.
        #[n(1)]
        judged: Judged,
    },
    /// The choice has ended, and no exit was taken.
    #[n(18)]
    ChoiceOver {
        /// The run.
        #[n(0)]
        run: RunId,
    },
    /// Nobody decided in this round, and others are asked, too.
    #[n(20)]
    GateEscalated {
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
    #[n(21)]
    GateLapsed {
        /// The gate.
        #[n(0)]
        gate: OpenId,
    },
    /// A reply came by mail.
    #[n(22)]
    ReplyRecorded(#[n(0)] ReplyFact),
    /// Somebody who wrote is written back to.
    #[n(23)]
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
    /// What the session's runs call is this from now on.
    #[n(30)]
    CalleesPinned {
        /// Each definition once.
        #[n(0)]
        callees: Vec<Pinned>,
    },
    /// A run is going to have children.
    #[n(31)]
    ChildrenPlanned {
        /// The run.
        #[n(0)]
        run: RunId,
        /// How many.
        #[n(1)]
        count: u32,
    },
    /// A child exists from now on.
    #[n(32)]
    ChildCreated {
        /// The child.
        #[n(0)]
        run: RunId,
        /// Its machine.
        #[n(1)]
        machine: Digest,
        /// Its definition.
        #[n(2)]
        definition: String,
        /// The definition's version.
        #[n(3)]
        version: u32,
        /// What it was called from.
        #[n(4)]
        parent: Parent,
    },
    /// A child has ended, and its slot records that.
    #[n(33)]
    ChildEnded {
        /// The run that called it.
        #[n(0)]
        run: RunId,
        /// Its slot there.
        #[n(1)]
        index: u32,
        /// The child.
        #[n(2)]
        child: RunId,
        /// How it ended.
        #[n(3)]
        outcome: Outcome,
    },
    /// A run has no children any more: they have ended, or were abandoned.
    #[n(34)]
    ChildrenJoined {
        /// The run.
        #[n(0)]
        run: RunId,
    },
    /// A participant has answered their part of a task.
    #[n(40)]
    GateAnswered {
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
    /// The session is with an assistant.
    #[n(41)]
    Assisted {
        /// The assistant, as it is now.
        #[n(0)]
        assistant: Assisted,
    },
    /// The session has reply tokens.
    #[n(42)]
    ReplyTokensBegun {
        /// The name of its tenant, which they carry.
        #[n(0)]
        tenant: String,
    },
    /// An effect cannot be delivered: it is a dead letter, and the session has an incident.
    #[n(50)]
    EffectFailed {
        /// Its number.
        #[n(0)]
        number: u64,
        /// A lower-case code of the deliverer.
        #[n(1)]
        code: String,
        /// What exactly.
        #[n(2)]
        message: String,
    },
    /// A dead letter is sent again, and its incident is closed.
    #[n(51)]
    EffectRetried {
        /// Its number.
        #[n(0)]
        number: u64,
    },
    /// A dead letter is given up, and its incident is closed.
    #[n(52)]
    EffectDismissed {
        /// Its number.
        #[n(0)]
        number: u64,
    },
    /// A mail that asks somebody at a gate has come back, or somebody says so.
    #[n(44)]
    MailBounced {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Whom it went to.
        #[n(1)]
        to: String,
        /// What exactly.
        #[n(2)]
        message: String,
        /// Whether it came to the address that only mail servers know.
        #[n(3)]
        proved: bool,
    },
    /// These are notified of gates that address nobody.
    #[n(43)]
    AudienceSet {
        /// Addresses and names.
        #[n(0)]
        audience: Vec<String>,
    },
    /// An attempt to deliver an effect has failed, and another one follows.
    #[n(53)]
    EffectDeferred {
        /// Its number.
        #[n(0)]
        number: u64,
        /// When the next attempt is due.
        #[n(1)]
        until: Time,
        /// A lower-case code of the deliverer.
        #[n(2)]
        code: String,
        /// What exactly.
        #[n(3)]
        message: String,
    },
    /// How those who are asked to decide are reminded.
    #[n(91)]
    RemindersSet {
        /// How.
        #[n(0)]
        reminders: Reminders,
    },
    /// Those who have not decided are written to again.
    #[n(92)]
    GateReminded {
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
    /// A message whose sender signs no time was recorded; what is signed alike is a copy of it.
    #[n(170)]
    MessageRecorded {
        /// What is signed: 16 bytes of its digest.
        #[cbor(n(0), with = "minicbor::bytes")]
        message: [u8; 16],
        /// Until when it is known again.
        #[n(1)]
        until: Time,
    },
    /// Something about the codes by which a decision page recognises a person.
    #[n(171)]
    PageCodes(#[n(0)] PageCodeFact),
    /// Something about data that wait for an approval.
    #[n(120)]
    Pending(#[n(0)] PendingFact),
    /// Something about approvals that are counted.
    #[n(93)]
    Votes(#[n(0)] VoteFact),
    /// An effect waits because a cap is reached; nothing was tried.
    #[n(90)]
    EffectHeld {
        /// Its number.
        #[n(0)]
        number: u64,
        /// Until when.
        #[n(1)]
        until: Time,
        /// A lower-case code of the deliverer.
        #[n(2)]
        code: String,
        /// What exactly.
        #[n(3)]
        message: String,
    },
}
