//! Static checks: ports that lead nowhere, unreachable states, cycles that no person stops.

use switchward_machine::{Layer, Machine, NodeIx};

use super::approval::DISCUSSION;
use super::nodes::timer_port;
use super::state::{Exits, Kind, State};
use super::transitions::{ERROR, Edge, TIMEOUT};
use super::{drains, steps, tools};
use crate::codes::{DRAIN_LOOP, ONLY_ERROR, PORT_UNCONNECTED, TIMER_PORT, TOOL_CLOSED, UNREACHABLE_STATE};
use crate::document::Span;
use crate::{Finding, Report, quoted};

/// Warns of ports without a transition.
pub(super) fn warn_ports(state: &State<'_>, edges: &[Edge<'_>], report: &mut Report) {
    let stands = |port: &str| edges.iter().any(|edge| edge.port == Some(port));
    let mut open: Vec<&str> = Vec::new();
    let connected = edges.iter().any(|edge| edge.port != Some(ERROR));
    match (&state.exits, &state.kind) {
        (Exits::Ports(_), Kind::Timer(_)) if connected && timer_port(edges) != "received" => {
            let message = format!(
                "the port `received` of {} has no transition, so it ends with `timeout`",
                quoted(state.name)
            );
            report.add(Finding::new(TIMER_PORT, state.span, message));
        }
        (Exits::Ports(_), Kind::Timer(_)) if connected => {}
        // A state without any transition is the end.
        (Exits::Ports(ports), _) if !edges.is_empty() => {
            // Without a transition, a discussion keeps the request open.
            let waits = |port: &str| matches!(state.kind, Kind::Approval(_)) && port == DISCUSSION;
            open.extend(ports.iter().map(String::as_str).filter(|port| !stands(port) && !waits(port)));
        }
        (Exits::Guards, _) if !edges.is_empty() && !connected => {
            let message =
                format!("the only transition of the state {} leaves its error port", quoted(state.name));
            report.add(Finding::new(ONLY_ERROR, state.span, message));
        }
        (Exits::Timed, _) if !edges.is_empty() && !stands(TIMEOUT) => open.push(TIMEOUT),
        (Exits::Ports(_) | Exits::Guards | Exits::Timed | Exits::Unknown, _) => {}
    }
    if state.errors.has_port() && !stands(ERROR) {
        open.push(ERROR);
    }
    for port in open {
        let message = format!("no transition leaves the port {} of {}", quoted(port), quoted(state.name));
        let finding = Finding::new(PORT_UNCONNECTED, state.span, message);
        report.add(finding.hint("a run that leaves through it fails"));
    }
}

/// Warns of guards that wait for a tool which this layer denies.
pub(super) fn warn_tools(layer: &Layer, edges: &[Edge<'_>], report: &mut Report) {
    for (span, tool) in edges.iter().flat_map(|edge| &edge.tools) {
        if !tools::is_open(layer, tool) {
            let message = format!(
                "the tool {} is denied here: it is neither a global tool nor one of the state",
                quoted(tool)
            );
            report.add(Finding::new(TOOL_CLOSED, *span, message));
        }
    }
}

/// Warns of messages that are sent again if the state is retried.
pub(super) fn warn_resent(state: &State<'_>, fields: &[switchward_machine::Field], report: &mut Report) {
    if let Kind::Operations(list) = &state.kind
        && state.errors.attempts.max > 1
    {
        steps::warn_resent(list, fields, report);
    }
}

/// Warnings that need the whole machine; `names` are the spans of the states' names, and `unreachable` the states that no
/// path leads to.
pub(super) fn warn_paths(machine: &Machine, unreachable: &[NodeIx], names: &[Span], report: &mut Report) {
    let span_of = |at: NodeIx| usize::try_from(at.0).ok().and_then(|at| names.get(at)).copied();
    for at in unreachable {
        if let Some((vertex, span)) = machine.node(*at).zip(span_of(*at)) {
            let message = format!(
                "the state {} is never reached: no path leads to it from the first state",
                quoted(&vertex.name)
            );
            report.add(Finding::new(UNREACHABLE_STATE, span, message));
        }
    }
    for cycle in drains::cycles(machine) {
        let Some(span) = cycle.first().and_then(|at| span_of(*at)) else { continue };
        let names_shown: Vec<String> = cycle
            .iter()
            .chain(cycle.first())
            .filter_map(|at| machine.node(*at).map(|vertex| quoted(&vertex.name)))
            .take(NAMES_SHOWN_MAX)
            .collect();
        let message = format!(
            "these states wait for nobody and lead to each other in an endless loop: {}",
            names_shown.join(", ")
        );
        let finding = Finding::new(DRAIN_LOOP, span, message);
        report.add(
            finding.hint(
                "add a transition that leaves the loop, or guard every transition of one of the states",
            ),
        );
    }
}

/// States named in one finding.
const NAMES_SHOWN_MAX: usize = 8;
