//! What a reply leads to, and what its writer is answered: every outcome is answered in the thread of the mail replied
//! to.

use serde_json::json;
use switchward_expr::{Verdict, classify as sorted, decision_line};
use switchward_machine::{
    ActKind, Channel, Content, Decision, GateSpec, OpenId, Port, Resolve, RunId, Wait, kept::WAIT,
};
use switchward_state::ViewError;
use switchward_state::approval::{
    ApprovalEvent, Closed, DecideGate, Open, RecordReply, Resolution, Standing, Via,
};
use switchward_state::delivery::{EffectBody, Purpose};
use switchward_state::limits::{ANSWERS_MAX, NOTE_BYTES_MAX};
use switchward_state::policy::{LimitCheck, time_text};
use switchward_state::run::{Deferral, Writer};
use switchward_state::work::WorkEvent;

use crate::approval::decide_gate::Granting;
use crate::approval::mails::{Sender, mail_bytes};
use crate::approval::resolve::Ruling;
use crate::approval::tasks::Given;
use crate::approval::votes::Cast;
use crate::approval::{classify, decide_gate, discussion, mails, resolve, tasks, votes};
use crate::delivery::capacity;
use crate::run::data::keep_below;
use crate::turn::{Stop, Turn};

/// What somebody wrote.
pub(crate) struct Mail<'m> {
    from: &'m str,
    /// The writer's own words.
    own: &'m str,
    /// Whether a model can be asked what they mean.
    model: bool,
    /// Whether it is proved that the sender wrote it.
    proved: bool,
    /// Its subject; may be empty.
    subject: &'m str,
    /// Whether it came with a token, and so from a mailbox of the sender's.
    answered: bool,
    /// What the ledgers answered, if they were asked.
    limits: Option<&'m LimitCheck>,
}

impl<'m> Mail<'m> {
    pub(crate) fn of(reply: &'m RecordReply, own: &'m str) -> Self {
        Self {
            from: &reply.from,
            own,
            model: reply.model,
            proved: reply.authenticated || reply.vouched,
            subject: &reply.subject,
            answered: reply.token.is_some(),
            limits: reply.limits.as_ref(),
        }
    }

    fn sender(&self) -> Sender<'m> {
        Sender { from: self.from, proved: self.proved }
    }

    fn said(&self, gate: bool) -> classify::Said<'m> {
        classify::Said::Reply { from: self.from, own: self.own, gate }
    }
}

/// What a reply's first line decides at a gate; `None` if it decides nothing.
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

/// What a reply grants that approves a call as the last one who must; the approval counts as `by`'s.
pub(crate) fn granting(
    turn: &Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    reply: &RecordReply,
    own: &str,
    by: &str,
) -> Result<Option<Granting>, Stop> {
    let spec = resolve::spec_of(turn, open)?;
    let Some(decision) = decision_of(&spec, own) else { return Ok(None) };
    if spec.resolve(decision) != Some(&Resolve::Grant) || !votes::would_decide(open, by, &turn.directory()?) {
        return Ok(None);
    }
    let (limits, shown) = (reply.limits.clone(), open.gate.shown());
    let decide = DecideGate { gate, decision, comment: String::new(), shown, limits, proof: None };
    Ok(Some(decide_gate::granting(turn, &decide, open)?))
}

pub(crate) fn at_gate(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    mail: &Mail<'_>,
    grant: Option<Granting>,
) -> Result<Standing, Stop> {
    let spec = resolve::spec_of(turn, open)?;
    if spec.resolve(Decision::Answer).is_some() {
        return at_task(turn, gate, open, mail);
    }
    let Some(decision) = decision_of(&spec, mail.own) else {
        return undecided(turn, gate, open, &spec, mail);
    };
    let (by, comment) = (mail.from.to_owned(), comment(mail.own));
    let ruling = Ruling { decision, by, comment, via: Via::Mail };
    let cast = votes::cast(turn, gate, open, &ruling)?;
    match cast {
        Cast::Decides => {
            decide(turn, gate, open, ruling, grant)?;
            Ok(Standing::Decided)
        }
        Cast::Counts(so_far) => {
            decide_gate::release(turn, open.run, gate, mail.limits)?;
            if let Some(asked) = &open.gate.asked {
                let said = receipt(turn, gate, &decided(decision))?;
                let said = format!("{said}\nIt counts, and the request is still open: {so_far}.");
                mails::inform(turn, open.run, gate, asked, mail.from, said)?;
            }
            Ok(Standing::Counted)
        }
        Cast::Again(_, so_far) => {
            answer_open(turn, gate, open, mail, &format!("{AGAIN}\nThe request is still open: {so_far}."))?;
            Ok(Standing::Repeated)
        }
    }
}

