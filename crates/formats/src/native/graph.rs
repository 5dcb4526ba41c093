//! Nodes that no path reaches, and nodes from which no path leads to an end.

use std::collections::BTreeSet;

use super::model::{Kind, Process};
use crate::codes::{Code, ENDLESS_STATE, UNREACHABLE_STATE};
use crate::{Finding, Report, quoted};

/// Warns at the names of the nodes.
pub(super) fn warn(process: &Process<'_>, report: &mut Report) {
    let count = process.nodes.len();
    let (mut forward, mut backward) = (vec![Vec::new(); count], vec![Vec::new(); count]);
    for (from, step) in process.nodes.iter().enumerate() {
        for to in step.routes.iter().filter_map(|route| usize::try_from(route.to.0).ok()) {
            forward[from].push(to);
            backward[to].push(from);
        }
    }
    let start = process.initial.and_then(|at| usize::try_from(at.0).ok());
    let reached = closure(start.into_iter().collect(), &forward);
    let ends = (0..count).filter(|at| matches!(process.nodes[*at].kind, Kind::Final));
    let ending = closure(ends.collect(), &backward);
    let mut add = |at: usize, code: Code, fault: &str| {
        let step = &process.nodes[at];
        report.add(Finding::new(code, step.span, format!("the node {} {fault}", quoted(step.name))));
    };
    for at in 0..count {
        if !reached.contains(&at) {
            add(at, UNREACHABLE_STATE, "is never reached: no path leads to it from the initial node");
        } else if !ending.contains(&at) {
            add(at, ENDLESS_STATE, "has no way out: no path leads from it to a final node");
        }
    }
}

/// These nodes, and those that the edges lead to from them.
fn closure(mut todo: Vec<usize>, edges: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut seen: BTreeSet<usize> = todo.iter().copied().collect();
    while let Some(at) = todo.pop() {
        for to in &edges[at] {
            if seen.insert(*to) {
                todo.push(*to);
            }
        }
    }
    seen
}
