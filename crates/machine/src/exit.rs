//! Exits: the guarded edges of a node.

use minicbor::{CborLen, Decode, Encode};

use crate::{EndReason, GateIx, Guard, NodeIx, Op, Port, Status};

/// A way out of a node.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Exit {
    /// What takes it.
    #[n(0)]
    pub on: Trigger,
    /// Where it leads.
    #[n(1)]
    pub to: Target,
    /// A person who is asked before it is taken; the node is frozen meanwhile.
    #[n(2)]
    pub hold: Option<GateIx>,
    /// Operations on the way.
    #[n(3)]
    pub ops: Vec<Op>,
    /// What must hold for it to be taken.
    #[cbor(n(4), default)]
    pub guard: Guard,
    /// What the history calls it: the guards, or the port.
    #[cbor(n(5), default)]
    pub label: String,
}

impl Exit {
    /// The answer that takes it, if one does.
    #[must_use]
    pub fn answer(&self) -> Option<&str> {
        match &self.on {
            Trigger::Answer(key) => Some(key),
            Trigger::Port(_) | Trigger::Auto { .. } | Trigger::Agent(_) => None,
        }
    }

    /// The name by which a worker takes it, if one does.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        match &self.on {
            Trigger::Agent(name) => Some(name),
            Trigger::Answer(_) | Trigger::Port(_) | Trigger::Auto { .. } => None,
        }
    }

    /// An exit without a guard.
    #[must_use]
    pub fn plain(on: Trigger, to: Target) -> Self {
        Self { on, to, hold: None, ops: Vec::new(), guard: Guard::Always, label: String::new() }
    }
}

/// What takes an exit.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Trigger {
    /// The agent's answer of this name.
    #[n(0)]
    Answer(#[n(0)] String),
    /// The end of the body with this port.
    #[n(1)]
    Port(#[n(0)] Port),
    /// The end of the body, or of a turn while the node rests.
    #[n(2)]
    Auto {
        /// Whether an event tries it, too, if its guard asks for something.
        #[n(0)]
        event: bool,
    },
    /// The worker of the body, which names it in or beside its result.
    #[n(20)]
    Agent(#[n(0)] String),
}

/// Where an exit leads.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Target {
    /// Into a node.
    #[n(0)]
    Node(#[n(0)] NodeIx),
    /// To the end of the run.
    #[n(1)]
    End(#[n(0)] Ending),
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Ending {
    /// The kind of end.
    #[n(0)]
    pub outcome: Outcome,
    /// Why, if the outcome does not say it all.
    #[n(1)]
    pub reason: Option<EndReason>,
}

impl Ending {
    /// An end without a further reason.
    #[must_use]
    pub fn plain(outcome: Outcome) -> Self {
        Self { outcome, reason: None }
    }

    /// The end of a run that has failed for this reason.
    #[must_use]
    pub fn failed(reason: EndReason) -> Self {
        Self { outcome: Outcome::Failed, reason: Some(reason) }
    }
}

/// The kinds of end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Outcome {
    /// It reached its goal.
    #[n(0)]
    Completed,
    /// Its definition stopped it for good.
    #[n(1)]
    Blocked,
    /// Something went wrong.
    #[n(2)]
    Failed,
    /// Somebody stopped it.
    #[n(3)]
    Cancelled,
    /// Another run replaced it.
    #[n(4)]
    Abandoned,
}

impl Outcome {
    /// The status of a run that ended so.
    #[must_use]
    pub fn status(self) -> Status {
        match self {
            Self::Completed => Status::Completed,
            Self::Blocked => Status::Blocked,
            Self::Failed => Status::Failed,
            Self::Cancelled => Status::Cancelled,
            Self::Abandoned => Status::Abandoned,
        }
    }
}
