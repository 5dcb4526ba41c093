//! Nodes: what they do, and how they are left. See `docs/formats-native.md#nodes`.

use switchward_machine::limits::NAME_BYTES_MAX;

use super::model::{Kind, Route, Step};
use super::opened::{self, Opened, leads_on};
use super::reader::Reader;
use super::routes::Owner;
use super::{calls, fan, person, routes, work};
use crate::codes::{FINAL_EXITS, NO_EXITS};
use crate::document::{Key, Node};
use crate::{Finding, quoted, shape};

/// A node of the process itself.
pub(super) fn step<'a>(key: &'a Key, node: &'a Node, cx: &mut Reader<'a, '_>) -> Step<'a> {
    shape::is_name(&key.text, "the name of a node", NAME_BYTES_MAX, key.span, cx.report);
    let mut step = Step {
        name: &key.text,
        span: key.span,
        type_span: node.get("type").map_or(key.span, |node| node.span),
        writes: Vec::new(),
        retries: 0,
        kind: Kind::Unread,
        routes: Vec::new(),
    };
    let Some(opened) = opened::open(node, cx) else { return step };
    step.retries = opened.retries;
    step.kind = kind(&opened, cx);
    step.routes = exits(&key.text, &opened, cx);
    step.writes = opened.writes.iter().map(|listed| listed.name).collect();
    step
}

/// What a node does, by its type.
pub(super) fn kind<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    match opened.word {
        "tool" => work::tool(opened, cx),
        "interaction" => work::interaction(opened, cx),
        "agent" => work::agent(opened, cx),
        "script" => work::script(opened, cx),
        "process" => calls::call(opened, cx),
        "human_task" => person::task(opened, cx),
        "foreach" => fan::foreach(opened, cx),
        "branch" => fan::branch(opened, cx),
        "condition" => Kind::Condition,
        _ => Kind::Final,
    }
}

/// The exits of a node of the process itself.
fn exits<'a>(name: &str, opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Vec<Route<'a>> {
    let fields = &opened.fields;
    match opened.word {
        "final" => {
            for key in ["transitions", "branches"] {
                let Some(node) = fields.optional(key) else { continue };
                if leads_on(node) {
                    let message = format!("the node {} is final and cannot be left", quoted(name));
                    let finding = Finding::new(FINAL_EXITS, node.span, message);
                    cx.report.add(finding.hint("remove them, or give the node another type"));
                }
            }
            Vec::new()
        }
        "condition" => {
            let branches = fields.required("branches", cx.report);
            branches.map(|node| routes::cases(node, name, cx)).unwrap_or_default()
        }
        word => {
            let owner = match word {
                "agent" => Owner::Agent,
                "human_task" => Owner::Person,
                _ => Owner::Other,
            };
            let Some(node) = fields.optional("transitions") else {
                no_exits(name, opened.node, cx);
                return Vec::new();
            };
            if node.as_list().is_some_and(<[_]>::is_empty) {
                no_exits(name, node, cx);
            }
            routes::transitions(node, name, owner, cx)
        }
    }
}

fn no_exits(name: &str, at: &Node, cx: &mut Reader<'_, '_>) {
    let message = format!("the node {} has no transitions, and is not final", quoted(name));
    let finding = Finding::new(NO_EXITS, at.span, message);
    cx.report.add(finding.hint("add `transitions`; a run ends in a node of the type `final`"));
}
