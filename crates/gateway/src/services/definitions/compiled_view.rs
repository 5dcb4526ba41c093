//! The view of a compiled machine.

use switchward_machine::{ActKind, Machine, Target};

use crate::convert::json;

/// A machine for people and tools to read: its nodes, and the targets of their answers.
pub(super) fn compiled_view(machine: &Machine) -> prost_types::Struct {
    let name = |target: &Target| match target {
        Target::Node(ix) => machine.node(*ix).map(|node| node.name.clone()).unwrap_or_default(),
        Target::End(ending) => format!("end: {:?}", ending.outcome).to_lowercase(),
    };
    let nodes = machine.nodes.iter().map(|node| {
        let exits = node.exits.iter().map(|exit| {
            let on = match exit.answer() {
                Some(answer) => ("answer", json::text(answer)),
                None => ("by", json::text(&exit.label)),
            };
            let exit = [on, ("to", json::text(&name(&exit.to)))];
            prost_types::Value { kind: Some(prost_types::value::Kind::StructValue(json::members(exit))) }
        });
        let acts = node.acts.iter().map(|act| {
            json::text(match act.kind {
                ActKind::Ask(_) => "ask",
                ActKind::Do(_) => "do",
                ActKind::Work(_) => "work",
                ActKind::Wait(_) => "wait",
                ActKind::Decide(_) => "decide",
                ActKind::Spawn(_) => "spawn",
            })
        });
        let members = json::members([
            ("name", json::text(&node.name)),
            ("acts", json::list(acts.collect())),
            ("exits", json::list(exits.collect())),
        ]);
        prost_types::Value { kind: Some(prost_types::value::Kind::StructValue(members)) }
    });
    let start = machine.node(machine.start).map_or("", |node| node.name.as_str());
    json::members([("start", json::text(start)), ("nodes", json::list(nodes.collect()))])
}
