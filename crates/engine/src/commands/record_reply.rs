//! A reply comes by mail. Source: workflows, *Approval State* and *Wait State*; semantics §4b-5 and -6, §7. Only who was
//! written to counts, and only where the sender is proved; what anybody else writes is recorded and moves nothing.

use serde_json::json;
use switchward_expr::{Verdict, classify as sorted, decision_line, own_text};
use switchward_machine::kept::WAIT;
use switchward_machine::{ActKind, Decision, OpenId, Port, RunId, Wait, WaitOn};

use super::classify;
use crate::command::RecordReply;
use crate::data::keep_below;
use crate::event::{Flow, Writer};
use crate::gates::{self, Ruling};
use crate::limits::{ADDRESS_BYTES_MAX, MAIL_BYTES_MAX, NOTE_BYTES_MAX, REPLY_BYTES_MAX};
use crate::period;
use crate::state::{Closed, Due, Open, Resolution, ThingBody, Via};
use crate::tasks::{self, Given};
use crate::turn::{Stop, Turn, check_text, ended};
use crate::{Event, Key, Reason, Rejection, Reply, ViewError};

/// What a reply is about.
enum About {
    /// An open gate that addresses its sender.
    Gate(OpenId, Box<Open>),
    /// A wait for somebody whom the run has written to.
    Wait(OpenId),
    /// A gate that is closed.
    Late(OpenId, Box<Closed>),
    /// Nothing here.
    Nothing,
}

pub(super) fn run(turn: &mut Turn<'_, '_>, reply: &RecordReply) -> Result<Reply, Stop> {
    let session = turn.session()?;
    let leaf = turn.leaf()?;
    turn.expect_sequence(&session)?;
    let about = if reply.authenticated { about(turn, leaf, &reply.from)? } else { About::Nothing };
    if session.status.ended() && !matches!(about, About::Late(..)) {
        return Err(ended(&session).into());
    }
    drop(session);
    super::conversation(turn, leaf)?;
    check_text("text", &reply.text, MAIL_BYTES_MAX)?;
    check_text("from", &reply.from, ADDRESS_BYTES_MAX)?;
    if reply.from.trim().is_empty() || reply.from.chars().any(char::is_control) {
        let message = format!("{:?} is no address", reply.from);
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "from").into());
    }
    let own = cut(&own_text(&reply.text), REPLY_BYTES_MAX);
    turn.emit(Flow::ReplyRecorded {
        run: leaf,
        from: reply.from.clone(),
        text: own.clone(),
        authenticated: reply.authenticated,
        about: match &about {
            About::Gate(id, _) | About::Wait(id) | About::Late(id, _) => Some(*id),
            About::Nothing => None,
        },
    })?;
    let mail = Mail { from: &reply.from, own: &own, model: reply.model };
    match about {
        About::Gate(gate, open) => at_gate(turn, gate, &open, &mail)?,
        About::Wait(thing) => at_wait(turn, leaf, thing, &mail)?,
        About::Late(gate, closed) => late(turn, leaf, gate, &closed, &reply.from)?,
        About::Nothing => {}
    }
    turn.moved()
}

/// The newest request that is open and was sent to this address, else the newest that was.
fn about(turn: &Turn<'_, '_>, leaf: RunId, from: &str) -> Result<About, Stop> {
    let (session, id) = (turn.session()?, turn.session_id()?);
    let wait = waits_for(turn, leaf, from)?;
    for gate in session.opens.iter().rev() {
        let Some(open) = turn.rows.open(turn.tenant(), id, *gate)? else { continue };
        let meant = open.gate.asked.is_some() && open.gate.addresses(from);
        // Who asked cannot decide, whichever way it is said.
        let own = open.gate.kind.needs_another() && open.gate.requester.eq_ignore_ascii_case(from);
        if meant && !own && wait.is_none_or(|wait| wait < *gate) {
            return Ok(About::Gate(*gate, Box::new(Open::clone(&open))));
        }
    }
    if let Some(thing) = wait {
        return Ok(About::Wait(thing));
    }
    for gate in session.answered.iter().rev() {
        let Some(closed) = turn.rows.closed_at(&Key::closed(turn.tenant(), id, *gate))? else { continue };
        if closed.open.gate.addresses(from) {
            return Ok(About::Late(*gate, Box::new(Closed::clone(&closed))));
        }
    }
    Ok(About::Nothing)
}

