//! A reply comes by mail. Source: workflows, *Approval State* and *Wait State*; semantics §4b-5 and -6, §7. Only who was
//! written to counts, and only where the sender is proved; what anybody else writes is recorded and moves nothing.

use serde_json::json;
use switchward_expr::{Verdict, classify as sorted, decision_line, own_text};
use switchward_machine::kept::WAIT;
use switchward_machine::{ActKind, Decision, GateSpec, OpenId, Port, Resolve, RunId, Wait, WaitOn};

use super::classify;
use super::decide_gate::{self, Granting};
use crate::command::{DecideGate, RecordReply};
use crate::data::keep_below;
use crate::event::{Flow, Writer};
use crate::gates::{self, Ruling};
use crate::limits::{ADDRESS_BYTES_MAX, MAIL_BYTES_MAX, NOTE_BYTES_MAX, REPLY_BYTES_MAX};
use crate::period;
use crate::state::{Closed, Due, Open, Resolution, ThingBody, Via};
use crate::tasks::{self, Given};
use crate::turn::{Stop, Turn, check_text, ended};
use crate::votes::{self, Cast};
use crate::{Event, Key, MailToken, Reason, Rejection, Reply, ViewError, Way};

/// What a reply is about.
enum About {
    /// An open gate that addresses its sender.
    Gate(OpenId, Box<Open>),
    /// A wait for somebody whom the run has written to.
    Wait(OpenId),
    /// The same, and nothing proves that its sender wrote it.
    Unproved(OpenId, Box<Open>),
    /// An open gate at which its sender was asked anew since.
    Old(OpenId, Box<Open>),
    /// A gate that is closed.
    Late(OpenId, Box<Closed>),
    /// Nothing here.
    Nothing,
}

pub(super) fn run(turn: &mut Turn<'_, '_>, reply: &RecordReply) -> Result<Reply, Stop> {
    let session = turn.session()?;
    let leaf = turn.leaf()?;
    turn.expect_sequence(&session)?;
    let about = match &reply.token {
        Some(token) => by_token(turn, leaf, reply, token)?,
        None if reply.authenticated => newest(turn, leaf, &reply.from)?,
        None => About::Nothing,
    };
    if session.status.ended() && !matches!(about, About::Late(..)) {
        return Err(ended(&session).into());
    }
    drop(session);
    if reply.token.is_none() {
        super::conversation(turn, leaf)?;
    }
    check_text("text", &reply.text, MAIL_BYTES_MAX)?;
    check_text("from", &reply.from, ADDRESS_BYTES_MAX)?;
    check_text("evidence", &reply.evidence, NOTE_BYTES_MAX)?;
    if reply.from.trim().is_empty() || reply.from.chars().any(char::is_control) {
        let message = format!("{:?} is no address", reply.from);
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "from").into());
    }
    let own = own_words(&reply.text);
    // What the ledger or a cap refuses is refused before anything is recorded.
    let grant = match &about {
        About::Gate(gate, open) => granting(turn, *gate, open, reply, &own),
        About::Wait(_) | About::Unproved(..) | About::Old(..) | About::Late(..) | About::Nothing => Ok(None),
    };
    let (grant, full) = match grant {
        Ok(grant) => (grant, None),
        // There is no room for the call, and the gate stays open: that is told whoever brought a token.
        Err(Stop::Refused(no)) if reply.token.is_some() && no.reason.is_limit() => (None, Some(no.message)),
        Err(stop) => return Err(stop),
    };
    turn.emit(Flow::ReplyRecorded {
        run: leaf,
        from: reply.from.clone(),
        text: own.clone(),
        authenticated: reply.authenticated,
        about: match &about {
            About::Gate(id, _)
            | About::Wait(id)
            | About::Unproved(id, _)
            | About::Old(id, _)
            | About::Late(id, _) => Some(*id),
            About::Nothing => None,
        },
        evidence: reply.evidence.clone(),
    })?;
    let mail = Mail { from: &reply.from, own: &own, model: reply.model };
    match about {
        About::Gate(gate, open) if full.is_some() => {
            let said =
                format!("Your approval has come and cannot be given now: {}.", full.unwrap_or_default());
            told_open(turn, gate, &open, &reply.from, &said)?;
        }
        About::Gate(gate, open) => at_gate(turn, gate, &open, &mail, grant)?,
        About::Unproved(gate, open) => told_open(turn, gate, &open, &reply.from, UNPROVED)?,
        About::Old(gate, open) => told_open(turn, gate, &open, &reply.from, OLD)?,
        About::Wait(thing) => at_wait(turn, leaf, thing, &mail)?,
        About::Late(gate, closed) => late(turn, leaf, gate, &closed, &reply.from)?,
        About::Nothing => {}
    }
    turn.moved()
}

