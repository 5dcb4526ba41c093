//! Gates: decisions that a person owes.

use minicbor::{CborLen, Decode, Encode};

use crate::{Ending, Message, Port, Recipient};

/// A gate that a machine can open.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GateSpec {
    /// What it is about.
    #[n(0)]
    pub kind: GateKind,
    /// What each decision does.
    #[n(1)]
    pub outcomes: Vec<(Decision, Resolve)>,
    /// Who is asked and how. If nobody is, any person's key of the tenant may decide except the requester's.
    #[cbor(n(2), default)]
    pub inquiry: Option<Inquiry>,
    /// The reserved key below which, by state, the data record what its people were shown and, if they refuse, who did and
    /// why; `None` if the data record nothing of it.
    #[cbor(n(3), default)]
    pub record: Option<String>,
}

impl GateSpec {
    /// A gate that addresses nobody in particular.
    #[must_use]
    pub fn open_to_all(kind: GateKind, outcomes: Vec<(Decision, Resolve)>) -> Self {
        Self { kind, outcomes, inquiry: None, record: None }
    }

    /// What this decision does here, if the gate knows it.
    #[must_use]
    pub fn resolve(&self, decision: Decision) -> Option<&Resolve> {
        self.outcomes.iter().find(|(known, _)| *known == decision).map(|(_, resolve)| resolve)
    }
}

/// People are asked by mail, and their replies decide.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Inquiry {
    /// What each of them is sent.
    #[n(0)]
    pub message: Message,
    /// Phrases of a reply that make a decision, beside the usual ones.
    #[n(1)]
    pub phrases: Vec<(Decision, Vec<String>)>,
    /// Whether the author gave phrases at all: then no model is asked what a reply means.
    #[n(2)]
    pub hinted: bool,
    /// What happens while nobody decides; `None` if it waits for ever.
    #[n(3)]
    pub rounds: Option<Rounds>,
}

impl Inquiry {
    /// The phrases of a decision; empty if the author gave none.
    #[must_use]
    pub fn phrases_of(&self, decision: Decision) -> &[String] {
        let found = self.phrases.iter().find(|(known, _)| *known == decision);
        found.map(|(_, phrases)| phrases.as_slice()).unwrap_or_default()
    }
}

/// What happens while nobody decides.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Rounds {
    /// How long each round takes, milliseconds.
    #[n(0)]
    pub every_ms: u64,
    /// Who is asked, too, after each.
    #[n(1)]
    pub to: Vec<Recipient>,
    /// How often they are asked; one round more, and the gate lapses.
    #[n(2)]
    pub max: u32,
    /// What happens then. Never what an approval does.
    #[n(3)]
    pub lapse: Resolve,
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
    /// A step that the people whom the definition names approve.
    #[n(2)]
    Approval,
    /// A part of a task, which one person owes an answer to.
    #[n(3)]
    Task,
}

impl GateKind {
    /// Every kind, in order.
    pub const ALL: [Self; 4] = [Self::Notify, Self::ToolAsk, Self::Approval, Self::Task];

    /// The kind's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Notify => "notify",
            Self::ToolAsk => "tool_ask",
            Self::Approval => "approval",
            Self::Task => "task",
        }
    }

    /// Whether somebody else than who asked must decide. An answer approves nothing: who set a task going may be one of
    /// those who take part in it.
    #[must_use]
    pub fn needs_another(self) -> bool {
        match self {
            Self::Notify | Self::ToolAsk | Self::Approval => true,
            Self::Task => false,
        }
    }
}

/// What a person decides. Formats also call approving `resume`, and rejecting `refuse` or `decline`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Decision {
    /// Go on.
    #[n(0)]
    Approve,
    /// Do not.
    #[n(1)]
    Refuse,
    /// Neither: it is to be discussed. Only some gates take it as a decision.
    #[n(2)]
    Discuss,
    /// None of them: here is what was asked for. It stands beside the decision.
    #[n(3)]
    Answer,
}

impl Decision {
    /// The decision's public name, the same at every gate.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Refuse => "reject",
            Self::Discuss => "discuss",
            Self::Answer => "answer",
        }
    }

    /// The public name of what the decision leads to, where no port of the gate has a name for it.
    #[must_use]
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Refuse => "rejected",
            Self::Discuss => "discussion",
            Self::Answer => "answered",
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
    /// The act that opened the gate ends with this port.
    #[n(4)]
    Settle(#[n(0)] Port),
    /// The held exit is not taken: the run stays, and asks again when it next wants to leave.
    #[n(5)]
    Stay,
    /// What was said is passed on, and the gate stays open.
    #[n(120)]
    PassOn,
}
