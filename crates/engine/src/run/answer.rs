//! A checkpoint is answered. See `docs/formats-checkpoint.md#states-and-answers`.

use switchward_machine::{ExitIx, GateIx, OpenId, RunId};
use switchward_state::approval::{Gate, RequestSubject};
use switchward_state::limits::NOTE_BYTES_MAX;
use switchward_state::run::{Answer, RunEvent};
use switchward_state::{Reason, Rejection, Reply};

use crate::approval::audience;
use crate::next::Next;
use crate::turn::{Stop, Turn, check_text, not_paused};

pub(crate) fn run(turn: &mut Turn<'_, '_>, answer: &Answer) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let leaf = turn.leaf_at(answer.state.as_ref())?;
    let run = turn.run(leaf)?;
    let machine = turn.machine(&run)?;
    let node =
        machine.node(run.node).ok_or_else(|| switchward_state::ViewError("the run stands nowhere".into()))?;
    if let Some(state) = answer.state.as_ref().filter(|state| **state != node.name) {
        let message =
            format!("the session stands at {:?}, not at {state:?}; look again before you answer", node.name);
        return Err(Rejection::new(Reason::SequenceConflict, message).fact("state", &node.name).into());
    }
    if run.held.is_some() {
        let message = "a person reviews the last answer first; nothing can be answered meanwhile";
        return Err(Rejection::new(Reason::ApprovalPending, message).fact("state", &node.name).into());
    }
    not_paused(&session)?;
    let Some((exit, taken)) = node.answer(&answer.answer) else {
        let allowed: Vec<&str> = node.answers().collect();
        if allowed.is_empty() {
            let message = format!("{:?} asks no question, so nothing here takes an answer", node.name);
            return Err(Rejection::new(Reason::StateMismatch, message).fact("state", &node.name).into());
        }
        let message = format!(
            "{:?} is not an answer of {:?}; allowed: {}",
            answer.answer,
            node.name,
            allowed.join(", ")
        );
        return Err(Rejection::new(Reason::AnswerNotAllowed, message)
            .allowed(allowed)
            .fact("state", &node.name)
            .into());
    };
    check_text("note", &answer.note, NOTE_BYTES_MAX)?;
    let at = run.node;
    drop((session, run));
    turn.emit(RunEvent::Answered {
        run: leaf,
        node: at,
        answer: answer.answer.clone(),
        note: answer.note.clone(),
    })?;
    match taken.hold {
        None => turn.go(leaf, Next::Take(exit)),
        Some(spec) => {
            let (definition, state) = (machine.meta.name.clone(), node.name.clone());
            let subject = RequestSubject::Review { definition, answer: answer.answer.clone(), state };
            review(turn, leaf, spec, exit, subject)?;
        }
    }
    turn.moved()
}

/// Opens the gate that holds an exit.
fn review(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    spec: GateIx,
    exit: ExitIx,
    subject: RequestSubject,
) -> Result<(), Stop> {
    let gate = OpenId(turn.session()?.next_id);
    let machine = turn.machine(&*turn.run(run)?)?;
    let kind = machine.gate(spec).map_or(switchward_machine::GateKind::Notify, |spec| spec.kind);
    let requester = turn.command.actor.subject.clone();
    let body = Gate { exit: Some(exit), ..Gate::open_to_all(spec, kind, requester) };
    audience::open(turn, run, gate, body, subject)
}
