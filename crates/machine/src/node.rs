//! Nodes: what the author wrote.

use minicbor::{CborLen, Decode, Encode};

use crate::reserved_keys::HIDDEN_PREFIX;
use crate::{Act, Dialect, EndReason, Ending, Exit, ExitIx, Port};

/// A vertex of a machine, as its author named it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Node {
    /// The author's name; unique in the machine.
    #[n(0)]
    pub name: String,
    /// The body; an entry begins at the first one. Never empty.
    #[n(1)]
    pub acts: Vec<Act>,
    /// In the author's order.
    #[n(2)]
    pub exits: Vec<Exit>,
    /// What happens when the body has settled and no exit is taken.
    #[n(3)]
    pub on_no_exit: NoExit,
    /// What the agent is shown: question, instructions.
    #[n(4)]
    pub text: Option<String>,
    /// How the text is read. If it is [`Dialect::Strict`], the values and addresses in its acts and exits are
    /// read so, too; otherwise references in them are those of [`Dialect::Braces`].
    #[cbor(n(5), default)]
    pub dialect: Dialect,
    /// Whether the agent may end a turn here after the body has ended: the exits are then tried once more. While the body
    /// runs, its acts say what a turn ends.
    #[cbor(n(6), default)]
    pub turns: bool,
    /// Attempts of the body, for whatever goes wrong in it.
    #[cbor(n(7), default)]
    pub attempts: Attempts,
    /// Attempts that the agent may ask for; counted apart.
    #[cbor(n(8), default)]
    pub asked: Attempts,
    /// What happens when the attempts are spent.
    #[cbor(n(9), default)]
    pub boundary: Boundary,
    /// What of the data its acts may write, whatever a value comes from.
    #[cbor(n(10), skip_if = "Writes::is_any")]
    pub writes: Writes,
    /// The model that its work wants; `None`: that of the start, else that of the machine.
    #[n(11)]
    pub model: Option<String>,
}

impl Node {
    /// A node of this name with this body, which rests at its end.
    #[must_use]
    pub fn new(name: impl Into<String>, acts: Vec<Act>) -> Self {
        Self {
            name: name.into(),
            acts,
            exits: Vec::new(),
            on_no_exit: NoExit::Stay,
            text: None,
            dialect: Dialect::Plain,
            turns: false,
            attempts: Attempts::default(),
            asked: Attempts::default(),
            boundary: Boundary::Fail,
            writes: Writes::Any,
            model: None,
        }
    }

    /// Whether events from outside are for it: it waits for one, or a guard of an exit asks for one.
    #[must_use]
    pub fn listens_to_events(&self) -> bool {
        self.acts.iter().any(|act| act.kind.waits_for_event())
            || self.exits.iter().any(|exit| exit.guard.listens_to_events())
    }
}

/// What of the data a node may write.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum Writes {
    /// Every key that the machine does not reserve.
    #[default]
    #[n(0)]
    Any,
    /// These top-level keys and no others; none of them begins with [`HIDDEN_PREFIX`].
    #[n(1)]
    Only(#[n(0)] Vec<String>),
}

impl Writes {
    /// Returns true if a top-level key is among them.
    #[must_use]
    pub fn covers(&self, key: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(keys) => !key.starts_with(HIDDEN_PREFIX) && keys.iter().any(|known| known == key),
        }
    }

    /// The keys, if they are listed.
    #[must_use]
    pub fn listed(&self) -> Option<&[String]> {
        match self {
            Self::Any => None,
            Self::Only(keys) => Some(keys),
        }
    }

    fn is_any(&self) -> bool {
        *self == Self::Any
    }
}

/// How often something is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Attempts {
    /// In total, at least 1.
    #[n(0)]
    pub max: u32,
    /// Between two of them, milliseconds.
    #[n(1)]
    pub backoff_ms: u64,
}

impl Default for Attempts {
    fn default() -> Self {
        Self { max: 1, backoff_ms: 0 }
    }
}

/// What happens when something has gone wrong for good.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum Boundary {
    /// The run fails.
    #[default]
    #[n(0)]
    Fail,
    /// The node is left by this port.
    #[n(1)]
    Port(#[n(0)] Port),
    /// It is noted, and the node ends with this port as if nothing had happened.
    #[n(2)]
    Ignore(#[n(0)] Port),
}

impl Node {
    /// Returns the first exit of this answer, with its position; `None` if the answer is not allowed.
    #[must_use]
    pub fn answer(&self, answer: &str) -> Option<(ExitIx, &Exit)> {
        self.exits.iter().enumerate().find_map(|(at, exit)| {
            let ix = u16::try_from(at).ok().map(ExitIx)?;
            (exit.answer() == Some(answer)).then_some((ix, exit))
        })
    }

    /// The answers that this node takes, in the author's order.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        self.exits.iter().filter_map(Exit::answer)
    }

    /// The exits that a worker names, in the author's order, each with its position and its name.
    pub fn agent_exits(&self) -> impl Iterator<Item = (ExitIx, &str)> {
        let position = |at| u16::try_from(at).ok().map(ExitIx);
        self.exits.iter().enumerate().filter_map(move |(at, exit)| Some((position(at)?, exit.agent()?)))
    }
}

/// What happens when a settled node has no exit to take.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum NoExit {
    /// It waits in its state.
    #[n(0)]
    Stay,
    /// The run ends; the node is final.
    #[n(1)]
    End(#[n(0)] Ending),
    /// The run fails with this as the reason of its [`Ending`].
    #[n(2)]
    Fail(#[n(0)] EndReason),
}
