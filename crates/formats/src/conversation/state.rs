//! A parsed state: what it does and how it is left.

use switchward_machine::{GateSpec, Mapped, Message, Pattern, Sort, Work};

use super::boundary::Errors;
use super::steps::Step;
use crate::document::Span;

/// A parsed state.
#[derive(Debug)]
pub(super) struct State<'a> {
    /// Empty if it has none.
    pub(super) name: &'a str,
    /// The span of the name.
    pub(super) span: Span,
    /// What it does.
    pub(super) kind: Kind,
    /// How it is left.
    pub(super) exits: Exits,
    /// The text that the assistant is shown.
    pub(super) text: Option<&'a str>,
    /// Keys that the assistant is to record.
    pub(super) required: Vec<&'a str>,
    /// Its own tools; `None` if it lists none.
    pub(super) tools: Option<Vec<Pattern>>,
    /// What happens when something goes wrong.
    pub(super) errors: Errors,
    /// The approval that is needed to leave it.
    pub(super) gate: Option<GateSpec>,
}

/// What a state does.
#[derive(Debug)]
pub(super) enum Kind {
    /// The assistant talks with the user.
    Conversation,
    /// The assistant works alone.
    Action,
    /// Operations run.
    Operations(Vec<Step>),
    /// A message is sent; `None` if it could not be read.
    Output(Option<Message>),
    /// This many milliseconds pass.
    Timer(u64),
    /// An event is awaited for this many milliseconds, and may be classified.
    Event(u64, Option<Sort>),
    /// A worker does the work, and the state ends with a port.
    Work(Work),
    /// A reply is awaited for this many milliseconds, and may be classified.
    Reply(u64, Option<Sort>),
    /// A person decides.
    Approval(Box<GateSpec>),
    /// Each of several people must answer.
    Task(Box<GateSpec>),
    /// Another assistant does the work, and the state is left when it is done.
    Delegate(Work),
    /// Another workflow runs to its end.
    Subworkflow(Box<Call>),
    /// This build does not run it, or it could not be read.
    NotRun,
}

/// A call of another workflow.
#[derive(Debug)]
pub(super) struct Call {
    /// Its name.
    pub(super) workflow: String,
    /// What the called workflow begins with.
    pub(super) input: Vec<Mapped>,
    /// What the caller's data get from it at its end.
    pub(super) output: Vec<Mapped>,
}

/// How a state is left.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Exits {
    /// Its transitions have guards.
    Guards,
    /// Its transitions have guards, except for one that may be at the port `timeout`.
    Timed,
    /// Each of its transitions is at one of these ports.
    Ports(Vec<String>),
    /// Its type could not be read.
    Unknown,
}

impl Exits {
    pub(super) fn ports(names: &[&str]) -> Self {
        Self::Ports(names.iter().map(|name| (*name).to_owned()).collect())
    }
}
