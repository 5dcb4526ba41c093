//! States, and what is done in them.

use super::pairing::pair_by;
use super::people::{gates_of_body, has_gate};
use super::{Both, Change, Difference, Part, Sides, acts, name_of, people, routes, variant};
use crate::{Boundary, NoExit, Node};

pub(super) fn compare(sides: &mut Sides<'_>) {
    let (before, after) = (sides.before, sides.after);
    let (from, to) = (name_of(before, before.start), name_of(after, after.start));
    sides.unequal(&from, &to, || Difference::changed(Part::State, "start").texts(from, to).weaker_if(true));
    let nodes = pair_by(&before.nodes, &after.nodes, |node| node.name.clone(), |node| node.name.clone());
    for at in &nodes.removed {
        removed(sides, &before.nodes[*at]);
    }
    for at in &nodes.added {
        added(sides, &after.nodes[*at]);
    }
    for (one, other) in nodes.both {
        compare_nodes(sides, &before.nodes[one], &after.nodes[other]);
    }
}

/// A state that is gone takes its gates along.
fn removed(sides: &mut Sides<'_>, node: &Node) {
    let weaker = has_gate(sides.before, node);
    let text = format!("{} routes", node.exits.len());
    let difference = Difference::new(Part::State, Change::Removed, "state").state(&node.name);
    sides.add(difference.text(text).weaker_if(weaker));
    for gate in gates_of_body(sides.before, node) {
        people::gone(sides, &node.name, gate);
    }
}

fn added(sides: &mut Sides<'_>, node: &Node) {
    let text = format!("{} routes", node.exits.len());
    sides.add(Difference::new(Part::State, Change::Added, "state").state(&node.name).text(text));
    let after = sides.after;
    for gate in gates_of_body(after, node) {
        people::compare(sides, Some(&node.name), "decision", Both { before: None, after: Some(gate) });
    }
}

fn compare_nodes(sides: &mut Sides<'_>, before: &Node, after: &Node) {
    let name = before.name.as_str();
    let changed = |subject: &str| Difference::changed(Part::State, subject).state(name);
    sides.unequal(&(&before.text, before.dialect), &(&after.text, after.dialect), || {
        let text = |node: &Node| node.text.clone().unwrap_or_default();
        changed("text").texts(text(before), text(after))
    });
    sides.unequal(&before.attempts, &after.attempts, || {
        changed("attempts").texts(before.attempts.max.to_string(), after.attempts.max.to_string())
    });
    sides.unequal(&before.asked, &after.asked, || {
        changed("retries of the agent").texts(before.asked.max.to_string(), after.asked.max.to_string())
    });
    sides.unequal(&before.on_no_exit, &after.on_no_exit, || {
        let fails = matches!(before.on_no_exit, NoExit::Fail(_));
        let texts = (variant(&before.on_no_exit), variant(&after.on_no_exit));
        changed("end without a route").texts(texts.0, texts.1).weaker_if(fails)
    });
    sides.unequal(&before.boundary, &after.boundary, || {
        let fails = before.boundary == Boundary::Fail;
        let texts = (variant(&before.boundary), variant(&after.boundary));
        changed("after the last attempt").texts(texts.0, texts.1).weaker_if(fails)
    });
    acts::compare(sides, before, after);
    routes::compare(sides, before, after);
    let same = Node {
        text: after.text.clone(),
        dialect: after.dialect,
        attempts: after.attempts,
        asked: after.asked,
        on_no_exit: after.on_no_exit.clone(),
        boundary: after.boundary.clone(),
        acts: after.acts.clone(),
        exits: after.exits.clone(),
        ..before.clone()
    };
    sides.unequal(&same, after, || changed("other settings"));
}
