//! Acts: the parts of a node's body, distinguished by what they leave open.

use minicbor::{CborLen, Decode, Encode};
use switchward_expr::Path;

use crate::{Accept, ActIx, CalleeIx, GateIx, NextRule, NodeIx, Op};

/// One part of a node's body. A port that `then` does not list settles the node.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Act {
    /// What it does.
    #[n(0)]
    pub kind: ActKind,
    /// The next act of the body, per port.
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
    /// Runs of their own, below this one, are waited for.
    #[n(20)]
    Spawn(#[n(0)] Spawn),
}

impl ActKind {
    /// Whether nothing but its own end lets a run leave: no exit is tried while it is open.
    #[must_use]
    pub fn keeps(&self) -> bool {
        match self {
            Self::Decide(_) | Self::Spawn(_) => true,
            Self::Work(work) => work.kind == WorkKind::Delegate,
            Self::Ask(_) | Self::Do(_) | Self::Wait(_) => false,
        }
    }

    /// Whether the only exit that its worker could have named is taken if none is named.
    #[must_use]
    pub fn takes_lone_exit(&self) -> bool {
        match self {
            Self::Work(Work { accept: Some(Accept::Contract(contract)), .. }) => {
                contract.next == NextRule::Lone
            }
            Self::Work(_) | Self::Ask(_) | Self::Do(_) | Self::Wait(_) | Self::Decide(_) | Self::Spawn(_) => {
                false
            }
        }
    }

    /// The children of the same machine that it begins.
    pub fn fixed_children(&self) -> impl Iterator<Item = &FixedChild> {
        let children: &[FixedChild] = match self {
            Self::Spawn(Spawn { kids: Kids::Fixed(children), .. }) => children.as_slice(),
            Self::Spawn(Spawn { kids: Kids::Call(_), .. })
            | Self::Ask(_)
            | Self::Do(_)
            | Self::Work(_)
            | Self::Wait(_)
            | Self::Decide(_) => &[],
        };
        children.iter()
    }

    /// Whether it waits for an event from outside.
    #[must_use]
    pub fn waits_for_event(&self) -> bool {
        match self {
            Self::Wait(wait) => wait.on == WaitOn::Event,
            Self::Ask(_) | Self::Do(_) | Self::Work(_) | Self::Decide(_) | Self::Spawn(_) => false,
        }
    }
}

/// What a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Decide {
    /// The gate that opens.
    #[n(0)]
    pub gate: GateIx,
    /// Whether it opens once for each of those whom it addresses. The act is then done when all of them have answered.
    #[cbor(n(1), skip_if = "std::ops::Not::not")]
    pub each: bool,
}

/// Child runs: what they run, what goes in and what comes back. The act ends with [`Port::Done`] when all have completed;
/// one that ends otherwise is a fault of the node.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Spawn {
    /// What the children run.
    #[n(0)]
    pub kids: Kids,
    /// What a child's data begin with, out of the data of the run that calls it.
    #[n(1)]
    pub input: Vec<Mapped>,
    /// What becomes of what a child has at its end.
    #[n(2)]
    pub result: Gives,
}

/// What the children of a [`Spawn`] run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Kids {
    /// One child, of another machine.
    #[n(0)]
    Call(#[n(0)] CalleeIx),
    /// Children of the same machine, side by side; each begins at a node of its own, reads the data of the run above it, and
    /// writes data of its own. If one fails, the others are abandoned.
    #[n(1)]
    Fixed(#[n(0)] Vec<FixedChild>),
}

/// One of several children that run side by side.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct FixedChild {
    /// Its name, unique beside the others.
    #[n(0)]
    pub name: String,
    /// The node at which it begins.
    #[n(1)]
    pub node: NodeIx,
}

/// What becomes of what a child has at its end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Gives {
    /// Of its data, these; they go through the reducers of the run that called it.
    #[n(0)]
    Return(#[n(0)] Vec<Mapped>),
    /// All that children of the same machine have written. The run above holds what each key held at its end; of several
    /// children that wrote a key, what the last one in their order wrote.
    #[n(1)]
    Update,
}

