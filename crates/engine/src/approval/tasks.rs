//! Tasks: every participant is asked at a gate of their own, which one answer ends. When all have answered, the answers
//! are kept and the act is done. A part may have an escalation, as an approval has. See
//! `docs/formats-conversation.md#task`.

use serde_json::{Value, json};
use switchward_machine::{Decision, GateIx, OpenId, Port, Resolve, RunId, reserved_keys::TASKS};
use switchward_state::approval::{ApprovalEvent, Gate, GateRequest, OpenGate, Part, Resolution, Via};
use switchward_state::delivery::Purpose;
use switchward_state::limits::{NAME_FUEL, TASK_BYTES_MAX};
use switchward_state::run::{Deferral, Fault, FaultCause, Json, RecipientsProblem, Writer};
use switchward_state::session::{SessionEvent, SessionWarning};
use switchward_state::{Key, ReadRows as _, ViewError};

use crate::approval::{mails, reminders, resolve};
use crate::delivery::capacity;
use crate::delivery::messages::{Named, PARTICIPANT, People, participants, worded};
use crate::next::Next;
use crate::run::data::put_below;
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// What a participant answered, there.
const ANSWER: &str = "answer";

/// What a participant answers.
pub(crate) struct Given {
    pub(crate) answer: Value,
    pub(crate) by: String,
    pub(crate) comment: String,
    pub(crate) via: Via,
}

/// Asks everybody who takes part. What is wrong with the task asks nobody; with nobody in it, it is done.
pub(crate) fn open(turn: &mut Turn<'_, '_>, run: RunId, spec: GateIx) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let found = machine.gate(spec).ok_or_else(|| ViewError(format!("the machine has no {spec:?}")))?;
    let inquiry = found.inquiry.as_ref().ok_or_else(|| ViewError("a task says nothing".into()))?;
    let state = machine.node(at.node).map(|node| node.name.as_str()).unwrap_or_default();
    drop(at);
    let people = People::of(turn)?;
    let scope = Scope::of_run(turn, run)?;
    let composed = participants(&scope, &inquiry.message.to, &people).and_then(|Named { to, names }| {
        let composed = worded(&scope, &inquiry.message, to)?;
        Ok((composed, names))
    });
    let (composed, names) = match composed {
        Ok(composed) => composed,
        Err(fault) => return Ok(Next::Fault(fault)),
    };
    let subject = mails::subject(composed.subject.as_deref(), found.kind, state);
    let said = composed.body.len() + subject.bytes();
    if said.saturating_mul(composed.to.len()) > TASK_BYTES_MAX {
        return Ok(Next::Fault(RecipientsProblem::TaskBytes.into()));
    }
    if composed.to.is_empty() {
        let warning = SessionWarning::NoParticipants { state: state.to_owned() };
        turn.emit(SessionEvent::Warned { warning })?;
        return Ok(match keep(turn, run, Vec::new())? {
            None => Next::Ended(Port::Done),
            Some(fault) => Next::Fault(fault),
        });
    }
    let bytes = mails::mail_bytes(&composed.to, &subject, &composed.body);
    let excess = capacity::mails(turn, composed.to.len(), bytes)?;
    // Each gate says what its mail says.
    if let Some(fault) = excess.map(Fault::from).or(turn.budget.check_bytes(bytes.saturating_mul(2))) {
        return Ok(Next::Fault(fault));
    }
    // Each part finds out for itself which names lead to its participant.
    let looks = u64::try_from(names.len().saturating_mul(composed.to.len())).unwrap_or(u64::MAX);
    turn.fuel.spend(looks.saturating_mul(NAME_FUEL));
    if turn.fuel.is_used_up() {
        return Ok(Next::Fault(FaultCause::TurnFuel.into()));
    }
    let first = OpenId(turn.session()?.next_id);
    let part = Part { first, of: u32::try_from(composed.to.len()).unwrap_or(u32::MAX) };
    let remind = reminders::first(turn, run)?;
    let due = inquiry.rounds.as_ref().map(|rounds| turn.now().after_ms(rounds.every_ms));
    let directory = turn.directory()?;
    for (gate, person) in part.gates().zip(&composed.to) {
        let listed = directory.listed(&names, std::slice::from_ref(person));
        let asked =
            GateRequest { remind, due, listed, ..GateRequest::once(person, &subject, &composed.body) };
        let plain = Gate::open_to_all(spec, found.kind, turn.requester());
        let body = Gate { asked: Some(asked), part: Some(part), ..plain };
        turn.emit(ApprovalEvent::Opened { gate, run, body: Box::new(body) })?;
    }
    for (gate, person) in part.gates().zip(&composed.to) {
        let (to, subject, body) = (person.clone(), subject.clone(), composed.body.clone());
        turn.send(run, mails::mail(to, subject, body, gate, Purpose::Ask))?;
    }
    Ok(Next::Rest)
}

