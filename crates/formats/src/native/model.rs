//! A process as it was read: what it says, with its names resolved.

use std::collections::BTreeMap;

use switchward_expr::Logic;
use switchward_machine::{NodeIx, Pattern};

use super::schema::Context;
use crate::document::Span;

/// A process whose nodes could be read.
pub(super) struct Process<'a> {
    /// Its own name; `None` if it has none that is valid.
    pub(super) name: Option<&'a str>,
    /// The author's words about the process, for people.
    pub(super) description: Option<&'a str>,
    /// Where a run begins; `None` if that names no node.
    pub(super) initial: Option<NodeIx>,
    /// The model that all work wants where neither its node nor the start names one.
    pub(super) model: Option<&'a str>,
    /// What the data must be, and begin with.
    pub(super) context: Context,
    /// By name.
    pub(super) scripts: BTreeMap<&'a str, Script<'a>>,
    /// In the author's order.
    pub(super) nodes: Vec<Step<'a>>,
}

/// A node of a process.
pub(super) struct Step<'a> {
    /// As it was written.
    pub(super) name: &'a str,
    /// Where the name stands.
    pub(super) span: Span,
    /// Where the type stands.
    pub(super) type_span: Span,
    /// The fields that it may write, each once.
    pub(super) writes: Vec<&'a str>,
    /// Attempts beside the first one.
    pub(super) retries: u32,
    /// What it does.
    pub(super) kind: Kind<'a>,
    /// In the author's order.
    pub(super) routes: Vec<Route<'a>>,
}

/// What a node does.
pub(super) enum Kind<'a> {
    /// A worker calls a tool, then the node writes its literals; one of the two may be absent.
    Tool {
        /// The tool, and its arguments as JSON with templates.
        call: Option<ToolCall<'a>>,
        /// Fields and their values as JSON.
        update: Vec<(&'a str, String)>,
    },
    /// A worker asks a model once.
    Interaction {
        /// As the worker knows it.
        name: &'a str,
        /// JSON with templates.
        input: Option<String>,
        /// The model that it wants.
        model: Option<&'a str>,
    },
    /// A worker lets an agent work.
    Agent(Agent<'a>),
    /// A script runs.
    Script {
        /// Its name in `resources.scripts`.
        name: &'a str,
        /// JSON with templates.
        input: Option<String>,
        /// The longest time that it may take, seconds.
        timeout: u64,
    },
    /// Nothing happens but that a branch is chosen.
    Condition,
    /// The run completes.
    Final,
    /// It was read and checked, and this build does not run it. For a message: `a human task`.
    NotRun(&'static str),
    /// It could not be read.
    Unread,
}

/// What a worker is to call.
pub(super) struct ToolCall<'a> {
    /// The capability that is called.
    pub(super) name: &'a str,
    /// JSON with templates.
    pub(super) input: Option<String>,
}

/// What an agent is to do.
pub(super) struct Agent<'a> {
    /// A template.
    pub(super) prompt: &'a str,
    /// JSON with templates.
    pub(super) input: Option<String>,
    /// The model that it wants.
    pub(super) model: Option<&'a str>,
    /// What it may call beside what the tenant allows.
    pub(super) tools: Vec<Pattern>,
}

/// A script of `resources.scripts`.
pub(super) struct Script<'a> {
    /// `python`, `javascript` or `typescript`.
    pub(super) language: &'a str,
    /// The file that is run.
    pub(super) entrypoint: &'a str,
    /// Paths and contents.
    pub(super) files: Vec<(&'a str, &'a str)>,
    /// What must be installed where it runs.
    pub(super) packages: Vec<&'a str>,
}

/// A way from one node to another: a transition, or a branch of a condition.
pub(super) struct Route<'a> {
    /// Where it leads.
    pub(super) to: NodeIx,
    /// Who takes it.
    pub(super) trigger: Trigger,
    /// What must hold.
    pub(super) guard: Condition,
    /// What people call it.
    pub(super) label: Option<&'a str>,
    /// Where it stands.
    pub(super) span: Span,
}

/// Who takes a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trigger {
    /// The engine, when the node's work is done.
    Auto,
    /// The agent of the node, by name.
    Agent,
    /// A person.
    User,
}

/// What must hold for a route.
pub(super) enum Condition {
    /// Nothing.
    Always,
    /// It can never be taken.
    Never,
    /// An expression over the data.
    Logic(Logic),
}

impl Condition {
    pub(super) fn always_holds(&self) -> bool {
        match self {
            Self::Always => true,
            Self::Never | Self::Logic(_) => false,
        }
    }
}
