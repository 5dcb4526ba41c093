//! From operations to acts: operations that run at once stay together, a wait and a request are acts, and a loop with one
//! of them inside is a head to which its last act leads back. See `docs/formats-conversation-operations.md#operations`.

use switchward_machine::{Act, ActIx, ActKind, Each, Next, Op, Port, Wait, WaitOn, Work};

use super::steps::{self, Step, What};

/// The acts of a state with these operations; at least one.
pub(super) fn acts(steps: Vec<Step>) -> Vec<Act> {
    let mut body = Body { acts: Vec::new() };
    let last = body.list(steps, None, 0);
    if last.is_none() {
        body.push(ActKind::Do(Vec::new()), None);
    }
    body.acts
}

struct Body {
    acts: Vec<Act>,
}

/// An act whose port leads on, and that port.
type End = (ActIx, Port);

impl Body {
    /// Adds operations that begin where `from` ends; returns the end of the last act.
    fn list(&mut self, steps: Vec<Step>, mut from: Option<End>, level: u8) -> Option<End> {
        let mut ops = Vec::new();
        for step in steps {
            match whole(step.what) {
                Whole::Op(op) => ops.push(op),
                Whole::Wait(for_ms) => {
                    from = self.flush(&mut ops, from);
                    let wait = Wait::plain(WaitOn::Time, for_ms, Port::Done, Port::Done);
                    from = Some(self.push(ActKind::Wait(wait), from));
                }
                Whole::Work(work) => {
                    from = self.flush(&mut ops, from);
                    from = Some(self.push(ActKind::Work(work), from));
                }
                Whole::Loop { next, steps } => {
                    from = self.flush(&mut ops, from);
                    let head = self.push(ActKind::Do(vec![Op::Next(Next { level, ..next })]), from);
                    let last = self.list(steps, Some((head.0, Port::Item)), level.saturating_add(1));
                    if let Some(last) = last {
                        self.wire(last, head.0);
                    }
                    from = Some(head);
                }
            }
        }
        self.flush(&mut ops, from)
    }

    /// Makes an act of the operations that were collected.
    fn flush(&mut self, ops: &mut Vec<Op>, from: Option<End>) -> Option<End> {
        if ops.is_empty() { from } else { Some(self.push(ActKind::Do(std::mem::take(ops)), from)) }
    }

    /// Adds an act that begins where `from` ends; returns its end.
    fn push(&mut self, kind: ActKind, from: Option<End>) -> End {
        let here =
            ActIx(u16::try_from(self.acts.len()).expect("a document has fewer values than a u16 can count"));
        self.acts.push(Act { kind, then: Vec::new() });
        if let Some(from) = from {
            self.wire(from, here);
        }
        (here, Port::Done)
    }

    fn wire(&mut self, (from, port): End, to: ActIx) {
        if let Some(act) = self.acts.get_mut(usize::from(from.0)) {
            act.then.push((port, to));
        }
    }
}

/// A step as the body sees it.
enum Whole {
    Op(Op),
    Wait(u64),
    Work(Work),
    Loop { next: Next, steps: Vec<Step> },
}

fn whole(what: What) -> Whole {
    match what {
        What::Run(op) | What::Branch(op, _) => Whole::Op(op),
        What::Wait(for_ms) => Whole::Wait(for_ms),
        What::Http(work) => Whole::Work(work),
        What::Loop { over, item, steps } if steps::waits(&steps) => {
            Whole::Loop { next: Next { over, as_: item, level: 0 }, steps }
        }
        What::Loop { over, item, steps } => Whole::Op(Op::Each(Each { over, as_: item, ops: ops(steps) })),
    }
}

/// Operations without a wait or a request among them.
fn ops(steps: Vec<Step>) -> Vec<Op> {
    let op = |step: Step| match whole(step.what) {
        Whole::Op(op) => Some(op),
        Whole::Wait(_) | Whole::Work(_) | Whole::Loop { .. } => None,
    };
    steps.into_iter().filter_map(op).collect()
}