/// Nothing says at once what a reply decides: a model may be asked whether it is more than a question.
fn undecided(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    spec: &GateSpec,
    mail: &Mail<'_>,
) -> Result<Standing, Stop> {
    let discussed = spec.resolve(Decision::Discuss).is_some();
    let hinted = spec.inquiry.as_ref().is_some_and(|inquiry| inquiry.hinted);
    if mail.model && discussed && !hinted {
        let ports = [REJECTED, DISCUSSION].map(|port| (Port::Named(port.to_owned()), ()));
        classify::ask(turn, open.run, gate, mail.said(true), &ports)?;
        return Ok(Standing::Read);
    }
    unclear(turn, gate, open, mail.from, mail.own)?;
    let closes = spec.resolve(Decision::Discuss).is_some_and(|resolve| *resolve != Resolve::PassOn);
    Ok(if closes { Standing::Decided } else { Standing::Noted })
}

const AGAIN: &str = "You have approved this request before, and that counts once: approving again changes nothing. To stop \
    it, reply with a first line that says no more than \"reject\".";

/// The receipt for a reply that led to something, with its time.
fn receipt(turn: &Turn<'_, '_>, gate: OpenId, said: &str) -> Result<String, Stop> {
    let (session, at) = (turn.session_id()?, time_text(turn.now()));
    Ok(format!("{said}\nReceipt: gate {} of {session}, {at}.", gate.0))
}

/// A decision, for its sender.
fn decided(decision: Decision) -> String {
    match decision {
        Decision::Discuss => PASSED_ON.to_owned(),
        Decision::Approve | Decision::Refuse | Decision::Answer => {
            format!("Your decision is recorded: {}.", decision.word())
        }
    }
}

const PASSED_ON: &str = "Your reply was passed on as a question: nothing is approved by it, and this request is closed. \
    Where a decision is still needed, you will be asked again.";

/// Somebody wrote who may decide, but not so.
fn answer_open(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    mail: &Mail<'_>,
    said: &str,
) -> Result<(), Stop> {
    let Some(asked) = &open.gate.asked else { return Ok(()) };
    mails::answer(turn, open.run, gate, asked, mail.sender(), said.to_owned())
}

/// A reply that approves a call whose limit is full.
pub(crate) fn full(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    mail: &Mail<'_>,
    why: &str,
) -> Result<Standing, Stop> {
    let said = format!("Your approval has come and cannot be given now: {why}.");
    answer_open(turn, gate, open, mail, &said)?;
    Ok(Standing::Full)
}

/// A reply that cannot count at an open gate, for this reason.
pub(crate) fn moot(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    mail: &Mail<'_>,
    why: Standing,
) -> Result<Standing, Stop> {
    if why == Standing::Empty {
        let (by, comment) = (mail.from.to_owned(), String::new());
        turn.emit(ApprovalEvent::Discussed { gate, by, comment })?;
    }
    let said = WHY.iter().find(|(known, _)| *known == why).map_or(UNPROVED, |(_, said)| *said);
    answer_open(turn, gate, open, mail, said)?;
    Ok(why)
}

/// The answer to a reply that cannot count; to one that is not proved, [`UNPROVED`].
const WHY: [(Standing, &str); 5] = [
    (Standing::Earlier, OLD),
    (Standing::Own, OWN),
    (Standing::Foreign, FOREIGN),
    (Standing::Unseen, UNSEEN),
    (Standing::Empty, UNANSWERED),
];

const FOREIGN: &str = "Your reply has come, and nothing is decided by it: it is to a mail that was sent to somebody else.\n\
    Please reply to the one that was sent to you.";

const UNSEEN: &str = "Your reply has come, and nothing is approved by it: what is asked is too long for a mail, which showed \
    the beginning of it.\nPlease look at all of it on the decision page, and decide there.";

const OWN: &str = "Your reply has come, and nothing is decided by it: you asked for this decision yourself, and somebody \
    else must make it.";

const UNPROVED: &str = "Your reply has come, and nothing is decided by it: it could not be verified that you sent it to this \
    address. Some mail services do not sign the address that a mail goes to.\nPlease decide on the decision page.";

const OLD: &str = "Your reply is to an earlier mail of this request, and nothing is decided by it: you were asked again \
    since.\nPlease reply to the newest mail.";

