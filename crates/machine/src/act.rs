//! Acts: the parts of a node's body, told apart by what they leave open.

use minicbor::{CborLen, Decode, Encode};

use crate::{ActIx, GateIx, Op};

/// One part of a node's body. A port that `then` does not list settles the node.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Act {
    /// What it does.
    #[n(0)]
    pub kind: ActKind,
    /// Where the body goes on, per port.
    #[n(1)]
    pub then: Vec<(Port, ActIx)>,
}

/// The kinds of act. One file each in the engine.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ActKind {
    /// A turn of the session's agent is owed.
    #[n(0)]
    Ask(#[n(0)] Ask),
    /// Operations that run through at once; nothing is left open.
    #[n(1)]
    Do(#[n(0)] Vec<Op>),
    /// Something that an outside worker owes.
    #[n(2)]
    Work(#[n(0)] Work),
    /// A time or a message from outside is waited for.
    #[n(3)]
    Wait(#[n(0)] Wait),
    /// A person decides.
    #[n(10)]
    Decide(#[n(0)] Decide),
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Decide {
    /// The gate that opens.
    #[n(0)]
    pub gate: GateIx,
}

/// What the agent owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Ask {
    /// False: only the named answers end it. True: the end of a turn does.
    #[n(0)]
    pub turns: bool,
}

/// What a worker owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Work {
    /// What kind of work it is.
    #[n(0)]
    pub kind: WorkKind,
    /// Whether the end of the agent's turn ends it, too.
    #[n(1)]
    pub turn_ends: bool,
}

/// The kinds of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum WorkKind {
    /// What the node's instructions say.
    #[n(0)]
    Agent,
}

impl WorkKind {
    /// The kind's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
        }
    }
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Wait {
    /// What ends it.
    #[n(0)]
    pub on: WaitOn,
    /// How long, milliseconds.
    #[n(1)]
    pub for_ms: u64,
    /// How it ends when the time is over.
    #[n(2)]
    pub late: Port,
    /// How it ends when what is waited for has come.
    #[cbor(n(3), default)]
    pub done: Port,
    /// How what has come is sorted into ports of its own; nothing where all of it ends the wait alike.
    #[cbor(n(4), default)]
    pub sort: Option<Sort>,
}

impl Wait {
    /// A wait that is not sorted.
    #[must_use]
    pub fn plain(on: WaitOn, for_ms: u64, late: Port, done: Port) -> Self {
        Self { on, for_ms, late, done, sort: None }
    }
}

/// How a reply is sorted: by the only port of which a phrase stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Sort {
    /// The ports and their phrases, in the author's order.
    #[n(0)]
    pub ports: Vec<(Port, Vec<String>)>,
    /// Whether the author gave phrases at all: then no model is asked what a reply means.
    #[n(1)]
    pub hinted: bool,
}

/// What ends a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum WaitOn {
    /// Nothing but the time.
    #[n(0)]
    Time,
    /// An event from outside.
    #[n(1)]
    Event,
    /// A reply by mail from somebody to whom the run has sent one.
    #[n(2)]
    Reply,
}

impl WaitOn {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Event => "event",
            Self::Reply => "reply",
        }
    }
}

/// How an act ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Encode, Decode, CborLen)]
pub enum Port {
    /// It is done.
    #[default]
    #[n(0)]
    Done,
    /// A port that the format names: `received`, `timeout`, `error`.
    #[n(1)]
    Named(#[n(0)] String),
    /// One more item of a loop.
    #[n(2)]
    Item,
    /// A branch that matched: the node's exit of this port, past everything else.
    #[n(3)]
    Branch(#[n(0)] String),
}

impl Port {
    /// The port's public name.
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Done => "done",
            Self::Named(name) | Self::Branch(name) => name,
            Self::Item => "item",
        }
    }
}
