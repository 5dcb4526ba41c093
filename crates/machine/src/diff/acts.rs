//! The bodies of states: what is done, and what it writes.

use super::people::gates_of_body;
use super::{Both, Difference, Part, Sides, listed, people, variant};
use crate::{Act, ActKind, Callee, CalleeIx, Decide, FixedChild, Kids, Machine, Node, Op, Spawn, Work};

pub(super) fn compare(sides: &mut Sides<'_>, before: &Node, after: &Node) {
    let name = before.name.as_str();
    let kinds = |node: &Node| listed(node.acts.iter().map(|act| variant(&act.kind)));
    let (one, other) = (kinds(before), kinds(after));
    sides.unequal(&one, &other, || {
        Difference::changed(Part::State, "body").state(name).texts(one.as_str(), other.as_str())
    });
    decisions(sides, before, after);
    for (one, other) in before.acts.iter().zip(&after.acts) {
        compare_acts(sides, name, one, other);
    }
    if before.turns != after.turns {
        sides.add(Difference::changed(Part::State, "turns of the agent").state(name));
    }
}

/// The gates that the bodies open, in the order of their acts.
fn decisions(sides: &mut Sides<'_>, before: &Node, after: &Node) {
    let (one, other) = (gates_of_body(sides.before, before), gates_of_body(sides.after, after));
    for at in 0..one.len().max(other.len()) {
        let gates = Both { before: one.get(at).copied(), after: other.get(at).copied() };
        people::compare(sides, Some(&before.name), "decision", gates);
    }
}

fn compare_acts(sides: &mut Sides<'_>, state: &str, before: &Act, after: &Act) {
    match (&before.kind, &after.kind) {
        (ActKind::Do(one), ActKind::Do(other)) => {
            operations(sides, state, Both { before: one.as_slice(), after: other.as_slice() }, "operations");
        }
        (ActKind::Work(one), ActKind::Work(other)) => work(sides, state, one, other),
        (ActKind::Spawn(one), ActKind::Spawn(other)) => spawn(sides, state, one, other),
        (ActKind::Decide(one), ActKind::Decide(other)) => decide(sides, state, *one, *other),
        (one, other) => {
            let same_kind = variant(one) == variant(other);
            if same_kind && one != other {
                let subject = variant(one);
                let texts = (format!("{one:?}"), format!("{other:?}"));
                let difference = Difference::changed(Part::State, subject).state(state);
                sides.add(difference.texts(texts.0, texts.1));
            }
        }
    }
    sides.unequal(&before.then, &after.then, || {
        Difference::changed(Part::State, "order of the body").state(state).weaker_if(true)
    });
}

/// Compares operations; `subject` says where they are.
pub(super) fn operations(sides: &mut Sides<'_>, state: &str, ops: Both<&[Op]>, subject: &str) {
    let (one, other) = (writes(ops.before), writes(ops.after));
    sides.unequal(&one, &other, || {
        let subject = format!("writes of the {subject}");
        let difference = Difference::changed(Part::Writes, subject).state(state);
        difference.texts(listed(&one), listed(&other))
    });
    if one == other && ops.before != ops.after {
        let texts = (format!("{:?}", ops.before), format!("{:?}", ops.after));
        let difference = Difference::changed(Part::State, subject).state(state);
        sides.add(difference.texts(texts.0, texts.1));
    }
}

/// What operations write.
fn writes(ops: &[Op]) -> Vec<String> {
    let mut found = Vec::new();
    let mut left: Vec<&Op> = ops.iter().rev().collect();
    while let Some(op) = left.pop() {
        if let Op::Write(write) = op {
            found.push(format!("{} = {}", write.key, write.value));
        } else if let Op::Convert(convert) = op {
            found.push(format!("{} = {} of {}", convert.into, variant(&convert.how), convert.from.as_str()));
        } else if let Op::Each(each) = op {
            left.extend(each.ops.iter().rev());
        }
    }
    found
}

fn work(sides: &mut Sides<'_>, state: &str, before: &Work, after: &Work) {
    sides.unequal(&before.accept, &after.accept, || {
        let text =
            |work: &Work| work.accept.as_ref().map_or("nothing".into(), |accept| format!("{accept:?}"));
        let difference = Difference::changed(Part::Writes, "result of the work").state(state);
        difference.texts(text(before), text(after)).weaker_if(after.accept.is_some())
    });
    let same = Work { accept: after.accept.clone(), ..before.clone() };
    sides.unequal(&same, after, || {
        let texts = (format!("{same:?}"), format!("{after:?}"));
        Difference::changed(Part::State, "work").state(state).texts(texts.0, texts.1)
    });
}

fn spawn(sides: &mut Sides<'_>, state: &str, before: &Spawn, after: &Spawn) {
    let (one, other) = (called(sides.before, before), called(sides.after, after));
    sides.unequal(&one, &other, || {
        Difference::changed(Part::State, "call").state(state).texts(one.as_str(), other.as_str())
    });
    sides.unequal(&before.input, &after.input, || {
        let texts = (format!("{:?}", before.input), format!("{:?}", after.input));
        Difference::changed(Part::Writes, "input of the call").state(state).texts(texts.0, texts.1)
    });
    sides.unequal(&before.result, &after.result, || {
        let texts = (format!("{:?}", before.result), format!("{:?}", after.result));
        let difference = Difference::changed(Part::Writes, "result of the call").state(state);
        difference.texts(texts.0, texts.1)
    });
    let same = Spawn { input: after.input.clone(), result: after.result.clone(), ..without_index(before) };
    sides.unequal(&same, &without_index(after), || {
        Difference::changed(Part::State, "children").state(state).weaker_if(true)
    });
}

/// What is called, by name and version.
fn called(machine: &Machine, spawn: &Spawn) -> String {
    let callee = match &spawn.kids {
        Kids::Call(callee) => machine.callee(*callee),
        Kids::Fixed(children) => {
            let began = |child: &FixedChild| machine.node(child.node).map_or("", |node| node.name.as_str());
            let children = children.iter().map(|child| format!("{} at {}", child.name, began(child)));
            return children.collect::<Vec<_>>().join(", ");
        }
    };
    let version = |callee: &Callee| callee.version.map(|version| format!("@{version}"));
    callee.map(|callee| format!("{}{}", callee.name, version(callee).unwrap_or_default())).unwrap_or_default()
}

/// The same with the first callee, so that only the rest is compared.
fn without_index(spawn: &Spawn) -> Spawn {
    let kids = match &spawn.kids {
        Kids::Call(_) => Kids::Call(CalleeIx(0)),
        Kids::Fixed(_) => Kids::Fixed(Vec::new()),
    };
    Spawn { kids, ..spawn.clone() }
}

fn decide(sides: &mut Sides<'_>, state: &str, before: Decide, after: Decide) {
    let text = |decide: Decide| if decide.each { "each of them" } else { "one of them" };
    sides.unequal(&before.each, &after.each, || {
        let difference = Difference::changed(Part::People, "who must decide").state(state);
        difference.texts(text(before), text(after)).weaker_if(before.each)
    });
    let mut same = before;
    same.each = after.each;
    same.gate = after.gate;
    sides.unequal(&same, &after, || {
        Difference::changed(Part::People, "decision").state(state).weaker_if(true)
    });
}