/// The wait for a reply that this address may end.
fn waits_for(turn: &Turn<'_, '_>, run: RunId, from: &str) -> Result<Option<OpenId>, Stop> {
    if !was_written_to(turn, run, from)? {
        return Ok(None);
    }
    for thing in &turn.run(run)?.things {
        let row = turn.rows.thing_at(&Key::thing(turn.tenant(), turn.session_id()?, *thing))?;
        if row.is_some_and(|row| matches!(row.body, ThingBody::Wait { on: WaitOn::Reply, .. })) {
            return Ok(Some(*thing));
        }
    }
    Ok(None)
}

/// Whether a run has written to this address, or one that has called it, directly or through others.
fn was_written_to(turn: &Turn<'_, '_>, run: RunId, address: &str) -> Result<bool, Stop> {
    let mut next = Some(run);
    while let Some(run) = next {
        let at = turn.run(run)?;
        if at.mailed.iter().any(|known| known.eq_ignore_ascii_case(address)) {
            return Ok(true);
        }
        next = at.parent.map(|parent| parent.run);
    }
    Ok(false)
}

/// What somebody wrote.
struct Mail<'m> {
    from: &'m str,
    /// The writer's own words.
    own: &'m str,
    /// Whether a model can be asked what they mean.
    model: bool,
}

impl<'m> Mail<'m> {
    fn said(&self, gate: bool) -> classify::Said<'m> {
        classify::Said::Reply { from: self.from, own: self.own, gate }
    }
}

fn at_gate(turn: &mut Turn<'_, '_>, gate: OpenId, open: &Open, mail: &Mail<'_>) -> Result<(), Stop> {
    let spec = gates::spec_of(turn, open)?;
    if spec.resolve(Decision::Answer).is_some() {
        return at_task(turn, gate, open, mail);
    }
    let phrases =
        |decision| spec.inquiry.as_ref().map(|inquiry| inquiry.phrases_of(decision)).unwrap_or_default();
    let (approve, refuse) = (phrases(Decision::Approve), phrases(Decision::Refuse));
    let decision = match decision_line(mail.own, approve, refuse, phrases(Decision::Discuss)) {
        Verdict::Approve => Decision::Approve,
        Verdict::Reject => Decision::Refuse,
        Verdict::Undecided => {
            let discussed = spec.resolve(Decision::Discuss).is_some();
            let hinted = spec.inquiry.as_ref().is_some_and(|inquiry| inquiry.hinted);
            if mail.model && discussed && !hinted {
                let ports = [REJECTED, DISCUSSION].map(|port| (Port::Named(port.to_owned()), ()));
                return classify::ask(turn, open.run, gate, mail.said(true), &ports);
            }
            return unclear(turn, gate, open, mail.from, mail.own);
        }
    };
    let (by, comment) = (mail.from.to_owned(), comment(mail.own));
    decide(turn, gate, open, Ruling { decision, by, comment, via: Via::Mail })
}

/// What a participant writes is her answer, as it stands.
fn at_task(turn: &mut Turn<'_, '_>, gate: OpenId, open: &Open, mail: &Mail<'_>) -> Result<(), Stop> {
    let (answer, by, comment) = (mail.own.trim(), mail.from.to_owned(), String::new());
    if !answer.is_empty() {
        let given = Given { answer: answer.into(), by, comment, via: Via::Mail };
        return tasks::answer(turn, gate, open, given);
    }
    turn.emit(Event::GateDiscussed { gate, by, comment })?;
    let Some(asked) = &open.gate.asked else { return Ok(()) };
    gates::answer(turn, open.run, gate, asked, mail.from, UNANSWERED.to_owned())
}

const UNANSWERED: &str = "Your reply had no words of its own, and the request is still open.\n\
    To answer, reply with your answer above what you quote.";

/// The ports of an approval that a model may choose: never the one that approves.
pub(super) const REJECTED: &str = "rejected";
const DISCUSSION: &str = "discussion";

/// Somebody's reply decides.
pub(super) fn decide(turn: &mut Turn<'_, '_>, gate: OpenId, open: &Open, ruling: Ruling) -> Result<(), Stop> {
    let spec = gates::spec_of(turn, open)?;
    let resolve = spec.resolve(ruling.decision);
    let resolve = resolve.ok_or_else(|| ViewError("the gate does not take a reply's decision".into()))?;
    gates::close(turn, gate, open, &ruling)?;
    gates::resolved(turn, open, resolve)
}

