//! Gates that people are asked at: how they open, what a resolution does, and what happens while nobody decides.
//! Sources: workflows, *Approval State* and *Approval Gates*; semantics §6.2 and §7.

use serde_json::{Value, json};
use switchward_machine::kept::APPROVAL;
use switchward_machine::{
    Channel, Content, Decision, ExitIx, GateIx, GateKind, GateSpec, Inquiry, OpenId, Resolve, Rounds, RunId,
    Status, Trigger,
};

use crate::data::{length, merge_below};
use crate::event::{Flow, VoteFact, Writer};
use crate::faults::Fault;
use crate::frozen;
use crate::limits::{ADDRESSEES_MAX, ANSWERS_MAX, EFFECT_BYTES};
use crate::messages::{Approvers, ComposedMessage, People, approvers, worded};
use crate::moves::{self, Next};
use crate::period;
use crate::reminders;
use crate::scope::Scope;
use crate::shown;
use crate::state::{Asked, Due, EffectBody, Gate, Open, Purpose, Via};
use crate::turn::{Stop, Turn};
use crate::{Event, Key, ViewError, audience, budget, tasks, votes};

/// What a person said.
pub(crate) struct Ruling {
    pub(crate) decision: Decision,
    pub(crate) by: String,
    pub(crate) comment: String,
    pub(crate) via: Via,
}

/// Returns how many bytes a gate takes: it shows what the mail says, and its recipients; the data keep the values, too.
fn gate_bytes(composed: &ComposedMessage, values: &serde_json::Map<String, Value>) -> usize {
    let size = length(&Value::Object(values.clone()));
    composed.bytes() / composed.to.len().max(1) + composed.bytes() + size
}

/// Opens a gate of the entry that a run is in, and asks its recipients. If the request is faulty, nothing is opened.
pub(crate) fn open(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    spec: GateIx,
    exit: Option<ExitIx>,
) -> Result<Option<Fault>, Stop> {
    let machine = turn.machine(&*turn.run(run)?)?;
    let found = machine.gate(spec).ok_or_else(|| ViewError(format!("the machine has no {spec:?}")))?;
    let plain = Gate { exit, ..Gate::open_to_all(spec, found.kind, turn.requester()) };
    let Some(inquiry) = &found.inquiry else {
        let gate = OpenId(turn.session()?.next_id);
        turn.emit(Event::GateOpened { gate, run, body: Box::new(plain) })?;
        return Ok(None);
    };
    let people = People::of(turn)?;
    let scope = Scope::of_run(turn, run)?;
    let Approvers { mut to, dropped } = match approvers(&scope, &inquiry.message.to, &people) {
        Ok(approvers) => approvers,
        Err(fault) => return Ok(Some(fault)),
    };
    if to.is_empty() {
        // As if nobody were named: the audience of the process is asked, else everybody with the right to decide.
        to = audience::addresses(turn, run)?;
    }
    let open = to.is_empty();
    let composed = match worded(&scope, &inquiry.message, to) {
        Ok(composed) => composed,
        Err(fault) => return Ok(Some(fault)),
    };
    let values = shown::values(&scope, &inquiry.message);
    let fault = budget::mails(turn, composed.to.len(), composed.bytes())?;
    if let Some(fault) = fault.or(turn.budget.check_bytes(gate_bytes(&composed, &values))) {
        return Ok(Some(fault));
    }
    let asked = Asked {
        to: composed.to.clone(),
        subject: composed.subject.clone().unwrap_or_default(),
        body: composed.body.clone(),
        round: 0,
        due: inquiry.rounds.as_ref().map(|rounds| turn.now().after_ms(rounds.every_ms)),
        mails: Vec::new(),
        answered: Vec::new(),
        last: Vec::new(),
        open,
        closed_notified: Vec::new(),
        bounced: Vec::new(),
        remind: reminders::first(turn, run)?,
        voting: None,
        values: (found.kind == GateKind::Approval).then(|| shown::digest(&values)),
        dropped: dropped.clone(),
        codes: Vec::new(),
    };
    if let Some(problem) = shown::record(turn, run, values, &asked)? {
        return Ok(Some(Fault::operation(problem)));
    }
    let gate = OpenId(turn.session()?.next_id);
    let (kind, subject) = (found.kind, asked.subject.clone());
    let body = votes::begun(turn, gate, run, Gate { asked: Some(asked), ..plain })?;
    turn.emit(Event::GateOpened { gate, run, body: Box::new(body) })?;
    not_asked(turn, gate, &dropped)?;
    if open {
        turn.send(run, EffectBody::Notice { gate, kind, subject })?;
    }
    for mail in composed.effects(Some(gate)) {
        turn.send(run, mail)?;
    }
    Ok(None)
}