/// A value that is copied from one run's data to another's. An absent or null one is not.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Mapped {
    /// The top-level key that it is merged into.
    #[n(0)]
    pub to: String,
    /// Where it comes from.
    #[n(1)]
    pub from: Path,
}

/// What the agent owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Ask {
    /// False: only the named answers end it. True: the end of a turn does.
    #[n(0)]
    pub turns: bool,
}

/// What a worker owes.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Work {
    /// What a worker must be able to do.
    #[n(0)]
    pub kind: WorkKind,
    /// Whether the end of the agent's turn ends it, too.
    #[n(1)]
    pub turn_ends: bool,
    /// A JSON object, in whose texts `{gathered_data.x}` stands for a value: what the worker is handed.
    #[n(2)]
    pub input: Option<String>,
    /// A text that the worker is handed beside it, as `text`.
    #[n(3)]
    pub reads: Option<Reads>,
    /// What a result must be, and what becomes of it; without it, nothing does.
    #[n(4)]
    pub accept: Option<Accept>,
    /// A JSON object whose members the worker is handed as they are, whatever braces their texts have. They take precedence
    /// over those of `input`.
    #[n(5)]
    pub literal: Option<String>,
}

impl Work {
    /// Work of this kind that is handed nothing and gives nothing back, and that the end of a turn does not end.
    #[must_use]
    pub fn plain(kind: WorkKind) -> Self {
        Self { kind, turn_ends: false, input: None, reads: None, accept: None, literal: None }
    }
}

/// The text that a worker reads. If there is none, no work is opened, and the act ends as if the result had been
/// incomplete.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Reads {
    /// The user's last message.
    #[n(1)]
    UserMessage,
    /// A value of the data.
    #[n(2)]
    Data(#[n(0)] Path),
}

/// What a worker must be able to do to take an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
#[repr(u8)]
pub enum WorkKind {
    /// What the node's instructions say.
    #[n(0)]
    Agent = 0,
    /// Fields are read out of a text.
    #[n(1)]
    Extract = 1,
    /// A condition is judged.
    #[n(2)]
    Judge = 2,
    /// A request goes out over HTTP.
    #[n(3)]
    Http = 3,
    /// What somebody means who wrote no phrase that says it.
    #[n(4)]
    Classify = 4,
    /// Another assistant does it, and the run goes on when that has finished.
    #[n(5)]
    Delegate = 5,
    /// Which workflows a first message means.
    #[n(10)]
    Intent = 10,
    /// A tool is called.
    #[n(20)]
    Tool = 20,
    /// A model is asked once, and answers with JSON.
    #[n(21)]
    Interaction = 21,
    /// A script is run.
    #[n(22)]
    Script = 22,
}

impl WorkKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Agent,
        Self::Extract,
        Self::Judge,
        Self::Http,
        Self::Classify,
        Self::Delegate,
        Self::Intent,
        Self::Tool,
        Self::Interaction,
        Self::Script,
    ];

    /// The kind's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Extract => "extract",
            Self::Judge => "judge",
            Self::Http => "http",
            Self::Classify => "classify",
            Self::Delegate => "delegate",
            Self::Intent => "intent",
            Self::Tool => "tool",
            Self::Interaction => "interaction",
            Self::Script => "script",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether the server can do it by itself, through its delivery role.
    #[must_use]
    pub fn is_delivery_job(self) -> bool {
        match self {
            Self::Extract | Self::Judge | Self::Http | Self::Classify | Self::Intent => true,
            Self::Agent | Self::Delegate | Self::Tool | Self::Interaction | Self::Script => false,
        }
    }
}

/// An act that ends when something happens outside, or after its time.
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
    /// How what has come is sorted into ports of its own; `None` if all of it ends the wait alike.
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
    /// The act did what it is for.
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
