//! What names the parts of the events that readers see.

use minicbor::{Decode, Encode};
use std::collections::BTreeMap;
use switchward_machine::{Exit, ExitIx, Machine, Node, NodeIx, RunId};
use switchward_state::SharedMachine;

/// The field that says which run an event is about.
pub(crate) const RUN_FIELD: &str = "run";

/// The machines of runs, by which their nodes have names, and which of the runs are children.
#[derive(Debug, Clone, Default, Encode, Decode)]
pub struct Machines(#[n(0)] pub BTreeMap<RunId, RunMachine>);

/// What the public form of an event needs to know of its run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RunMachine {
    /// Gives nodes and exits their names.
    #[n(0)]
    pub machine: SharedMachine,
    /// Whether another run has called it.
    #[n(1)]
    pub child: bool,
}

impl Machines {
    /// Returns the machine of a run; `None` if the run is not among these.
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
