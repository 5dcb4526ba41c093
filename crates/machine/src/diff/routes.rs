//! Routes: what takes an exit, where it leads, what must hold, and who is asked before.

use super::pairing::pair;
use super::people::has_gate;
use super::{Both, Change, Difference, Part, Sides, acts, gate_of, name_of, people, variant};
use crate::{Exit, Guard, Machine, Node, Target, Trigger};

pub(super) fn compare(sides: &mut Sides<'_>, before: &Node, after: &Node) {
    let (one, other) = (Keys::of(sides.before, before), Keys::of(sides.after, after));
    let passes = [(one.whole, other.whole), (one.routes, other.routes), (one.triggers, other.triggers)];
    let exits = pair(&passes);
    for at in &exits.removed {
        let exit = &before.exits[*at];
        let text = route(sides.before, exit);
        let difference = Difference::new(Part::Route, Change::Removed, "route").state(&before.name);
        sides.add(difference.text(text));
    }
    let gated = has_gate(sides.before, before);
    for at in &exits.added {
        let exit = &after.exits[*at];
        let text = route(sides.after, exit);
        let difference = Difference::new(Part::Route, Change::Added, "route").state(&before.name);
        sides.add(difference.text(text).weaker_if(gated && exit.hold.is_none()));
        let gate = gate_of(sides.after, exit.hold);
        people::compare(sides, Some(&before.name), &approval(exit), Both { before: None, after: gate });
    }
    if exits.is_reordered() {
        let difference = Difference::changed(Part::Route, "order of the routes").state(&before.name);
        sides.add(difference.weaker_if(true));
    }
    for (one, other) in exits.both {
        compare_exits(sides, before, &before.exits[one], &after.exits[other]);
    }
}

/// What exits of one node are recognised by, in their order.
struct Keys {
    /// All but the gates.
    whole: Vec<String>,
    /// What takes them, and where they lead.
    routes: Vec<String>,
    /// What takes them.
    triggers: Vec<String>,
}

impl Keys {
    fn of(machine: &Machine, node: &Node) -> Self {
        let exits = || node.exits.iter();
        let whole =
            exits().map(|exit| format!("{} {:?} {:?}", route(machine, exit), exit.guard, exit.ops)).collect();
        let routes = exits().map(|exit| route(machine, exit)).collect();
        Self { whole, routes, triggers: exits().map(trigger).collect() }
    }
}

fn compare_exits(sides: &mut Sides<'_>, node: &Node, before: &Exit, after: &Exit) {
    let state = node.name.as_str();
    let changed = |what: &str| {
        Difference::changed(Part::Route, format!("{what} of the route {}", trigger(before))).state(state)
    };
    let (from, to) = (target(sides.before, &before.to), target(sides.after, &after.to));
    let weaker = leads_to_gate(sides.before, before) && !leads_to_gate(sides.after, after);
    sides.unequal(&from, &to, || changed("target").texts(from.as_str(), to.as_str()).weaker_if(weaker));
    sides.unequal(&before.on, &after.on, || {
        changed("trigger").texts(format!("{:?}", before.on), format!("{:?}", after.on)).weaker_if(true)
    });
    sides.unequal(&before.guard, &after.guard, || {
        let texts = (guard(before), guard(after));
        changed("guard").texts(texts.0, texts.1).weaker_if(!is_stricter(&before.guard, &after.guard))
    });
    if before.guard == after.guard {
        sides.unequal(&before.label, &after.label, || {
            changed("label").texts(before.label.as_str(), after.label.as_str())
        });
    }
    let (one, other) = (gate_of(sides.before, before.hold), gate_of(sides.after, after.hold));
    let gates = Both { before: one, after: other };
    people::compare(sides, Some(state), &approval(before), gates);
    let subject = format!("operations of the route {}", trigger(before));
    let ops = Both { before: before.ops.as_slice(), after: after.ops.as_slice() };
    acts::operations(sides, state, ops, &subject);
    let mut same = before.clone();
    same.on.clone_from(&after.on);
    same.to.clone_from(&after.to);
    same.hold = after.hold;
    same.ops.clone_from(&after.ops);
    same.guard.clone_from(&after.guard);
    same.label.clone_from(&after.label);
    sides.unequal(&same, after, || changed("other settings").weaker_if(true));
}

/// What is asked before an exit is taken.
fn approval(exit: &Exit) -> String {
    format!("approval of the route {}", trigger(exit))
}

/// What takes an exit.
fn trigger(exit: &Exit) -> String {
    match (exit.answer(), &exit.on) {
        (Some(answer), _) => format!("answer {answer}"),
        (None, Trigger::Port(port)) => format!("port {}", port.word()),
        (None, on) => variant(on),
    }
}

fn target(machine: &Machine, target: &Target) -> String {
    match target {
        Target::Node(node) => name_of(machine, *node).to_owned(),
        Target::End(ending) => match ending.reason {
            Some(reason) => format!("end: {} ({reason:?})", ending.outcome.status().word()),
            None => format!("end: {}", ending.outcome.status().word()),
        },
    }
}

fn route(machine: &Machine, exit: &Exit) -> String {
    format!("{} -> {}", trigger(exit), target(machine, &exit.to))
}

/// A guard in the words of the exit's label, or as it is.
fn guard(exit: &Exit) -> String {
    match (&exit.guard, exit.label.as_str()) {
        (Guard::Always, _) => "none".to_owned(),
        (guard, "") => format!("{guard:?}"),
        (_, label) => label.to_owned(),
    }
}

/// Whether a person decides in the state that an exit leads to.
fn leads_to_gate(machine: &Machine, exit: &Exit) -> bool {
    let Target::Node(to) = exit.to else { return false };
    machine.node(to).is_some_and(|node| has_gate(machine, node))
}

/// Returns true if the guard after certainly asks for all that the guard before asks for.
fn is_stricter(before: &Guard, after: &Guard) -> bool {
    let (one, other) = (terms(before), terms(after));
    one.iter().all(|term| other.contains(term))
}

/// The guards that must all hold.
fn terms(guard: &Guard) -> &[Guard] {
    if let Guard::All(all) = guard {
        return all;
    }
    if *guard == Guard::Always { &[] } else { std::slice::from_ref(guard) }
}