/// What a participant writes is their answer, as it stands.
fn at_task(turn: &mut Turn<'_, '_>, gate: OpenId, open: &Open, mail: &Mail<'_>) -> Result<Standing, Stop> {
    let (answer, by, comment) = (mail.own.trim(), mail.from.to_owned(), String::new());
    // The receipt goes first: the last answer may end the session.
    if let Some(asked) = open.gate.asked.as_ref().filter(|_| mail.answered) {
        let said = receipt(turn, gate, "Your answer is recorded.")?;
        mails::inform(turn, open.run, gate, asked, mail.from, said)?;
    }
    let given = Given { answer: answer.into(), by, comment, via: Via::Mail };
    tasks::answer(turn, gate, open, given)?;
    Ok(Standing::Answered)
}

const UNANSWERED: &str = "Your reply had no words of its own, and the request is still open.\n\
    To answer it, write above what you quote.";

/// The ports of an approval that a model may choose: never the one that approves.
pub(crate) const REJECTED: &str = "rejected";
const DISCUSSION: &str = "discussion";

/// A reply decides, and its sender gets a receipt.
pub(crate) fn decide(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    ruling: Ruling,
    grant: Option<Granting>,
) -> Result<(), Stop> {
    let spec = resolve::spec_of(turn, open)?;
    let resolve = spec.resolve(ruling.decision);
    let resolve = resolve.ok_or_else(|| ViewError("the gate does not take a reply's decision".into()))?;
    // The receipt goes first: the decision may end the session.
    if let Some(asked) = &open.gate.asked {
        let said = receipt(turn, gate, &decided(ruling.decision))?;
        mails::inform(turn, open.run, gate, asked, &ruling.by, said)?;
    }
    resolve::close(turn, gate, open, &ruling)?;
    if let Some(grant) = grant {
        decide_gate::make_grant(turn, open.run, gate, grant)?;
    }
    resolve::resolved(turn, open, resolve)
}

pub(crate) fn at_wait(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    item: OpenId,
    mail: &Mail<'_>,
) -> Result<Standing, Stop> {
    let wait = waiting(turn, run)?;
    let port = match &wait.sort {
        None => wait.done.clone(),
        Some(sort) => match sorted(mail.own, &sort.ports).and_then(|at| sort.ports.get(at)) {
            Some((port, _)) => port.clone(),
            // No phrase decides what it means: a model is asked if the author gave no phrases, else the wait goes on.
            None if mail.model && !sort.hinted => {
                written_back(turn, run, mail, RECEIVED)?;
                classify::ask(turn, run, item, mail.said(false), &sort.ports)?;
                return Ok(Standing::Read);
            }
            None => {
                written_back(turn, run, mail, WAITS_ON)?;
                return Ok(Standing::Noted);
            }
        },
    };
    // The answer goes first: what follows may end the session.
    written_back(turn, run, mail, RECEIVED)?;
    received(turn, run, item, mail.from, mail.own, port)?;
    Ok(Standing::Received)
}

const RECEIVED: &str = "Your reply has come, and is passed on.";

const WAITS_ON: &str = "Your reply has come, and nothing follows from it: what it means could not be told, and an answer is \
    still waited for.";

/// A reply that nothing waits for; its sender is informed of that.
pub(crate) fn nothing(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    mail: &Mail<'_>,
    why: Standing,
) -> Result<Standing, Stop> {
    if why == Standing::Unexpected {
        written_back(turn, run, mail, UNEXPECTED)?;
    } else if why == Standing::Unproved {
        written_back(turn, run, mail, UNVERIFIED)?;
    }
    Ok(why)
}

const UNVERIFIED: &str = "Your reply has come, and nothing follows from it: it could not be verified that you sent it to this \
    address. Some mail services do not sign the address that a mail goes to. Please answer from another one, or tell the person who \
    wrote to you.";

const UNEXPECTED: &str =
    "Your reply has come and is kept. No answer is waited for at present, and nothing follows from it.";

/// Writes back to somebody who answered a mail of the run's own, [`ANSWERS_MAX`] times, so that an autoresponder is not
/// answered for ever.
fn written_back(turn: &mut Turn<'_, '_>, run: RunId, mail: &Mail<'_>, said: &str) -> Result<(), Stop> {
    let before =
        turn.run(run)?.answered_back.iter().filter(|known| known.eq_ignore_ascii_case(mail.from)).count();
    if !mail.answered || before >= ANSWERS_MAX {
        return Ok(());
    }
    turn.emit(ApprovalEvent::ReplyAnswered { gate: OpenId(0), run: Some(run), to: mail.from.to_owned() })?;
    let (to, body) = (mail.from.to_owned(), said.to_owned());
    let subject = mails::again(mail.subject);
    if let Some(fault) = capacity::mails(turn, 1, mail_bytes([&to], &subject, &body))? {
        return capacity::unsent(turn, run, &fault);
    }
    let (channel, content, purpose) = (Channel::Email, Content::Text, Purpose::Inform);
    let subject = Some(subject);
    turn.send(
        run,
        EffectBody::Message { channel, to, subject, body, content, gate: None, purpose, head: None },
    )?;
    Ok(())
}

