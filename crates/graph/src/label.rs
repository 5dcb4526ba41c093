//! The condition of an exit, in words.

use switchward_machine::{Act, ActKind, Case, Exit, Guard, Node, Op, Port, Trigger};

use crate::Label;
use crate::limits::LABEL_CHARS_MAX;

/// The label of an exit: the answer, the port, or the guard.
pub(crate) fn of(node: &Node, exit: &Exit) -> Label {
    let on = match &exit.on {
        Trigger::Answer(answer) | Trigger::Agent(answer) => answer.clone(),
        Trigger::Port(port @ Port::Branch(_)) => cases(node, port),
        Trigger::Port(port) => port.word().to_owned(),
        Trigger::Auto { .. } => String::new(),
    };
    let guard = if exit.guard.is_open() { String::new() } else { describe(&exit.guard) };
    let whole = match (on.is_empty(), guard.is_empty()) {
        (false, false) => format!("{on}, if {guard}"),
        (true, true) => exit.label.clone(),
        (_, _) => format!("{on}{guard}"),
    };
    let fits = whole.chars().count() <= LABEL_CHARS_MAX || exit.label.is_empty() || !on.is_empty();
    let text = if fits { whole.clone() } else { exit.label.clone() };
    Label { text, whole }
}

/// The branch conditions that lead to this port.
fn cases(node: &Node, port: &Port) -> String {
    let mut found = Vec::new();
    for act in &node.acts {
        found_in(act, port, &mut found);
    }
    if found.is_empty() { port.word().to_owned() } else { found.join(" or ") }
}

fn found_in(act: &Act, port: &Port, found: &mut Vec<String>) {
    match &act.kind {
        ActKind::Do(ops) => ops.iter().for_each(|op| branches(op, port, found)),
        ActKind::Ask(_) | ActKind::Work(_) | ActKind::Wait(_) | ActKind::Decide(_) | ActKind::Spawn(_) => {}
    }
}

fn branches(op: &Op, port: &Port, found: &mut Vec<String>) {
    match op {
        Op::Branch(all) => {
            let condition = |case: &Case| format!("{} {} {}", case.left.as_str(), case.op.word(), case.right);
            found.extend(all.iter().filter(|case| case.port == *port).map(condition));
        }
        Op::Each(each) => each.ops.iter().for_each(|op| branches(op, port, found)),
        Op::Log(_) | Op::Write(_) | Op::Convert(_) | Op::Send(_) | Op::Next(_) | Op::Set(_) => {}
    }
}

/// A guard in words.
fn describe(guard: &Guard) -> String {
    match guard {
        Guard::Always => "always".to_owned(),
        Guard::All(all) => joined(all, " and "),
        Guard::Any(any) => joined(any, " or "),
        Guard::Present(path) => format!("has {}", path.as_str()),
        Guard::Compare { left, op, right } => format!("{} {} {right}", left.as_str(), op.word()),
        Guard::Called { tool, success: true } => format!("{tool} succeeded"),
        Guard::Called { tool, success: false } => format!("{tool} was called"),
        Guard::Confirmed(phrases) if phrases.is_empty() => "the user agrees".to_owned(),
        Guard::Confirmed(phrases) => format!("the user says {}", phrases.join(" or ")),
        Guard::Seen(key) => format!("event {key}"),
        Guard::Judge { rubric, .. } => format!("judged: {rubric}"),
        Guard::Logic(logic) => logic.as_str().to_owned(),
    }
}

fn joined(guards: &[Guard], word: &str) -> String {
    let one = |guard: &Guard| match guard {
        Guard::All(inner) | Guard::Any(inner) if inner.len() > 1 => format!("({})", describe(guard)),
        Guard::All(_)
        | Guard::Any(_)
        | Guard::Always
        | Guard::Present(_)
        | Guard::Compare { .. }
        | Guard::Called { .. }
        | Guard::Confirmed(_)
        | Guard::Seen(_)
        | Guard::Judge { .. }
        | Guard::Logic(_) => describe(guard),
    };
    guards.iter().map(one).collect::<Vec<_>>().join(word)
}

#[cfg(test)]
mod tests {
    use switchward_expr::Logic;
    use switchward_machine::{NodeIx, Target};

    use super::*;

    fn label(logic: &str, name: &str) -> Label {
        let auto = Trigger::Auto { event: false };
        let guard = Guard::Logic(Logic::guard_json(logic).unwrap());
        let exit = Exit { guard, label: name.into(), ..Exit::plain(auto, Target::Node(NodeIx(0))) };
        of(&Node::new("route", Vec::new()), &exit)
    }

    #[test]
    fn logic_is_shown_as_compact_json() {
        let short = label(r#"{ ">": [{ "var": "total" }, 1] }"#, "big");
        assert_eq!(
            (short.text.as_str(), short.whole.as_str()),
            (r#"{">":[{"var":"total"},1]}"#, r#"{">":[{"var":"total"},1]}"#)
        );
        let long = label(r#"{">":[{"var":"order.invoice.total"},100000]}"#, "big");
        assert_eq!(
            (long.text.as_str(), long.whole.as_str()),
            ("big", r#"{">":[{"var":"order.invoice.total"},100000]}"#)
        );
        let always = label("true", "always");
        assert_eq!((always.text.as_str(), always.whole.as_str()), ("always", "always"));
    }
}