/// Records that people whom data or the start names are not asked.
fn not_asked(turn: &mut Turn<'_, '_>, gate: OpenId, dropped: &[String]) -> Result<(), Stop> {
    if !dropped.is_empty() {
        let text = format!("gate {} does not ask {}: not in the directory", gate.0, dropped.join(", "));
        turn.emit(Event::Warned { text, of_definition: false })?;
    }
    Ok(())
}

/// The spec of an open gate.
pub(crate) fn spec_of(turn: &Turn<'_, '_>, open: &Open) -> Result<GateSpec, Stop> {
    let machine = turn.machine(&*turn.run(open.run)?)?;
    let found = machine.gate(open.gate.spec).cloned();
    Ok(found.ok_or_else(|| ViewError("the gate has no spec".into()))?)
}

/// A person has decided: the gate is closed, and what is refused is written down.
pub(crate) fn close(turn: &mut Turn<'_, '_>, gate: OpenId, open: &Open, ruling: &Ruling) -> Result<(), Stop> {
    turn.asker = Some(open.gate.requester.clone());
    turn.emit(Event::GateClosed {
        gate,
        decision: ruling.decision,
        by: ruling.by.clone(),
        comment: ruling.comment.clone(),
        via: ruling.via,
    })?;
    if ruling.decision != Decision::Refuse || open.gate.kind != GateKind::Approval {
        return Ok(());
    }
    let value = json!({
        "decision": ruling.decision.word(),
        "by": ruling.by,
        "comment": ruling.comment,
        "at": period::text(turn.now()),
    });
    if let Some(text) = merge_below(turn, open.run, APPROVAL, value, Writer::Person)? {
        turn.emit(Event::Warned { text, of_definition: false })?;
    }
    Ok(())
}

/// What the resolution of a closed gate does; if the session is paused, it happens on resuming, so that a decision is
/// never lost. Grants and denials of calls are handled separately.
pub(crate) fn resolved(turn: &mut Turn<'_, '_>, open: &Open, resolve: &Resolve) -> Result<(), Stop> {
    let exit = || open.gate.exit.ok_or_else(|| ViewError("the gate holds no exit".into()));
    let worked = if open.gate.kind == GateKind::Approval { frozen::enter(turn, open.run)? } else { None };
    let due = match resolve {
        Resolve::Grant | Resolve::Deny | Resolve::PassOn => return Ok(()),
        Resolve::Stay => {
            stay(turn, open.run, exit()?)?;
            // The state's own work was done while its people were asked.
            return worked.map_or(Ok(()), |port| now_or_later(turn, open.run, Due::Ended(port)));
        }
        Resolve::TakeHeld => Due::Take(exit()?),
        Resolve::End(ending) => Due::End(ending.clone()),
        Resolve::Settle(port) => Due::Ended(port.clone()),
    };
    now_or_later(turn, open.run, due)
}

/// It happens now, or on resuming if the session is paused.
pub(crate) fn now_or_later(turn: &mut Turn<'_, '_>, run: RunId, due: Due) -> Result<(), Stop> {
    if turn.session()?.status == Status::Suspended {
        // What a person has decided stands, and a judgement is kept with its choice.
        let kept = match (&turn.run(run)?.due, &due) {
            (Some(Due::Take(_) | Due::End(_)), _) | (Some(_), Due::Judged) => true,
            (
                Some(Due::Ended(_) | Due::Again | Due::Judged | Due::Fault { .. } | Due::Chosen(_)) | None,
                _,
            ) => false,
        };
        if !kept {
            turn.emit(Event::Deferred { run, due })?;
        }
        return Ok(());
    }
    moves::go_on(turn, run, due)
}

/// The run stays in its state. A body that ended with a port leaves by it when it next tries to.
fn stay(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<(), Stop> {
    let refused = held_port(turn, run, exit)?;
    turn.emit(Flow::Rested { run, refused })?;
    Ok(())
}

/// The port at which an exit stands, if it stands at one.
fn held_port(
    turn: &Turn<'_, '_>,
    run: RunId,
    exit: ExitIx,
) -> Result<Option<switchward_machine::Port>, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let found = machine.node(at.node).and_then(|node| node.exits.get(usize::from(exit.0)));
    Ok(match found.map(|exit| &exit.on) {
        Some(Trigger::Port(port)) => Some(port.clone()),
        Some(Trigger::Answer(_) | Trigger::Auto { .. }) | None => None,
    })
}

