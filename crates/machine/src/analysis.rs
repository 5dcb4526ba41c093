//! What can be seen in a machine without running it.

use std::collections::BTreeSet;

use crate::{ActKind, Exit, Machine, NoExit, NodeIx, Resolve, Target};

/// The findings of [`analyse`]; positions in the machine's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Analysis {
    /// Nodes that no path from the start reaches.
    pub unreachable: Vec<NodeIx>,
    /// Reachable nodes from which no path leads to an end.
    pub endless: Vec<NodeIx>,
}

/// Walks the machine's exits from its start and backwards from its ends.
#[must_use]
pub fn analyse(machine: &Machine) -> Analysis {
    let forward: Vec<Vec<usize>> = (0..machine.nodes.len()).map(|at| successors(machine, at)).collect();
    let mut backward = vec![Vec::new(); machine.nodes.len()];
    for (from, targets) in forward.iter().enumerate() {
        for to in targets {
            if let Some(into) = backward.get_mut(*to) {
                into.push(from);
            }
        }
    }
    let start = usize::try_from(machine.start.0).into_iter();
    let begun: Vec<Vec<usize>> =
        (0..machine.nodes.len()).map(|at| begun(machine, at, &forward[at])).collect();
    let reached = closure(start, &begun);
    let ends = (0..machine.nodes.len()).filter(|at| can_end(machine, *at));
    let ending = closure(ends, &backward);
    let all = || 0..machine.nodes.len();
    Analysis {
        unreachable: positions(all().filter(|at| !reached.contains(at))),
        endless: positions(all().filter(|at| reached.contains(at) && !ending.contains(at))),
    }
}

fn successors(machine: &Machine, at: usize) -> Vec<usize> {
    let exits = machine.nodes[at].exits.iter();
    exits
        .filter_map(|exit| match exit.to {
            Target::Node(to) => usize::try_from(to.0).ok(),
            Target::End(_) => None,
        })
        .collect()
}

/// The nodes that are entered after a node, or by the children that it begins.
fn begun(machine: &Machine, at: usize, successors: &[usize]) -> Vec<usize> {
    let children = machine.nodes[at].acts.iter().flat_map(|act| act.kind.fixed_children());
    let children = children.filter_map(|child| usize::try_from(child.node.0).ok());
    successors.iter().copied().chain(children).collect()
}

fn can_end(machine: &Machine, at: usize) -> bool {
    let node = &machine.nodes[at];
    let runs_through = node.acts.iter().all(|act| match act.kind {
        ActKind::Do(_) | ActKind::Wait(_) | ActKind::Spawn(_) => true,
        ActKind::Ask(_) | ActKind::Work(_) | ActKind::Decide(_) => false,
    });
    let ends_alone = matches!(node.on_no_exit, NoExit::End(_)) && runs_through;
    ends_alone
        || node.exits.iter().any(|exit| matches!(exit.to, Target::End(_)) || ends_at_gate(machine, exit))
}

/// Returns true if a decision of the person who is asked about this exit ends the run.
fn ends_at_gate(machine: &Machine, exit: &Exit) -> bool {
    let gate = exit.hold.and_then(|gate| machine.gate(gate));
    gate.is_some_and(|gate| gate.outcomes.iter().any(|(_, resolve)| matches!(resolve, Resolve::End(_))))
}

fn closure(from: impl Iterator<Item = usize>, edges: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut seen: BTreeSet<usize> = from.collect();
    let mut todo: Vec<usize> = seen.iter().copied().collect();
    while let Some(at) = todo.pop() {
        for to in edges.get(at).into_iter().flatten() {
            if seen.insert(*to) {
                todo.push(*to);
            }
        }
    }
    seen
}

fn positions(found: impl Iterator<Item = usize>) -> Vec<NodeIx> {
    found.filter_map(|at| u32::try_from(at).ok().map(NodeIx)).collect()
}
