//! Runs below a run: their slots in it, and the machines that they are pinned to.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Callee, Digest, Outcome, RunId};

/// A child's slot in the node that it was called from. Stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Slot {
    /// Nothing runs in it yet.
    #[n(0)]
    Empty,
    /// This run does.
    #[n(1)]
    Runs(#[n(0)] RunId),
    /// Its run is at its end.
    #[n(2)]
    Ended {
        /// The run that has ended.
        #[n(0)]
        run: RunId,
        /// How it ended.
        #[n(1)]
        outcome: Outcome,
    },
}

/// What a child was called from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Parent {
    /// The run that called it.
    #[n(0)]
    pub run: RunId,
    /// Which of the nodes that the run had entered, from 1.
    #[n(1)]
    pub entry: u32,
    /// The child's slot there, from 0.
    #[n(2)]
    pub index: u32,
}

/// What a run of its parent's machine has that runs beside others: it reads the parent's data under its own, and its parent
/// holds what it has written when all have ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Frame {
    /// Its name in the session: the parent's node and the child's own name, as in `check.legal`.
    #[n(0)]
    pub label: String,
}

/// A definition that runs of a session call, as it was when the session began.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Pinned {
    /// The name, and the version if they name one, as they call it.
    #[n(0)]
    pub callee: Callee,
    /// The version of that definition, from 1.
    #[n(1)]
    pub version: u32,
    /// The digest of what that version compiled to.
    #[n(2)]
    pub machine: Digest,
}