fn at_wait(turn: &mut Turn<'_, '_>, run: RunId, thing: OpenId, mail: &Mail<'_>) -> Result<(), Stop> {
    let wait = waiting(turn, run)?;
    let port = match &wait.sort {
        None => wait.done.clone(),
        Some(sort) => match sorted(mail.own, &sort.ports).and_then(|at| sort.ports.get(at)) {
            Some((port, _)) => port.clone(),
            // Nothing says what it means: a model is asked where the author gave no phrases, else it waits on.
            None if mail.model && !sort.hinted => {
                return classify::ask(turn, run, thing, mail.said(false), &sort.ports);
            }
            None => return Ok(()),
        },
    };
    received(turn, run, thing, mail.from, mail.own, port)
}

/// The wait that a run is in.
pub(super) fn waiting(turn: &Turn<'_, '_>, run: RunId) -> Result<Wait, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let act = machine.node(at.node).and_then(|node| node.acts.get(usize::from(at.act.0)));
    match act.map(|act| &act.kind) {
        Some(ActKind::Wait(wait)) => Ok(wait.clone()),
        Some(
            ActKind::Ask(_) | ActKind::Do(_) | ActKind::Work(_) | ActKind::Decide(_) | ActKind::Spawn(_),
        )
        | None => Err(ViewError("a wait is open, and the run does not wait".into()).into()),
    }
}

/// A reply ends a wait with this port.
pub(super) fn received(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    thing: OpenId,
    from: &str,
    own: &str,
    port: Port,
) -> Result<(), Stop> {
    turn.emit(Flow::ThingClosed { thing, run })?;
    keep_below(turn, run, WAIT, json!({ "from": from, "text": own }), Writer::Person)?;
    gates::now_or_later(turn, run, Due::Ended(port))
}

/// Nothing says what a reply means, or phrases of several meanings stand in it. A state that has a discussion is left
/// through it; at every other gate the reply is noted and answered, and the gate stays open.
pub(super) fn unclear(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    from: &str,
    own: &str,
) -> Result<(), Stop> {
    let (by, comment) = (from.to_owned(), cut(own, NOTE_BYTES_MAX));
    if gates::spec_of(turn, open)?.resolve(Decision::Discuss).is_some() {
        return decide(turn, gate, open, Ruling { decision: Decision::Discuss, by, comment, via: Via::Mail });
    }
    turn.emit(Event::GateDiscussed { gate, by, comment })?;
    let Some(asked) = &open.gate.asked else { return Ok(()) };
    gates::answer(turn, open.run, gate, asked, from, UNDECIDED.to_owned())
}

const UNDECIDED: &str = "Your reply was noted, and the request is still open: nothing is decided by it.\n\
    To decide, reply with a first line that says no more than \"approve\" or \"reject\".";

/// A reply to a closed request moves nothing, and its sender is told why.
fn late(turn: &mut Turn<'_, '_>, run: RunId, gate: OpenId, closed: &Closed, from: &str) -> Result<(), Stop> {
    let Some(asked) = &closed.open.gate.asked else { return Ok(()) };
    gates::answer(turn, run, gate, asked, from, told(closed))
}

/// How a gate was closed, for somebody who wrote too late.
fn told(closed: &Closed) -> String {
    let how = match &closed.resolution {
        Resolution::Answered { .. } => "an answer had come before".to_owned(),
        Resolution::Decided { decision, by, .. } => {
            format!("{by} decided before: {}", decision.word(closed.open.gate.kind))
        }
        Resolution::Lapsed => "nobody had decided in time".to_owned(),
        Resolution::Voided => "the process had moved on".to_owned(),
    };
    let at = period::text(closed.at);
    format!("Your reply came after this request was closed, and changes nothing.\nClosed at {at}: {how}.")
}

/// What stands below the line that decides.
fn comment(own: &str) -> String {
    let mut lines = own.lines().skip_while(|line| line.trim().is_empty());
    lines.next();
    cut(lines.collect::<Vec<_>>().join("\n").trim(), NOTE_BYTES_MAX)
}

/// The beginning of a text, so many bytes of it at most.
fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
