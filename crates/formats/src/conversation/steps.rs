//! Parsed operations: those that run at once, and those that interrupt them.

use switchward_expr::{CmpOp, DataType, Path, Reducer};
use switchward_machine::{Field, NodeIx, Op, Work};

use crate::codes::SEND_RETRIED;
use crate::document::Span;
use crate::{Finding, Report};

/// One operation.
#[derive(Debug, Clone)]
pub(super) struct Step {
    /// Of its type.
    pub(super) span: Span,
    /// What it does.
    pub(super) what: What,
}

/// What an operation does.
#[derive(Debug, Clone)]
pub(super) enum What {
    /// It runs at once.
    Run(Op),
    /// It routes: the targets, case by case.
    Branch(Op, Vec<NodeIx>),
    /// It waits this many milliseconds.
    Wait(u64),
    /// It makes an HTTP request.
    Http(Work),
    /// It runs other operations for each item of a list.
    Loop {
        /// The list.
        over: Path,
        /// The item's name.
        item: String,
        /// The inner operations.
        steps: Vec<Step>,
    },
}

/// Returns true if one of them, at any depth, waits: then they cannot all run at once.
pub(super) fn waits(steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.what {
        What::Wait(_) | What::Http(_) => true,
        What::Loop { steps, .. } => waits(steps),
        What::Run(_) | What::Branch(..) => false,
    })
}

/// The states that branches route to, each once, in the author's order.
pub(super) fn targets(steps: &[Step], found: &mut Vec<NodeIx>) {
    for step in steps {
        match &step.what {
            What::Branch(_, to) => {
                for target in to {
                    if !found.contains(target) {
                        found.push(*target);
                    }
                }
            }
            What::Loop { steps, .. } => targets(steps, found),
            What::Run(_) | What::Wait(_) | What::Http(_) => {}
        }
    }
}

/// Warns of every message that a retry sends again because something after it in its list can fail. In a loop, all of
/// its operations count as after each other.
pub(super) fn warn_resent(steps: &[Step], fields: &[Field], report: &mut Report) {
    warn_resent_before(steps, fields, false, report);
}

/// Warns of those before operations of which one can fail if `fails_after`.
fn warn_resent_before(steps: &[Step], fields: &[Field], mut fails_after: bool, report: &mut Report) {
    for step in steps.iter().rev() {
        if fails_after && matches!(step.what, What::Run(Op::Send(_))) {
            let message = "this message is sent again if a later operation of the state fails and is retried";
            report.add(Finding::new(SEND_RETRIED, step.span, message).hint("send it in a state of its own"));
        }
        if let What::Loop { steps, .. } = &step.what {
            let inside = steps.iter().any(|step| can_fail(step, fields));
            warn_resent_before(steps, fields, fails_after || inside, report);
        }
        fails_after |= can_fail(step, fields);
    }
}

fn can_fail(step: &Step, fields: &[Field]) -> bool {
    match &step.what {
        What::Wait(_) => false,
        // The request may get no answer; the value to loop over may be no list.
        What::Http(_) | What::Loop { .. } => true,
        What::Branch(op, _) | What::Run(op) => match op {
            Op::Log(_) => false,
            Op::Write(write) => {
                let field = fields.iter().find(|field| field.key == write.key);
                field.is_some_and(|it| it.holds != DataType::Any || it.reducer != Reducer::Overwrite)
            }
            Op::Branch(cases) => cases.iter().any(|case| case.op == CmpOp::Matches),
            Op::Convert(_) | Op::Send(_) | Op::Each(_) | Op::Next(_) | Op::Set(_) => true,
        },
    }
}
