//! Gates: decisions that a person owes.

use minicbor::{CborLen, Decode, Encode};

use crate::Ending;

/// A gate that a machine can open. Who may decide it is, until gates have addressees, any person's key of the
/// tenant but the one that asked.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GateSpec {
    /// What it is about.
    #[n(0)]
    pub kind: GateKind,
    /// What each decision does.
    #[n(1)]
    pub outcomes: Vec<(Decision, Resolve)>,
}

impl GateSpec {
    /// What this decision does here, if the gate knows it.
    #[must_use]
    pub fn resolve(&self, decision: Decision) -> Option<&Resolve> {
        self.outcomes.iter().find(|(known, _)| *known == decision).map(|(_, resolve)| resolve)
    }
}

/// What a gate is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum GateKind {
    /// A review before the agent goes on.
    #[n(0)]
    Notify,
    /// A tool call that the policy asks about.
    #[n(1)]
    ToolAsk,
}

impl GateKind {
    /// The kind's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::ToolAsk => "tool_ask",
        }
    }
}

/// What a person decides. `resume` is the same decision as `approve`, `reject` the same as `refuse`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Decision {
    /// Go on.
    #[n(0)]
    Approve,
    /// Do not.
    #[n(1)]
    Refuse,
}

impl Decision {
    /// The decision's public name at a gate of this kind.
    #[must_use]
    pub fn word(self, kind: GateKind) -> &'static str {
        match (self, kind) {
            (Self::Approve, GateKind::Notify) => "resume",
            (Self::Approve, GateKind::ToolAsk) => "approve",
            (Self::Refuse, GateKind::Notify | GateKind::ToolAsk) => "refuse",
        }
    }
}

/// What a decision does.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Resolve {
    /// The held exit is taken.
    #[n(0)]
    TakeHeld,
    /// The run ends.
    #[n(1)]
    End(#[n(0)] Ending),
    /// The call that was asked about is granted, once.
    #[n(2)]
    Grant,
    /// The call that was asked about is denied; nothing else happens.
    #[n(3)]
    Deny,
}
