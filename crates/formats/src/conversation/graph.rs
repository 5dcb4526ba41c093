//! What can be seen without running: ports that lead nowhere, states that nothing reaches, circles that nobody stops.

use switchward_machine::{ActKind, Layer, Machine, Node as Vertex, NodeIx, Op, Target, Trigger, analyse};

use super::nodes::timer_port;
use super::states::{Kind, State, Ways};
use super::transitions::{ERROR, Edge};
use super::{steps, tools};
use crate::codes::{DRAIN_LOOP, ONLY_ERROR, PORT_UNCONNECTED, TIMER_PORT, TOOL_CLOSED, UNREACHABLE_STATE};
use crate::document::Span;
use crate::{Finding, Report, quoted};

/// Warns of ports without a transition.
pub(super) fn warn_ports(state: &State<'_>, edges: &[Edge<'_>], report: &mut Report) {
    let stands = |port: &str| edges.iter().any(|edge| edge.port == Some(port));
    let mut open: Vec<&str> = Vec::new();
    let connected = edges.iter().any(|edge| edge.port != Some(ERROR));
    match (&state.ways, &state.kind) {
        (Ways::Ports(_), Kind::Timer(_)) if connected && timer_port(edges) != "received" => {
            let message = format!(
                "nothing stands at the port `received` of {}; it ends with `timeout`",
                quoted(state.name)
            );
            report.add(Finding::new(TIMER_PORT, state.span, message));
        }
        (Ways::Ports(_), Kind::Timer(_)) if connected => {}
        // A state without any transition is the end.
        (Ways::Ports(ports), _) if !edges.is_empty() => {
            open.extend(ports.iter().map(String::as_str).filter(|port| !stands(port)));
        }
        (Ways::Guards, _) if !edges.is_empty() && !connected => {
            let message = format!("the state {} is left through its error port only", quoted(state.name));
            report.add(Finding::new(ONLY_ERROR, state.span, message));
        }
        (Ways::Ports(_) | Ways::Guards | Ways::Unknown, _) => {}
    }
    if state.errors.has_port() && !stands(ERROR) {
        open.push(ERROR);
    }
    for port in open {
        let message = format!("no transition stands at the port {} of {}", quoted(port), quoted(state.name));
        let finding = Finding::new(PORT_UNCONNECTED, state.span, message);
        report.add(finding.hint("a run that leaves there fails"));
    }
}

/// Warns of guards that wait for a tool which this layer denies.
pub(super) fn warn_tools(layer: &Layer, edges: &[Edge<'_>], report: &mut Report) {
    for (span, tool) in edges.iter().flat_map(|edge| &edge.tools) {
        if !tools::is_open(layer, tool) {
            let message =
                format!("the tool {} is neither global nor the state's, and is denied here", quoted(tool));
            report.add(Finding::new(TOOL_CLOSED, *span, message));
        }
    }
}

/// Warns of messages that are sent again, where the state is retried.
pub(super) fn warn_resent(state: &State<'_>, fields: &[switchward_machine::Field], report: &mut Report) {
    if let Kind::Operations(list) = &state.kind
        && state.errors.attempts.max > 1
    {
        steps::warn_resent(list, fields, false, report);
    }
}

/// Warns of what only the whole machine shows; `names` are where the states' names stand.
pub(super) fn warn_paths(machine: &Machine, names: &[Span], report: &mut Report) {
    let place = |at: NodeIx| usize::try_from(at.0).ok().and_then(|at| names.get(at)).copied();
    for at in analyse(machine).unreachable {
        if let Some((vertex, span)) = machine.node(at).zip(place(at)) {
            let message = format!(
                "the state {} is never reached: no path leads to it from the first state",
                quoted(&vertex.name)
            );
            report.add(Finding::new(UNREACHABLE_STATE, span, message));
        }
    }
    for circle in circles(machine) {
        let Some(span) = circle.first().and_then(|at| place(*at)) else { continue };
        let told: Vec<String> = circle
            .iter()
            .chain(circle.first())
            .filter_map(|at| machine.node(*at).map(|vertex| quoted(&vertex.name)))
            .take(TOLD_MAX)
            .collect();
        let message =
            format!("these states need nobody and lead to each other for ever: {}", told.join(", "));
        report.add(Finding::new(DRAIN_LOOP, span, message).hint("guard one of their transitions"));
    }
}

/// States named in one finding.
const TOLD_MAX: usize = 8;

/// Circles of nodes that run through and always go on to the next; each begins with its first node in the author's
/// order.
fn circles(machine: &Machine) -> Vec<Vec<NodeIx>> {
    let next: Vec<Option<usize>> = machine.nodes.iter().map(sure_next).collect();
    // 0: not seen; else the walk that came by.
    let mut walk_of = vec![0_usize; next.len()];
    let mut found = Vec::new();
    for start in 0..next.len() {
        let mut walk = Vec::new();
        let mut at = start;
        while walk_of.get(at) == Some(&0) {
            walk_of[at] = start + 1;
            walk.push(at);
            match next[at] {
                Some(to) => at = to,
                None => break,
            }
        }
        if let Some(from) = walk.iter().position(|seen| *seen == at)
            && next[at].is_some()
        {
            let mut circle = walk.split_off(from);
            let least =
                circle.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(place, _)| place);
            circle.rotate_left(least);
            found.push(circle.into_iter().filter_map(|node| u32::try_from(node).ok().map(NodeIx)).collect());
        }
    }
    found
}

/// The node that this one always leads to at once, if it does.
fn sure_next(vertex: &Vertex) -> Option<usize> {
    let runs_through = vertex.acts.iter().all(|act| match &act.kind {
        ActKind::Do(ops) => !ops.iter().any(branches),
        ActKind::Ask(_) | ActKind::Work(_) | ActKind::Wait(_) | ActKind::Decide(_) | ActKind::Spawn(_) => {
            false
        }
    });
    let first = vertex.exits.iter().find(|exit| matches!(exit.on, Trigger::Auto { .. }))?;
    match first.to {
        Target::Node(to) if runs_through && first.guard.is_open() && first.hold.is_none() => {
            usize::try_from(to.0).ok()
        }
        Target::Node(_) | Target::End(_) => None,
    }
}

fn branches(op: &Op) -> bool {
    match op {
        Op::Branch(_) => true,
        Op::Each(each) => each.ops.iter().any(branches),
        Op::Log(_) | Op::Write(_) | Op::Convert(_) | Op::Send(_) | Op::Next(_) => false,
    }
}
