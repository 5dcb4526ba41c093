//! The form of events that readers see, and what names their parts.

use minicbor::{Decode, Encode};
use std::collections::BTreeMap;
use switchward_machine::{Channel, Exit, ExitIx, Machine, Node, NodeIx, RunId};
use switchward_state::SharedMachine;
use switchward_state::delivery::MessageText;

/// The field that says which run an event is about.
pub(crate) const RUN_FIELD: &str = "run";

/// An event for a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicEvent {
    /// Its type: `session.started`, `policy.denied`.
    pub kind: &'static str,
    /// Name and value, in order.
    pub fields: Vec<(&'static str, PublicValue)>,
}

/// A value that a reader sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicValue {
    /// As it is.
    Text(String),
    /// The subject of a message on this channel, maybe empty.
    Subject(Channel, MessageText),
}

impl PublicEvent {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self { kind, fields: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        if !value.is_empty() {
            self.fields.push((name, PublicValue::Text(value)));
        }
        self
    }

    /// The same with the subject of a message. A reader leaves it out if it is empty.
    pub(crate) fn with_subject(mut self, channel: Channel, text: MessageText) -> Self {
        self.fields.push(("subject", PublicValue::Subject(channel, text)));
        self
    }
}

/// The machines of runs, by which their nodes have names, and which of the runs are children.
#[derive(Debug, Clone, Default, Encode, Decode)]
pub struct Machines(#[n(0)] pub BTreeMap<RunId, RunMachine>);

/// The machine of a run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunMachine {
    /// The machine.
    #[n(0)]
    pub machine: SharedMachine,
    /// Whether another run has called it.
    #[n(1)]
    pub child: bool,
}

impl Machines {
    /// The machine of a run.
    #[must_use]
    pub fn machine(&self, run: RunId) -> Option<&Machine> {
        self.0.get(&run).map(|one| &*one.machine)
    }

    pub(crate) fn is_child(&self, run: RunId) -> bool {
        self.0.get(&run).is_some_and(|one| one.child)
    }

    fn node(&self, run: RunId, node: NodeIx) -> Option<&Node> {
        self.machine(run)?.node(node)
    }

    pub(crate) fn name(&self, run: RunId, node: NodeIx) -> String {
        self.node(run, node).map(|node| node.name.clone()).unwrap_or_default()
    }

    pub(crate) fn exit(&self, run: RunId, node: NodeIx, exit: ExitIx) -> Option<&Exit> {
        self.node(run, node)?.exits.get(usize::from(exit.0))
    }
}
