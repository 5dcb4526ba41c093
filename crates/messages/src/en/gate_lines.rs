//! Gates in a few words, as lists and terminals show them.

use std::borrow::Cow;
use switchward_machine::Decision;
use switchward_state::approval::{Quorum, Via};

use super::people::who;

/// What a gate is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateLine<'g> {
    /// A call of an agent.
    Call {
        /// Its name.
        capability: &'g str,
    },
    /// An answer of an agent.
    Review {
        /// The state in which it was given.
        state: &'g str,
        /// What the agent answered.
        answer: &'g str,
    },
    /// An approval of a process.
    Approval {
        /// The state that asks.
        state: &'g str,
        /// Who is asked.
        to: &'g [String],
    },
    /// A part of a task, which one person owes an answer to.
    Task {
        /// The state that asks.
        state: &'g str,
        /// Who is asked.
        to: &'g [String],
    },
}

/// What is asked, in a sentence.
#[must_use]
pub fn gate_question(line: &GateLine<'_>) -> String {
    match line {
        GateLine::Call { capability } => format!("may the agent call {capability}?"),
        GateLine::Review { state, .. } => format!("may the session continue from {state}?"),
        GateLine::Approval { state, to } | GateLine::Task { state, to } => asks(state, to),
    }
}

/// What is asked at a gate, beside its definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateMatter<'g> {
    /// A call of an agent.
    Call {
        /// Its name.
        capability: &'g str,
    },
    /// An answer of an agent.
    Review {
        /// What the agent answered.
        answer: &'g str,
    },
    /// A request of a process.
    Request {
        /// One line that its author wrote, or the engine if they wrote none.
        subject: &'g str,
    },
    /// Nothing that has a name.
    Decision,
}

/// What is asked at a gate of a definition, as the API says it.
#[must_use]
pub fn gate_message(definition: &str, matter: GateMatter<'_>) -> String {
    match matter {
        GateMatter::Call { capability } => {
            format!("{definition}: may the agent call {capability} with these arguments?")
        }
        GateMatter::Review { answer } => {
            format!("{definition}: the agent answered {answer:?}; may it go on?")
        }
        GateMatter::Request { subject } => format!("{definition}: {subject}"),
        GateMatter::Decision => format!("{definition} needs a decision"),
    }
}

/// What a gate is about, in a list of gates.
#[must_use]
pub fn gate_about(line: &GateLine<'_>) -> String {
    match line {
        GateLine::Call { capability } => (*capability).to_owned(),
        GateLine::Review { state, answer } => format!("review of {answer:?} at {state}"),
        GateLine::Approval { state, to } => format!("approval: {}", asks(state, to)),
        GateLine::Task { state, to } => format!("task: {}", asks(state, to)),
    }
}

fn asks(state: &str, to: &[String]) -> String {
    format!("{state} asks {}", to.join(", "))
}

/// What a session waits for, in a list of sessions.
#[must_use]
pub fn gate_waited<'g>(line: &GateLine<'g>, notified: Notified) -> Cow<'g, str> {
    let word = match line {
        GateLine::Call { capability } => capability,
        GateLine::Review { .. } => "review",
        GateLine::Approval { .. } => "approval",
        GateLine::Task { .. } => "task",
    };
    match notified {
        Notified::Somebody => word.into(),
        Notified::Nobody => format!("{word} (nobody notified)").into(),
    }
}

/// Whether anybody who may decide was notified of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notified {
    /// At least one person.
    Somebody,
    /// Those who may decide must look for it themselves.
    Nobody,
}

/// Nobody, where the names of those who are notified would stand.
pub const NOBODY: &str = "nobody";

/// How a gate was closed: by which decision, if it is known, and by whom.
#[must_use]
pub fn gate_decided(decision: Option<Decision>, by: &str, via: Via) -> String {
    let decided = match decision {
        Some(Decision::Approve) => "approved",
        Some(Decision::Refuse) => "rejected",
        Some(Decision::Discuss) => "discussed",
        Some(Decision::Answer) => "answered",
        None => "decided",
    };
    format!("{decided} by {}", who(by, via))
}

/// The way a vote came: its word, or who vouches for it if somebody does.
#[must_use]
pub fn vote_way<'v>(via: &'v str, vouched_by: &str) -> Cow<'v, str> {
    if vouched_by.is_empty() { via.into() } else { format!("vouched by {vouched_by}").into() }
}

/// The events and results that wait until a gate closes; empty if there are none.
#[must_use]
pub fn inputs_held(inputs: u32) -> String {
    match inputs {
        0 => String::new(),
        1 => "1 event or result waits until the gate closes".to_owned(),
        more => format!("{more} events and results wait until the gate closes"),
    }
}

/// How many reminders are left; empty if none is.
#[must_use]
pub fn reminders_left(left: u32) -> String {
    match left {
        0 => String::new(),
        1 => "1 reminder left".to_owned(),
        left => format!("{left} reminders left"),
    }
}

/// How many people must approve; `None` if one is enough.
#[must_use]
pub fn quorum(quorum: Option<Quorum>) -> String {
    match quorum {
        Some(Quorum::All) => "all notified people".to_owned(),
        Some(Quorum::AtLeast(least)) => format!("at least {least}"),
        None => "the first vote decides".to_owned(),
    }
}

/// Who decides a gate, for somebody who does not.
#[must_use]
pub fn gate_deciders(asked: &[String]) -> String {
    match asked {
        [] => "an approver, operator or admin decides".to_owned(),
        [one] => format!("{one} is asked"),
        several => format!("{} are asked", several.join(", ")),
    }
}

/// Says that the reader has approved and can only reject now.
pub const APPROVED_BY_YOU: &str = "you have approved";

/// Says what follows from the approval of a call.
pub const CALL_TO_REPEAT: &str = "the agent must repeat the same call, which is allowed once";

/// Says that a gate was closed without a decision.
#[must_use]
pub fn gate_voided(gate: &str) -> String {
    format!("{gate} is void: the session continued without its decision")
}