/// What a token is about, for whom it was made.
fn by_token(turn: &Turn<'_, '_>, leaf: RunId, reply: &RecordReply, token: &MailToken) -> Result<About, Stop> {
    let (id, from) = (turn.session_id()?, reply.from.as_str());
    if !turn.made(token, Way::Reply, from)? {
        // One that was made for somebody else was passed on; one that was made for nobody is no token.
        return if known(turn, leaf, token)? { Ok(About::Nothing) } else { Err(no_token().into()) };
    }
    if token.about.0 == 0 {
        return Ok(waits_for(turn, leaf, from)?.map_or(About::Nothing, About::Wait));
    }
    if let Some(closed) = turn.rows.closed_at(&Key::closed(turn.tenant(), id, token.about))? {
        let known = closed.open.gate.wrote_to(from);
        return Ok(if known {
            About::Late(token.about, Box::new(Closed::clone(&closed)))
        } else {
            About::Nothing
        });
    }
    let Some(open) = turn.rows.open(turn.tenant(), id, token.about)? else { return Ok(About::Nothing) };
    let round = open.gate.asked.as_ref().and_then(|asked| asked.round_of(from));
    let (gate, open) = (token.about, Box::new(Open::clone(&open)));
    Ok(match round {
        None => About::Nothing,
        // Who asked cannot decide, whichever way it is said.
        Some(_) if is_own(turn, &open, from)? => About::Nothing,
        Some(round) if round != token.round => About::Old(gate, open),
        Some(_) if !reply.authenticated => About::Unproved(gate, open),
        Some(_) => About::Gate(gate, open),
    })
}

fn no_token() -> Rejection {
    Rejection::new(Reason::CredentialInvalid, "the mail's token is not valid")
}

/// Whether a token was made for anybody whom this session has written to.
fn known(turn: &Turn<'_, '_>, leaf: RunId, token: &MailToken) -> Result<bool, Stop> {
    let (tenant, id) = (turn.tenant(), turn.session_id()?);
    let asked = match turn.rows.open(tenant, id, token.about)? {
        Some(open) => open.gate.asked.as_ref().map(|asked| asked.to.clone()),
        None => {
            let closed = turn.rows.closed_at(&Key::closed(tenant, id, token.about))?;
            closed.and_then(|closed| closed.open.gate.asked.as_ref().map(|asked| asked.to.clone()))
        }
    };
    let to = match asked {
        Some(to) => to,
        None => turn.run(leaf)?.mailed.clone(),
    };
    Ok(turn.made_for(token, Way::Reply, &to)?.is_some())
}

fn is_own(turn: &Turn<'_, '_>, open: &Open, from: &str) -> Result<bool, Stop> {
    Ok(open.gate.kind.needs_another() && turn.directory()?.one_person(&open.gate.requester, from))
}

/// The writer's own words, as much of them as is kept.
pub(crate) fn own_words(text: &str) -> String {
    cut(&own_text(text), REPLY_BYTES_MAX)
}