/// The wait that a run is in.
pub(crate) fn waiting(turn: &Turn<'_, '_>, run: RunId) -> Result<Wait, Stop> {
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
pub(crate) fn received(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    item: OpenId,
    from: &str,
    own: &str,
    port: Port,
) -> Result<(), Stop> {
    turn.emit(WorkEvent::Closed { item, run })?;
    keep_below(turn, run, WAIT, json!({ "from": from, "text": own }), Writer::Person)?;
    resolve::now_or_later(turn, run, Deferral::Ended(port))
}

/// No phrase says what a reply means, or phrases of several meanings stand in it. A state that has a discussion is left
/// through it; at every other gate the reply is noted and answered, and the gate stays open.
pub(crate) fn unclear(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &Open,
    from: &str,
    own: &str,
) -> Result<(), Stop> {
    let (by, comment) = (from.to_owned(), cut(own, NOTE_BYTES_MAX));
    let said = match resolve::spec_of(turn, open)?.resolve(Decision::Discuss) {
        Some(Resolve::PassOn) => {
            discussion::pass_on(turn, gate, open, &by, comment)?;
            PASSED_ON_OPEN
        }
        Some(_) => {
            let ruling = Ruling { decision: Decision::Discuss, by, comment, via: Via::Mail };
            return decide(turn, gate, open, ruling, None);
        }
        None => {
            turn.emit(ApprovalEvent::Discussed { gate, by, comment })?;
            UNDECIDED
        }
    };
    let Some(asked) = &open.gate.asked else { return Ok(()) };
    // Whose words are weighed is proved.
    mails::answer(turn, open.run, gate, asked, Sender { from, proved: true }, said.to_owned())
}

const PASSED_ON_OPEN: &str = "Your reply was passed on as a question, and the request is still open: nothing is decided by it.\n\
    To decide, reply with a first line that says no more than \"approve\" or \"reject\".";

const UNDECIDED: &str = "Your reply was noted, and the request is still open: nothing is decided by it.\n\
    To decide, reply with a first line that says no more than \"approve\" or \"reject\".";

/// A reply to a closed request moves nothing, and its sender is informed why.
pub(crate) fn late(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    closed: &Closed,
    mail: &Mail<'_>,
) -> Result<Standing, Stop> {
    if let Some(asked) = &closed.open.gate.asked {
        mails::answer(turn, run, gate, asked, mail.sender(), late_message(closed))?;
    }
    Ok(Standing::Late)
}

/// How a gate was closed, for somebody who wrote too late.
fn late_message(closed: &Closed) -> String {
    let approved = closed.open.gate.approved_by().join(", ");
    let how = match &closed.resolution {
        Resolution::Answered { .. } => "an answer had come before".to_owned(),
        Resolution::Decided { decision, by, via, .. } => {
            let by = via.who(by);
            let all = match (approved.is_empty(), decision) {
                (true, _) => String::new(),
                (false, Decision::Approve) => format!(" (approved by {approved})"),
                (false, _) => format!(" ({approved} had approved)"),
            };
            let word = match decision {
                Decision::Discuss => "a question, with which the request was closed",
                Decision::Approve | Decision::Refuse | Decision::Answer => decision.word(),
            };
            format!("{by} decided before: {word}{all}")
        }
        Resolution::Lapsed if approved.is_empty() => "nobody had decided in time".to_owned(),
        Resolution::Lapsed => format!("too few had approved in time ({approved})"),
        Resolution::Voided => "the process had moved on".to_owned(),
    };
    let at = time_text(closed.at);
    format!("Your reply came after this request was closed, and changes nothing.\nClosed at {at}: {how}.")
}

/// What stands below the line that decides.
pub(crate) fn comment(own: &str) -> String {
    let mut lines = own.lines().skip_while(|line| line.trim().is_empty());
    lines.next();
    cut(lines.collect::<Vec<_>>().join("\n").trim(), NOTE_BYTES_MAX)
}

/// The beginning of a text, at most this many bytes of it.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