/// An exit is tried: it is taken, or a person is asked first.
pub(crate) fn attempt(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    exit: ExitIx,
    hold: GateIx,
    ignores: bool,
) -> Result<Next, Stop> {
    let Some(fault) = open(turn, run, hold, Some(exit))? else { return Ok(Next::Rest) };
    if !ignores {
        return Ok(Next::Fault(fault));
    }
    // An error may be ignored, and an approval that nobody was asked for may not.
    let node = turn.run(run)?.node;
    let refused = held_port(turn, run, exit)?;
    turn.emit(Flow::Faulted { run, node, code: fault.code.to_owned(), message: fault.message.clone() })?;
    let text = format!("nobody can be asked, and the state is not left: {}", fault.message);
    turn.emit(Event::Warned { text, of_definition: false })?;
    turn.emit(Flow::Rested { run, refused })?;
    Ok(Next::Rest)
}

/// Something falls due at a gate while nobody decides: its round is over, or those who were asked are reminded.
pub(crate) fn fall_due(turn: &mut Turn<'_, '_>, key: &Key, gate: OpenId) -> Result<(), Stop> {
    let over = {
        let Some(open) = turn.rows.open_at(key)? else { return Ok(()) };
        open.gate.asked.as_ref().is_some_and(|asked| asked.due.is_some_and(|due| due <= turn.now()))
    };
    if over { round_over(turn, key, gate) } else { reminders::send(turn, key, gate) }
}

/// A round of a gate is over: others are asked, too, or it lapses. Does nothing if it is closed or not over yet.
fn round_over(turn: &mut Turn<'_, '_>, key: &Key, gate: OpenId) -> Result<(), Stop> {
    let Some(open) = turn.rows.open_at(key)?.map(|open| Open::clone(&open)) else { return Ok(()) };
    let Some(asked) = open.gate.asked.as_ref().filter(|asked| asked.due.is_some_and(|due| due <= turn.now()))
    else {
        return Ok(());
    };
    let Some(Inquiry { rounds: Some(rounds), .. }) = spec_of(turn, &open)?.inquiry else { return Ok(()) };
    if asked.round < rounds.max {
        return escalate(turn, gate, open.run, asked, Some(&rounds));
    }
    if let Some(part) = open.gate.part {
        return tasks::lapsed(turn, gate, &open, part, &rounds.lapse);
    }
    turn.asker = Some(open.gate.requester.clone());
    turn.emit(Flow::GateLapsed { gate })?;
    resolved(turn, &open, &rounds.lapse)
}

/// None of a gate's recipients can be reached: its next round begins now, if it has one. If its definition has none, the
/// escalation contacts of the start or the directory are asked, once; else it stays as it is, because it can be decided
/// without a mail.
pub(crate) fn escalate_now(turn: &mut Turn<'_, '_>, gate: OpenId) -> Result<(), Stop> {
    let open = turn.rows.open(turn.tenant(), turn.session_id()?, gate)?;
    let Some(open) = open.map(|open| Open::clone(&open)) else { return Ok(()) };
    let Some(asked) = &open.gate.asked else { return Ok(()) };
    let rounds = spec_of(turn, &open)?.inquiry.and_then(|inquiry| inquiry.rounds);
    let again = match &rounds {
        Some(rounds) => asked.round < rounds.max,
        // A part of a task is one person's.
        None if asked.round > 0 || open.gate.part.is_some() => false,
        None => !turn.settled(open.run)?.escalation.value.is_empty(),
    };
    if again {
        return escalate(turn, gate, open.run, asked, rounds.as_ref());
    }
    Ok(())
}

/// Who is asked in the next round: those whom the definition names, or, if none of them counts, those whom the start or
/// the directory names. With the faults of those names.
fn contacts(
    turn: &Turn<'_, '_>,
    run: RunId,
    rounds: Option<&Rounds>,
) -> Result<(Approvers, Option<String>), Stop> {
    let (mut found, mut problem) = (Approvers { to: Vec::new(), dropped: Vec::new() }, None);
    if let Some(rounds) = rounds.filter(|rounds| !rounds.to.is_empty()) {
        match approvers(&Scope::of_run(turn, run)?, &rounds.to, &People::of(turn)?) {
            Ok(approvers) => found = approvers,
            Err(fault) => problem = Some(fault.message),
        }
    }
    if found.to.is_empty() {
        found.to = turn.directory()?.all(&turn.settled(run)?.escalation.value);
    }
    Ok((found, problem))
}

