//! Transitions: source, target, and guards or a port. See
//! `docs/formats-conversation.md#transitions-and-ports`.

use switchward_machine::limits::{EXITS_MAX, NAME_BYTES_MAX};
use switchward_machine::{Guard, NodeIx};

use super::guards::Guards;
use super::reader::Reader;
use super::state::{Exits, State};
use crate::codes::{
    GUARDS_IGNORED, MISSING_KEY, NEVER_TRIED, NO_GUARDS, NOT_LISTED, PORT_TWICE, TOO_MANY_ENTRIES,
};
use crate::document::{Node, Span};
use crate::limits::TRANSITIONS_MAX;
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

const TRANSITION: Shape =
    Shape { what: "a transition", keys: &["from", "to", "port", "guards"], ignored: &[], hints: &[] };

/// The port of an error boundary.
pub(super) const ERROR: &str = "error";
/// The port that is taken when the time is up.
pub(super) const TIMEOUT: &str = "timeout";

/// A parsed transition.
#[derive(Debug)]
pub(super) struct Edge<'a> {
    /// Its target.
    pub(super) to: NodeIx,
    /// Its port, if it has one.
    pub(super) port: Option<&'a str>,
    /// The guard that must hold.
    pub(super) guard: Guard,
    /// Its label in the history.
    pub(super) label: String,
    /// Tools that its guards wait for.
    pub(super) tools: Vec<(Span, &'a str)>,
}

/// The transitions of each state, in the author's order.
pub(super) fn read<'a>(node: &'a Node, states: &[State<'a>], cx: &mut Reader<'a, '_>) -> Vec<Vec<Edge<'a>>> {
    let mut edges: Vec<Vec<Edge<'a>>> = states.iter().map(|_| Vec::new()).collect();
    let items = shape::list(node, "`transitions`", TRANSITIONS_MAX, cx.report).unwrap_or_default();
    for item in items {
        let Some(fields) = Fields::open(item, &TRANSITION, cx.report) else { continue };
        let from = fields.required("from", cx.report).and_then(|node| cx.state(node, "`from`"));
        let to = fields.required("to", cx.report).and_then(|node| cx.state(node, "`to`"));
        cx.keys.stand_at(from);
        let at = from.and_then(|from| usize::try_from(from.0).ok());
        let state = at.and_then(|at| states.get(at));
        let required = state.map(|state| state.required.as_slice()).unwrap_or_default();
        let guards = fields.optional("guards").map(|node| Guards::read(node, required, cx));
        let Some((state, to, known)) = state
            .zip(to)
            .zip(at.and_then(|at| edges.get_mut(at)))
            .map(|((state, to), known)| (state, to, known))
        else {
            continue;
        };
        let edge = edge(item, &fields, state, to, guards, cx);
        known.extend(edge.and_then(|edge| fitting(edge, item, state, known, cx)));
    }
    cx.keys.stand_at(None);
    edges
}

/// The transition, if it is valid for its state.
fn edge<'a>(
    item: &'a Node,
    fields: &Fields<'a>,
    state: &State<'a>,
    to: NodeIx,
    guards: Option<Guards<'a>>,
    cx: &mut Reader<'a, '_>,
) -> Option<Edge<'a>> {
    let port = match fields.optional("port") {
        Some(node) => Some((node, shape::name(node, "`port`", NAME_BYTES_MAX, cx.report)?)),
        None => None,
    };
    if let Some((node, name)) = port {
        if !known_port(node, name, state, cx) {
            return None;
        }
        if guards.as_ref().is_some_and(|guards| guards.count > 0)
            && let Some((key, _)) = item.entry("guards")
        {
            let message =
                format!("guards at the port {} are ignored: the state chooses its port itself", quoted(name));
            cx.report.add(Finding::new(GUARDS_IGNORED, key.span, message));
        }
        let label = format!("port {name}");
        return Some(Edge { to, port: Some(name), guard: Guard::Always, label, tools: Vec::new() });
    }
    if let Exits::Ports(ports) = &state.exits {
        let message = format!("a transition from {} needs the key `port`", quoted(state.name));
        let ports = ports.iter().map(String::as_str).chain(state.errors.has_port().then_some(ERROR));
        cx.report.add(Finding::new(MISSING_KEY, item.span, message).allowed(ports));
        return None;
    }
    let guards = guards.unwrap_or_else(Guards::none);
    let sound = cx.report.errors() == 0;
    if guards.count == 0 || (sound && guards.vacuous && guards.guard.is_open()) {
        let span = item.get("guards").map_or(item.span, |node| node.span);
        let message =
            format!("this transition from {} has no condition and always fires", quoted(state.name));
        cx.report.add(Finding::new(NO_GUARDS, span, message).hint("write `always` if this is intended"));
    }
    Some(Edge { to, port: None, guard: guards.guard, label: guards.label, tools: guards.tools })
}

fn known_port<'a>(node: &'a Node, name: &str, state: &State<'a>, cx: &mut Reader<'a, '_>) -> bool {
    let own: Vec<&str> = match &state.exits {
        Exits::Unknown => return true,
        Exits::Ports(ports) => ports.iter().map(String::as_str).collect(),
        Exits::Timed => vec![TIMEOUT],
        Exits::Guards => Vec::new(),
    };
    let error = state.errors.has_port().then_some(ERROR);
    let ports: Vec<&str> = own.into_iter().chain(error).collect();
    if ports.contains(&name) {
        return true;
    }
    let message = format!("the state {} has no port {}", quoted(state.name), quoted(name));
    let nearest = cx.report.nearest(name, ports.iter().copied());
    let mut finding = Finding::new(NOT_LISTED, node.span, message).allowed(ports.iter().copied());
    finding = finding.nearest(nearest);
    if name == ERROR {
        finding = finding.hint("add `on_error: port` or `on_error: retry_then_port` to the state");
    } else if ports.is_empty() {
        finding = finding.hint("its transitions have guards instead of ports");
    }
    cx.report.add(finding);
    false
}

/// Adds the transition to those of its state.
fn fitting<'a>(
    edge: Edge<'a>,
    item: &'a Node,
    state: &State<'a>,
    known: &[Edge<'a>],
    cx: &mut Reader<'a, '_>,
) -> Option<Edge<'a>> {
    if known.len() >= EXITS_MAX {
        let message = format!("the state {} has more than {EXITS_MAX} transitions", quoted(state.name));
        cx.report.add(Finding::new(TOO_MANY_ENTRIES, item.span, message));
        return None;
    }
    if let Some(port) = edge.port
        && known.iter().any(|other| other.port == Some(port))
    {
        let span = item.get("port").map_or(item.span, |node| node.span);
        let message = format!("the port {} of {} has a transition already", quoted(port), quoted(state.name));
        cx.report.add(Finding::new(PORT_TWICE, span, message));
        return None;
    }
    let open = |other: &Edge<'_>| other.port.is_none() && other.guard.is_open();
    // A guard that could not be read counts as a condition all the same.
    if cx.report.errors() == 0 && edge.port.is_none() && known.iter().any(open) {
        let message = format!("a transition from {} before this one always fires", quoted(state.name));
        cx.report.add(Finding::new(NEVER_TRIED, item.span, message));
    }
    Some(edge)
}
