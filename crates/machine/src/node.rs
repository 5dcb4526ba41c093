//! Nodes: what the author wrote.

use minicbor::{CborLen, Decode, Encode};

use crate::{Act, Ending, Exit, ExitIx, Trigger};

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
}

impl Node {
    /// The exit of this answer.
    #[must_use]
    pub fn answer(&self, answer: &str) -> Option<(ExitIx, &Exit)> {
        self.exits.iter().enumerate().find_map(|(at, exit)| {
            let Trigger::Answer(key) = &exit.on;
            let ix = u16::try_from(at).ok().map(ExitIx)?;
            (key == answer).then_some((ix, exit))
        })
    }

    /// The answers that this node takes, in the author's order.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        self.exits.iter().map(|exit| {
            let Trigger::Answer(key) = &exit.on;
            key.as_str()
        })
    }
}

/// What happens when a settled node has no exit to take.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum NoExit {
    /// It waits where it is.
    #[n(0)]
    Stay,
    /// The run ends; the node is final.
    #[n(1)]
    End(#[n(0)] Ending),
}