/// The newest request that is open and was sent to this address, else the newest that was.
fn newest(turn: &Turn<'_, '_>, leaf: RunId, from: &str) -> Result<About, Stop> {
    let (session, id) = (turn.session()?, turn.session_id()?);
    let wait = waits_for(turn, leaf, from)?;
    for gate in session.opens.iter().rev() {
        let Some(open) = turn.rows.open(turn.tenant(), id, *gate)? else { continue };
        if open.gate.wrote_to(from) && !is_own(turn, &open, from)? && wait.is_none_or(|wait| wait < *gate) {
            return Ok(About::Gate(*gate, Box::new(Open::clone(&open))));
        }
    }
    if let Some(thing) = wait {
        return Ok(About::Wait(thing));
    }
    for gate in session.answered.iter().rev() {
        let Some(closed) = turn.rows.closed_at(&Key::closed(turn.tenant(), id, *gate))? else { continue };
        if closed.open.gate.wrote_to(from) {
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

/// What a reply's first line decides at a gate; nothing where it decides nothing.
pub(crate) fn decision_of(spec: &GateSpec, own: &str) -> Option<Decision> {
    let phrases =
        |decision| spec.inquiry.as_ref().map(|inquiry| inquiry.phrases_of(decision)).unwrap_or_default();
    let (approve, refuse) = (phrases(Decision::Approve), phrases(Decision::Refuse));
    match decision_line(own, approve, refuse, phrases(Decision::Discuss)) {
        Verdict::Approve => Some(Decision::Approve),
        Verdict::Reject => Some(Decision::Refuse),
        Verdict::Undecided => None,
    }
}

/// What a reply grants that approves a call.
fn granting(
    turn: &Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    reply: &RecordReply,
    own: &str,
) -> Result<Option<Granting>, Stop> {
    let spec = gates::spec_of(turn, open)?;
    let Some(decision) = decision_of(&spec, own) else { return Ok(None) };
    if spec.resolve(decision) != Some(&Resolve::Grant) {
        return Ok(None);
    }
    let (limits, shown) = (reply.limits.clone(), open.gate.shown());
    let decide = DecideGate { gate, decision, comment: String::new(), shown, limits, proof: None };
    Ok(Some(decide_gate::granting(turn, &decide, open)?))
}

fn at_gate(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    mail: &Mail<'_>,
    grant: Option<Granting>,
) -> Result<(), Stop> {
    let spec = gates::spec_of(turn, open)?;
    if spec.resolve(Decision::Answer).is_some() {
        return at_task(turn, gate, open, mail);
    }
    let decision = match decision_of(&spec, mail.own) {
        Some(decision) => decision,
        None => {
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
    let ruling = Ruling { decision, by, comment, via: Via::Mail };
    let cast = votes::cast(turn, gate, open, &ruling)?;
    let asked = open.gate.asked.as_ref();
    match (cast, asked) {
        (Cast::Decides, _) => decide(turn, gate, open, ruling, grant),
        (Cast::Counts(so_far), Some(asked)) => {
            let said = receipt(turn, gate, open, decision)?;
            let said = format!("{said}\nIt counts, and the request is still open: {so_far}.");
            gates::tell(turn, open.run, gate, asked, mail.from, said)
        }
        (Cast::Again(_, so_far), Some(asked)) => {
            let said = format!("{AGAIN}\nThe request is still open: {so_far}.");
            gates::answer(turn, open.run, gate, asked, mail.from, said)
        }
        (Cast::Counts(_) | Cast::Again(..), None) => Ok(()),
    }
}

const AGAIN: &str = "You have approved this request before, and that counts once: approving again changes nothing. To stop \
    it, reply with a first line that says no more than \"reject\".";

/// What somebody is told whose reply has decided, or was passed on.
fn receipt(turn: &Turn<'_, '_>, gate: OpenId, open: &Open, decision: Decision) -> Result<String, Stop> {
    let (session, at) = (turn.session_id()?, period::text(turn.now()));
    let said = match decision {
        Decision::Discuss => PASSED_ON.to_owned(),
        Decision::Approve | Decision::Refuse | Decision::Answer => {
            format!("Your decision is recorded: {}.", decision.word(open.gate.kind))
        }
    };
    Ok(format!("{said}\nReceipt: gate {} of {session}, {at}.", gate.0))
}

const PASSED_ON: &str = "Your reply was passed on as a question: nothing is approved by it, and this request is closed. \
    Where a decision is still needed, you will be asked anew.";

/// Somebody wrote who may decide, but not so.
fn told_open(turn: &mut Turn<'_, '_>, gate: OpenId, open: &Open, from: &str, said: &str) -> Result<(), Stop> {
    let Some(asked) = &open.gate.asked else { return Ok(()) };
    gates::answer(turn, open.run, gate, asked, from, said.to_owned())
}

const UNPROVED: &str = "Your reply has come, and nothing is decided by it: it could not be verified that it was sent by \
    you.\nPlease confirm your decision on the decision page.";

const OLD: &str = "Your reply is to an earlier mail of this request, and nothing is decided by it: you were asked anew \
    since.\nPlease reply to the newest mail.";

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

/// Somebody's reply decides, and she is told.
pub(super) fn decide(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    ruling: Ruling,
    grant: Option<Granting>,
) -> Result<(), Stop> {
    let spec = gates::spec_of(turn, open)?;
    let resolve = spec.resolve(ruling.decision);
    let resolve = resolve.ok_or_else(|| ViewError("the gate does not take a reply's decision".into()))?;
    // It is told first: what the decision does may end the session.
    if let Some(asked) = &open.gate.asked {
        let said = receipt(turn, gate, open, ruling.decision)?;
        gates::tell(turn, open.run, gate, asked, &ruling.by, said)?;
    }
    gates::close(turn, gate, open, &ruling)?;
    if let Some(grant) = grant {
        decide_gate::make_grant(turn, open.run, gate, grant)?;
    }
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
        return decide(
            turn,
            gate,
            open,
            Ruling { decision: Decision::Discuss, by, comment, via: Via::Mail },
            None,
        );
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
            let all = closed.open.gate.approved_by().join(", ");
            let all = if all.is_empty() { all } else { format!(" (approved by {all})") };
            format!("{by} decided before: {}{all}", decision.word(closed.open.gate.kind))
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
