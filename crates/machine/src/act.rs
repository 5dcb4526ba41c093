//! Acts: the parts of a node's body, told apart by what they leave open.

use minicbor::{CborLen, Decode, Encode};

use crate::ActIx;

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
}

/// What the agent owes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Ask {
    /// False: only the named answers end it. True: the end of a turn does.
    #[n(0)]
    pub turns: bool,
}

/// How an act ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Port {
    /// It is done.
    #[n(0)]
    Done,
}

/// An operation of a `Do` act or of an exit.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Op {
    /// Put a warning into the history.
    #[n(0)]
    Log(#[n(0)] String),
}