/// The contacts are asked with the words that the first were asked with.
fn escalate(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    run: RunId,
    asked: &Asked,
    rounds: Option<&Rounds>,
) -> Result<(), Stop> {
    let (Approvers { mut to, dropped }, mut problem) = contacts(turn, run, rounds)?;
    // People who have approved are not asked again.
    let directory = turn.directory()?;
    to.retain(|one| !asked.has_voted(one, &directory));
    let known = |one: &String| asked.to.iter().any(|known| known.eq_ignore_ascii_case(one));
    let mut new: Vec<String> = to.iter().filter(|one| !known(one)).cloned().collect();
    new.truncate(ADDRESSEES_MAX.saturating_sub(asked.to.len()));
    to.retain(|one| known(one) || new.contains(one));
    let bytes = mail_bytes(to.iter(), &asked.subject, &asked.body);
    if let Some(fault) = budget::mails(turn, to.len(), bytes)? {
        to.clear();
        new.clear();
        problem = Some(fault.message);
    }
    let due = rounds.map(|rounds| turn.now().after_ms(rounds.every_ms));
    turn.emit(Flow::GateEscalated { gate, to: new, due })?;
    if !dropped.is_empty() {
        not_asked(turn, gate, &dropped)?;
        turn.emit(Flow::Votes(VoteFact::Dropped { gate, who: dropped }))?;
    }
    votes::escalated(turn, gate)?;
    if let Some(problem) = problem {
        let text = format!("nobody else is asked at gate {} in its next round: {problem}", gate.0);
        turn.emit(Event::Warned { text, of_definition: false })?;
    }
    for one in to {
        turn.send(run, mail(one, asked.subject.clone(), asked.body.clone(), gate, Purpose::Ask))?;
    }
    Ok(())
}

/// A mail about a gate.
pub(crate) fn mail(to: String, subject: String, body: String, gate: OpenId, purpose: Purpose) -> EffectBody {
    let (channel, content) = (Channel::Email, Content::Text);
    let (subject, gate) = (Some(subject), Some(gate));
    EffectBody::Message { channel, to, subject, body, content, gate, purpose, head: None }
}

/// What mails to these hold, bytes.
pub(crate) fn mail_bytes<T: AsRef<str>>(to: impl IntoIterator<Item = T>, subject: &str, body: &str) -> usize {
    let one = |to: T| EFFECT_BYTES + to.as_ref().len() + subject.len() + body.len();
    to.into_iter().map(one).fold(0, usize::saturating_add)
}

/// Who wrote about a gate.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    /// The address.
    pub(crate) from: &'a str,
    /// Whether it is proved that the mail is theirs.
    pub(crate) proved: bool,
}

/// Writes back to somebody who wrote about a gate: [`ANSWERS_MAX`] times while it is open and as often when it is closed,
/// so that an autoresponder is not answered for ever; and once if the sender is not proved, so that nobody can have us
/// write to others.
pub(crate) fn answer(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    asked: &Asked,
    sender: Sender<'_>,
    body: String,
) -> Result<(), Stop> {
    let open = turn.rows.open(turn.tenant(), turn.session_id()?, gate)?.is_some();
    let list = if open { &asked.answered } else { &asked.closed_notified };
    let before = list.iter().filter(|known| known.eq_ignore_ascii_case(sender.from)).count();
    if before >= if sender.proved { ANSWERS_MAX } else { 1 } {
        return Ok(());
    }
    turn.emit(Flow::ReplyAnswered { gate, run: None, to: sender.from.to_owned() })?;
    inform(turn, run, gate, asked, sender.from, body)
}

/// The subject of what answers a mail.
pub(crate) fn again(subject: &str) -> String {
    let subject = subject.trim();
    if subject.get(..3).is_some_and(|first| first.eq_ignore_ascii_case("re:")) {
        return subject.to_owned();
    }
    format!("Re: {subject}")
}

/// Informs somebody of what came of a message about a gate.
pub(crate) fn inform(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    asked: &Asked,
    to: &str,
    body: String,
) -> Result<(), Stop> {
    let subject = again(&asked.subject);
    if let Some(fault) = budget::mails(turn, 1, mail_bytes([to], &subject, &body))? {
        return budget::unsent(turn, run, &fault);
    }
    turn.send(run, mail(to.to_owned(), subject, body, gate, Purpose::Inform))?;
    Ok(())
}