/// A participant has answered. The last answer of all ends the act; if the session is paused, on resuming.
pub(crate) fn answer(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    given: Given,
) -> Result<(), Stop> {
    let part = open.body.part.ok_or_else(|| ViewError("the gate is no part of a task".into()))?;
    let spec = resolve::spec_of(turn, open)?;
    let resolve = spec.resolve(Decision::Answer);
    let resolve = resolve.ok_or_else(|| ViewError("the gate takes no answer".into()))?;
    turn.asker = Some(open.body.requester.clone());
    let Given { answer, by, comment, via } = given;
    turn.emit(ApprovalEvent::Answered { gate, by, answer: Json(answer), comment, via })?;
    let lapse = spec.inquiry.as_ref().and_then(|inquiry| inquiry.rounds.as_ref());
    let lapse = lapse.map(|rounds| &rounds.lapse);
    over(turn, open, part, resolve, lapse)
}

/// Nobody has answered a part in time. People who are asked at another part may still answer; the last part that is over
/// ends the act.
pub(crate) fn lapsed(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    part: Part,
    lapse: &Resolve,
) -> Result<(), Stop> {
    turn.asker = Some(open.body.requester.clone());
    turn.emit(ApprovalEvent::Lapsed { gate })?;
    over(turn, open, part, lapse, Some(lapse))
}

/// Ends the act if no part is open any more: as a lapse does if any part has lapsed. What was answered is kept.
fn over(
    turn: &mut Turn<'_, '_>,
    open: &OpenGate,
    part: Part,
    resolve: &Resolve,
    lapse: Option<&Resolve>,
) -> Result<(), Stop> {
    if turn.session()?.gates().any(|one| part.has(one)) {
        return Ok(());
    }
    let resolve = match lapse {
        Some(lapse) if any_lapsed(turn, part)? => lapse,
        Some(_) | None => resolve,
    };
    let answers = answers(turn, part)?;
    match keep(turn, open.head.run, answers)? {
        None => resolve::resolved(turn, open, resolve),
        Some(fault) => resolve::now_or_later(turn, open.head.run, Deferral::Fault(fault)),
    }
}

/// Whether a part was not answered in time.
fn any_lapsed(turn: &Turn<'_, '_>, part: Part) -> Result<bool, Stop> {
    let id = turn.session_id()?;
    for gate in part.gates() {
        let closed = turn.rows.closed_at(&Key::closed(turn.tenant(), id, gate))?;
        if closed.is_some_and(|closed| matches!(closed.resolution, Resolution::Lapsed)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The answers of all, in the order in which they were asked.
fn answers(turn: &Turn<'_, '_>, part: Part) -> Result<Vec<Value>, Stop> {
    let id = turn.session_id()?;
    let mut answers = Vec::new();
    for gate in part.gates() {
        let Some(closed) = turn.rows.closed_at(&Key::closed(turn.tenant(), id, gate))? else { continue };
        let Resolution::Answered { answer, .. } = &closed.resolution else { continue };
        let asked = closed.open.body.asked.as_ref().and_then(|asked| asked.to.first());
        answers.push(json!({ PARTICIPANT: asked, ANSWER: answer.0 }));
    }
    Ok(answers)
}

/// Writes the answers down. A task whose answers the data cannot hold has failed.
fn keep(turn: &mut Turn<'_, '_>, run: RunId, answers: Vec<Value>) -> Result<Option<Fault>, Stop> {
    let full = put_below(turn, run, TASKS, Value::Array(answers), Writer::Person)?;
    Ok(full.map(Fault::from))
}
