//! Gates that people are asked at: how they open, what a resolution does, and what happens while nobody decides.
//! See `docs/formats-conversation.md#approval` and `docs/formats-conversation.md#approval-gates`.

use serde_json::Value;
use switchward_machine::{Boundary, ExitIx, GateIx, GateKind, OpenId, RunId};
use switchward_state::ViewError;
use switchward_state::approval::{ApprovalEvent, Gate, GateRequest};
use switchward_state::delivery::{EffectBody, Purpose};
use switchward_state::run::{Fault, RunEvent, json_length};
use switchward_state::session::{SessionEvent, SessionWarning};

use crate::approval::resolve::stay;
use crate::approval::settled_people::SettledPeople;
use crate::approval::{mails, reminders, shown, votes};
use crate::delivery::capacity;
use crate::delivery::messages::{Approvers, People, approvers, worded};
use crate::next::Next;
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// Returns how many bytes a gate takes: it shows what the mail says, and its recipients; the data keep the values, too.
fn gate_bytes(mails: usize, recipients: usize, values: &serde_json::Map<String, Value>) -> usize {
    let size = json_length(&Value::Object(values.clone()));
    mails / recipients.max(1) + mails + size
}

/// Opens a gate of the entry that a run is in, and asks its recipients. If the request is faulty, nothing is opened.
pub(crate) fn open(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    spec: GateIx,
    exit: Option<ExitIx>,
) -> Result<Option<Fault>, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let state = machine.node(at.node).map(|node| node.name.as_str()).unwrap_or_default();
    drop(at);
    let found = machine.gate(spec).ok_or_else(|| ViewError(format!("the machine has no {spec:?}")))?;
    let plain = Gate { exit, ..Gate::open_to_all(spec, found.kind, turn.requester()) };
    let Some(inquiry) = &found.inquiry else {
        let gate = OpenId(turn.session()?.next_id);
        turn.emit(ApprovalEvent::Opened { gate, run, body: Box::new(plain) })?;
        return Ok(None);
    };
    let people = People::of(turn)?;
    let scope = Scope::of_run(turn, run)?;
    let Approvers { mut to, dropped, mut names } = match approvers(&scope, &inquiry.message.to, &people) {
        Ok(approvers) => approvers,
        Err(fault) => return Ok(Some(fault)),
    };
    if to.is_empty() {
        // As if nobody were named: the audience of the process is asked, else everybody with the right to decide.
        SettledPeople { to, names } = SettledPeople::audience(turn, run)?;
    }
    let listed = turn.directory()?.listed(&names, &to);
    let open = to.is_empty();
    let composed = match worded(&scope, &inquiry.message, to) {
        Ok(composed) => composed,
        Err(fault) => return Ok(Some(fault)),
    };
    let values = shown::values(&machine, &scope, &inquiry.message);
    let subject = mails::subject(composed.subject.as_deref(), found.kind, state);
    let bytes = mails::mail_bytes(&composed.to, &subject, &composed.body);
    let excess = capacity::mails(turn, composed.to.len(), bytes)?;
    let bytes = gate_bytes(bytes, composed.to.len(), &values);
    if let Some(fault) = excess.map(Fault::from).or(turn.budget.check_bytes(bytes)) {
        return Ok(Some(fault));
    }
    let asked = GateRequest {
        to: composed.to.clone(),
        due: inquiry.rounds.as_ref().map(|rounds| turn.now().after_ms(rounds.every_ms)),
        open,
        remind: reminders::first(turn, run)?,
        values: (found.kind == GateKind::Approval).then(|| shown::digest(&values)),
        dropped: dropped.clone(),
        listed,
        ..GateRequest::once("", &subject, &composed.body)
    };
    if let Some(full) = shown::record(turn, run, found.record.as_deref(), values, &asked)? {
        return Ok(Some(full.into()));
    }
    let gate = OpenId(turn.session()?.next_id);
    let kind = found.kind;
    let body = votes::begun(turn, gate, run, Gate { asked: Some(asked), ..plain })?;
    turn.emit(ApprovalEvent::Opened { gate, run, body: Box::new(body) })?;
    mails::not_asked(turn, gate, &dropped)?;
    if open {
        turn.send(run, EffectBody::Notice { gate, kind, subject: subject.clone() })?;
    }
    for person in composed.to {
        turn.send(run, mails::mail(person, subject.clone(), composed.body.clone(), gate, Purpose::Ask))?;
    }
    Ok(None)
}

/// An exit is tried: it is taken, or a person is asked first.
pub(crate) fn attempt(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    exit: ExitIx,
    hold: GateIx,
    boundary: &Boundary,
) -> Result<Next, Stop> {
    let Some(fault) = open(turn, run, hold, Some(exit))? else { return Ok(Next::Rest) };
    if !matches!(boundary, Boundary::Ignore(_)) {
        return Ok(Next::Fault(fault));
    }
    // An error may be ignored, and an approval that nobody was asked for may not.
    let node = turn.run(run)?.node;
    turn.emit(RunEvent::Faulted { run, node, fault: fault.clone() })?;
    let warning = SessionWarning::NoRecipients { fault };
    turn.emit(SessionEvent::Warned { warning })?;
    stay(turn, run, exit)?;
    Ok(Next::Rest)
}
