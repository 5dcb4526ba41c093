//! Events about a run: where it goes, its data, and the runs below it.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{ActIx, Digest, Ending, ExitIx, NodeIx, Outcome, Port, RunId, Time};

use crate::run::{
    Deferral, EndComment, Fault, Frame, Json, Judged, Loop, Parent, PendingFact, Pinned, Writer,
};
use crate::session::EventSource;

/// An event about a run: where it goes, its data, and the runs below it. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum RunEvent {
    /// A run exists from now on.
    #[n(0)]
    Created {
        /// The new run's number in the session.
        #[n(0)]
        run: RunId,
        /// The digest of the machine that it executes.
        #[n(1)]
        machine: Digest,
        /// The definition and its version, if they are not the session's.
        #[n(2)]
        of: Option<(String, u32)>,
        /// Whether it waits for the runs before it.
        #[cbor(n(3), default)]
        queued: bool,
    },
    /// A queued run is the session's own from now on.
    #[n(1)]
    Activated {
        /// The run that was queued.
        #[n(0)]
        run: RunId,
    },
    /// A node is entered.
    #[n(2)]
    Entered {
        /// The run that moves.
        #[n(0)]
        run: RunId,
        /// Where it stands from now on.
        #[n(1)]
        node: NodeIx,
    },
    /// A part of a node's body begins.
    #[n(3)]
    ActBegun {
        /// The run whose body goes on.
        #[n(0)]
        run: RunId,
        /// The part.
        #[n(1)]
        act: ActIx,
    },
    /// A checkpoint was answered.
    #[n(4)]
    Answered {
        /// The run that stands at the checkpoint.
        #[n(0)]
        run: RunId,
        /// The checkpoint.
        #[n(1)]
        node: NodeIx,
        /// One of the answers that the checkpoint's definition lists.
        #[n(2)]
        answer: String,
        /// The agent's own words.
        #[n(3)]
        note: String,
    },
    /// A node is left.
    #[n(5)]
    Left {
        /// The run that moves.
        #[n(0)]
        run: RunId,
        /// Where it stood until now.
        #[n(1)]
        node: NodeIx,
        /// The exit that it takes.
        #[n(2)]
        exit: ExitIx,
    },
    /// A run is at its end.
    #[n(6)]
    Ended {
        /// The run that is over.
        #[n(0)]
        run: RunId,
        /// Whether it has reached its goal, was stopped or failed, and why.
        #[n(1)]
        ending: Ending,
        /// What is said about it.
        #[n(2)]
        comment: EndComment,
    },
    /// Something was settled while the session was paused.
    #[n(7)]
    Deferred {
        /// The run that goes on later.
        #[n(0)]
        run: RunId,
        /// What happens on resuming.
        #[n(1)]
        due: Deferral,
        /// The requester of a gate that opens then.
        #[n(2)]
        requester: Option<String>,
    },
    /// The agent's turn is over.
    #[n(8)]
    TurnEnded {
        /// The run whose agent it was.
        #[n(0)]
        run: RunId,
    },
    /// The agent says that its work here is done. Nothing reads it.
    #[n(9)]
    Signalled {
        /// The run whose agent it was.
        #[n(0)]
        run: RunId,
    },
    /// A key of a run's data has this value from now on.
    #[n(10)]
    Wrote {
        /// The run whose data it is.
        #[n(0)]
        run: RunId,
        /// The top-level key.
        #[n(1)]
        key: String,
        /// The value, merged already.
        #[n(2)]
        value: Json,
        /// What kind of source it comes from.
        #[n(3)]
        by: Writer,
        /// The name of who wrote it, empty for the definition itself; `None` where no provenance is kept.
        #[n(4)]
        who: Option<String>,
    },
    /// The body has ended, and no exit was taken.
    #[n(11)]
    Rested {
        /// The run that stays at its node.
        #[n(0)]
        run: RunId,
        /// The port at which it ended, if a person has not let it leave from there.
        #[cbor(n(1), default)]
        refused: Option<Port>,
    },
    /// Something has gone wrong in a node.
    #[n(12)]
    Faulted {
        /// The run that stands at the node.
        #[n(0)]
        run: RunId,
        /// Where it went wrong.
        #[n(1)]
        node: NodeIx,
        /// The cause, and the runs below that have ended because of it.
        #[n(2)]
        fault: Fault,
    },
    /// A node's body begins again.
    #[n(13)]
    Restarted {
        /// The run that stays at its node.
        #[n(0)]
        run: RunId,
        /// Whether the agent asked for it.
        #[n(1)]
        asked: bool,
    },
    /// A loop of the body is at this item, or is over.
    #[n(14)]
    Looped {
        /// The run whose body the loop is in.
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
    #[n(15)]
    EventRecorded {
        /// The run that the event is for.
        #[n(0)]
        run: RunId,
        /// The key by which states listen to it.
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
    #[n(16)]
    EarlyUsed {
        /// The run that listens to them now.
        #[n(0)]
        run: RunId,
        /// The keys of the events, in the order in which they came.
        #[n(1)]
        keys: Vec<String>,
        /// Their positions among those that are kept, ascending.
        #[cbor(n(2), default)]
        positions: Vec<u32>,
    },
    /// The choice of an exit waits for a judgement.
    #[n(17)]
    ChoicePending {
        /// The run that stays at its node meanwhile.
        #[n(0)]
        run: RunId,
        /// Whether only the exits that listen to events are looked at.
        #[n(1)]
        event: bool,
        /// The requester of a gate that opens because of the judgement.
        #[n(2)]
        requester: String,
    },
    /// A judgement has come.
    #[n(18)]
    Judged {
        /// The run whose choice asked.
        #[n(0)]
        run: RunId,
        /// Which judgement of which exit, and whether it holds.
        #[n(1)]
        judged: Judged,
    },
    /// The choice has ended, and no exit was taken.
    #[n(19)]
    ChoiceOver {
        /// The run that stays at its node.
        #[n(0)]
        run: RunId,
    },
    /// What the session's runs call is this from now on.
    #[n(20)]
    CalleesPinned {
        /// Each definition once.
        #[n(0)]
        callees: Vec<Pinned>,
    },
    /// A run is going to have children.
    #[n(21)]
    ChildrenPlanned {
        /// The run that calls them.
        #[n(0)]
        run: RunId,
        /// How many.
        #[n(1)]
        count: u32,
    },
    /// A child exists from now on.
    #[n(22)]
    ChildCreated {
        /// The child.
        #[n(0)]
        run: RunId,
        /// The digest of the machine that it executes.
        #[n(1)]
        machine: Digest,
        /// The name of the definition that it is a run of.
        #[n(2)]
        definition: String,
        /// The definition's version.
        #[n(3)]
        version: u32,
        /// What it was called from.
        #[n(4)]
        parent: Parent,
        /// What it has as one of several children of its parent's machine.
        #[n(5)]
        frame: Option<Frame>,
    },
    /// A child has ended, and its slot records that.
    #[n(23)]
    ChildEnded {
        /// The run that called it.
        #[n(0)]
        run: RunId,
        /// Its slot there.
        #[n(1)]
        index: u32,
        /// The number of the child that has ended.
        #[n(2)]
        child: RunId,
        /// How it ended.
        #[n(3)]
        outcome: Outcome,
    },
    /// A run has no children any more: they have ended, or were abandoned.
    #[n(24)]
    ChildrenJoined {
        /// The run that called them.
        #[n(0)]
        run: RunId,
    },
    /// Something about data that wait for an approval.
    #[n(25)]
    Pending(#[n(0)] PendingFact),
}

impl RunEvent {
    /// The run that the event is about.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Created { run, .. }
            | Self::Activated { run }
            | Self::Entered { run, .. }
            | Self::Answered { run, .. }
            | Self::Left { run, .. }
            | Self::Ended { run, .. }
            | Self::TurnEnded { run }
            | Self::Signalled { run }
            | Self::Wrote { run, .. }
            | Self::Faulted { run, .. }
            | Self::Restarted { run, .. }
            | Self::EventRecorded { run, .. }
            | Self::Pending(PendingFact::Held { run, .. } | PendingFact::Entered { run, .. })
            | Self::Judged { run, .. }
            | Self::ChildCreated { run, .. } => Some(*run),
            Self::ActBegun { .. }
            | Self::Deferred { .. }
            | Self::Rested { .. }
            | Self::Looped { .. }
            | Self::EarlyUsed { .. }
            | Self::ChoicePending { .. }
            | Self::ChoiceOver { .. }
            | Self::CalleesPinned { .. }
            | Self::ChildrenPlanned { .. }
            | Self::ChildEnded { .. }
            | Self::ChildrenJoined { .. } => None,
        }
    }
}
