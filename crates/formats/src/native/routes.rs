//! Transitions, and the branches of a condition. See `docs/formats-native.md#transitions` and
//! `docs/formats-native.md#condition`.

use switchward_machine::NodeIx;
use switchward_machine::limits::{EXITS_MAX, NAME_BYTES_MAX};

use super::guards;
use super::model::{Condition, Route, Trigger};
use super::reader::Reader;
use crate::codes::{AGENT_TRIGGER, BRANCH_WHEN, DEFAULT_BRANCH, ROUTE_IDLE};
use crate::document::{Node, Span};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

const TRANSITION: Shape = Shape {
    what: "a transition",
    keys: &["to", "guard", "trigger", "label", "metadata"],
    ignored: &[],
    hints: &[("when", "a transition has a `guard`; `when` is a key of the branches of a condition")],
};
const CASE: Shape = Shape {
    what: "a branch of a condition",
    keys: &["to", "when", "default", "label", "metadata"],
    ignored: &[],
    hints: &[
        ("guard", "a branch has `when`; `guard` is a key of transitions"),
        ("node", "a condition chooses one of its branches; a node of the type `branch` runs all of them"),
    ],
};
const TRIGGERS: [&str; 3] = ["auto", "agent", "user"];

/// Who may take the transitions of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// An agent: the engine, people and the agent.
    Agent,
    /// A human task: the answer counts for transitions of people as well.
    Person,
    /// Any other node: the engine and people.
    Other,
}

/// The transitions of a node, in the author's order.
pub(super) fn transitions<'a>(
    node: &'a Node,
    step: &str,
    owner: Owner,
    cx: &mut Reader<'a, '_>,
) -> Vec<Route<'a>> {
    let what = format!("`transitions` of {}", quoted(step));
    let items = shape::list(node, &what, EXITS_MAX, cx.report).unwrap_or_default();
    let routes: Vec<Route<'a>> = items.iter().filter_map(|item| transition(item, step, owner, cx)).collect();
    // A transition that could not be read is none of these.
    if routes.len() == items.len() {
        warn_idle(&routes, step, owner, cx);
    }
    routes
}

fn transition<'a>(node: &'a Node, step: &str, owner: Owner, cx: &mut Reader<'a, '_>) -> Option<Route<'a>> {
    let fields = Fields::open(node, &TRANSITION, cx.report)?;
    let (label, to) = (label(&fields, cx), to(&fields, step, cx));
    let guard = match fields.optional("guard") {
        None => Some(Condition::Always),
        Some(node) => guards::read(node, "`guard`", cx),
    };
    let trigger = match fields.optional("trigger") {
        None => Some(Trigger::Auto),
        Some(node) => trigger(node, step, owner, cx),
    };
    Some(Route { to: to?, trigger: trigger?, guard: guard?, label, span: node.span })
}

fn trigger<'a>(node: &'a Node, step: &str, owner: Owner, cx: &mut Reader<'a, '_>) -> Option<Trigger> {
    match shape::word(node, "`trigger`", &TRIGGERS, cx.report)? {
        "auto" => Some(Trigger::Auto),
        "user" => Some(Trigger::User),
        _ if owner == Owner::Agent => Some(Trigger::Agent),
        _ => {
            let message =
                format!("the node {} is no agent, so no agent chooses its transitions", quoted(step));
            let finding = Finding::new(AGENT_TRIGGER, node.span, message);
            cx.report.add(finding.allowed(["auto", "user"]));
            None
        }
    }
}

fn to<'a>(fields: &Fields<'a>, step: &str, cx: &mut Reader<'a, '_>) -> Option<NodeIx> {
    let node = fields.required("to", cx.report)?;
    cx.node(node, &format!("a transition of {}", quoted(step)))
}

fn label<'a>(fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    if let Some(node) = fields.optional("metadata") {
        shape::map(node, "`metadata`", usize::MAX, cx.report);
    }
    fields.optional("label").and_then(|node| shape::name(node, "`label`", NAME_BYTES_MAX, cx.report))
}

/// Warns of what is behind a transition that the engine always takes. An agent chooses before.
fn warn_idle(routes: &[Route<'_>], step: &str, owner: Owner, cx: &mut Reader<'_, '_>) {
    let counts = |route: &Route<'_>| match route.trigger {
        Trigger::Auto => true,
        Trigger::User => owner == Owner::Person,
        Trigger::Agent => false,
    };
    let Some(first) = routes.iter().position(|route| counts(route) && route.guard.always_holds()) else {
        return;
    };
    for (at, route) in routes.iter().enumerate() {
        let is_behind = at > first && counts(route);
        // A person is only asked if the engine takes none.
        let waits = route.trigger == Trigger::User && owner != Owner::Person;
        if is_behind || waits {
            let message =
                format!("this transition of {} is never tried: one before it always holds", quoted(step));
            cx.report.add(Finding::new(ROUTE_IDLE, route.span, message));
        }
    }
}

/// The branches of a condition, the default last.
pub(super) fn cases<'a>(node: &'a Node, step: &str, cx: &mut Reader<'a, '_>) -> Vec<Route<'a>> {
    let what = format!("`branches` of {}", quoted(step));
    let items = shape::list(node, &what, EXITS_MAX, cx.report).unwrap_or_default();
    let (mut routes, mut defaults, mut default_spans) = (Vec::new(), Vec::new(), Vec::<Span>::new());
    for item in items {
        let Some(fields) = Fields::open(item, &CASE, cx.report) else { continue };
        let (label, to) = (label(&fields, cx), to(&fields, step, cx));
        let default = fields.optional("default");
        let is_default = default.and_then(|node| cx.flag(node, "`default`")) == Some(true);
        let when = fields.optional("when");
        let guard = when.and_then(|node| guards::read(node, "`when`", cx));
        if is_default {
            default_spans.push(item.span);
        }
        if is_default == when.is_some() {
            let message = if is_default {
                "the default branch is taken if no other one is, and has no `when`"
            } else {
                "a branch needs `when`, or `default: true`"
            };
            cx.report.add(Finding::new(BRANCH_WHEN, item.span, message));
            continue;
        }
        let Some(to) = to else { continue };
        let route = |guard| Route { to, trigger: Trigger::Auto, guard, label, span: item.span };
        if is_default {
            defaults.push(route(Condition::Always));
        } else {
            routes.extend(guard.map(route));
        }
    }
    let wrong = match default_spans.as_slice() {
        [_] => None,
        [] => Some((node.span, "has no branch with `default: true`")),
        [_, second, ..] => Some((*second, "has another default branch already")),
    };
    if let Some((span, fault)) = wrong {
        let message = format!("the condition {} {fault}", quoted(step));
        cx.report.add(Finding::new(DEFAULT_BRANCH, span, message));
    }
    routes.extend(defaults);
    routes
}
