//! A person says something at a gate. Only some gates take that as a decision:
//! `tests/corpus/conversation/sentences.tsv#7b-9`.

use switchward_machine::{Decision, Resolve};
use switchward_state::Reply;
use switchward_state::approval::{ApprovalEvent, DiscussGate};

use crate::approval::decide_gate::{has_a_say, is_meant, may_decide, not_removed, open_gate, proved, via};
use crate::approval::resolve::GateDecision;
use crate::approval::{discussion, resolve};
use crate::turn::{Stop, Turn};

/// At a gate that has no discussion it is recorded, and the gate stays open. Who asked may speak too: that decides
/// nothing. Somebody who was asked and is no longer in the directory may not.
pub(crate) fn run(turn: &mut Turn<'_, '_>, discuss: &DiscussGate) -> Result<Reply, Stop> {
    let open = open_gate(turn, discuss.gate)?;
    proved(turn, discuss.gate, &open, discuss.proof.as_ref())?;
    has_a_say(&turn.command.actor)?;
    not_removed(&turn.command.actor.subject, &open, &*turn.directory()?)?;
    is_meant(&open, discuss.shown, &discuss.comment)?;
    let (gate, by, comment) = (discuss.gate, turn.command.actor.subject.clone(), discuss.comment.clone());
    let spec = resolve::spec_of(turn, &open)?;
    match spec.resolve(Decision::Discuss) {
        None => turn.emit(ApprovalEvent::Commented { gate, by, comment })?,
        Some(Resolve::PassOn) => discussion::pass_on(turn, gate, &open, &by, comment)?,
        Some(resolve) => {
            may_decide(&turn.command.actor, &open, &*turn.directory()?)?;
            let given =
                GateDecision { decision: Decision::Discuss, by, comment, via: via(discuss.proof.as_ref()) };
            resolve::close(turn, gate, &open, &given)?;
            resolve::resolved(turn, &open, resolve)?;
        }
    }
    Ok(Reply::Gate { gate, sequence: turn.session()?.sequence, summary: None })
}
