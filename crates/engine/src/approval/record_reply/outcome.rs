//! What a reply leads to, and what its writer is answered: every outcome is answered in the thread of the mail replied
//! to.

use serde_json::json;
use switchward_expr::classify as sorted;
use switchward_machine::{
    ActKind, Decision, GateSpec, OpenId, Port, Resolve, RunId, Wait, reserved_keys::WAIT,
};
use switchward_state::ViewError;
use switchward_state::approval::{
    ApprovalEvent, Closed, Closing, DecideGate, Decider, NotCounted, Notice, OpenGate, Receipt, RecordReply,
    ReplyOutcome, RequestSubject, Resolution, Via, Vote,
};
use switchward_state::delivery::Purpose;
use switchward_state::limits::{ANSWERS_MAX, NOTE_BYTES_MAX};
use switchward_state::policy::{LimitCheck, Shortage};
use switchward_state::run::{Deferral, Writer};
use switchward_state::work::WorkEvent;

use crate::approval::decide_gate::Granting;
use crate::approval::mails::Sender;
use crate::approval::reply_words::{comment, cut};
use crate::approval::resolve::GateDecision;
use crate::approval::tasks::Given;
use crate::approval::votes::Recorded;
use crate::approval::{classify, decide_gate, discussion, mails, resolve, tasks, votes};
use crate::run::data::keep_below;
use crate::turn::{Stop, Turn};

/// What somebody wrote.
pub(crate) struct Mail<'m> {
    from: &'m str,
    /// The writer's own words.
    own: &'m str,
    /// What their first line decides at the gate that they are about; `None` if nothing.
    decision: Option<Decision>,
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
    pub(crate) fn of(reply: &'m RecordReply, decision: Option<Decision>) -> Self {
        Self {
            from: &reply.from,
            own: &reply.text,
            decision,
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

    fn said(&self, gate: bool) -> classify::ClassifyInput<'m> {
        classify::ClassifyInput::Reply { from: self.from, own: self.own, gate }
    }
}

/// What a reply grants that approves a call as the last one who must; the approval counts as `by`'s.
pub(crate) fn granting(
    turn: &Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    reply: &RecordReply,
    decision: Option<Decision>,
    by: &str,
) -> Result<Option<Granting>, Stop> {
    let Some(decision) = decision else { return Ok(None) };
    let grants = resolve::spec_of(turn, open)?.resolve(decision) == Some(&Resolve::Grant);
    if !grants || !votes::would_decide(open, by, &*turn.directory()?) {
        return Ok(None);
    }
    let (limits, shown) = (reply.limits.clone(), open.body.shown());
    let decide = DecideGate { gate, decision, comment: String::new(), shown, limits, proof: None };
    Ok(Some(decide_gate::granting(turn, &decide, open)?))
}

pub(crate) fn at_gate(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    mail: &Mail<'_>,
    grant: Option<Granting>,
) -> Result<ReplyOutcome, Stop> {
    let spec = resolve::spec_of(turn, open)?;
    if spec.resolve(Decision::Answer).is_some() {
        return at_task(turn, gate, open, mail);
    }
    let Some(decision) = mail.decision else {
        return undecided(turn, gate, open, &spec, mail);
    };
    let (by, comment) = (mail.from.to_owned(), comment(mail.own));
    let given = GateDecision { decision, by, comment, via: Via::Mail };
    let record = votes::record(turn, gate, open, &given)?;
    match record {
        Recorded::Decides => {
            decide(turn, gate, open, given, grant)?;
            Ok(ReplyOutcome::Decided)
        }
        Recorded::Counts(so_far) => {
            decide_gate::release(turn, open.head.run, gate, mail.limits)?;
            if let Some(asked) = &open.body.asked {
                let (receipt, progress) = (receipt(turn, gate)?, so_far.progress());
                let notice = Notice::Counted { receipt, progress };
                mails::inform(turn, open.head.run, gate, asked, mail.from, notice)?;
            }
            Ok(ReplyOutcome::Counted)
        }
        Recorded::Again(_, so_far) => {
            answer_open(turn, gate, open, mail, Notice::ApprovedBefore { progress: so_far.progress() })?;
            Ok(ReplyOutcome::Repeated)
        }
    }
}

/// Nothing says at once what a reply decides: a model may be asked whether it is more than a question.
fn undecided(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    spec: &GateSpec,
    mail: &Mail<'_>,
) -> Result<ReplyOutcome, Stop> {
    let has_discussion = spec.resolve(Decision::Discuss).is_some();
    let hinted = spec.inquiry.as_ref().is_some_and(|inquiry| inquiry.hinted);
    if mail.model && has_discussion && !hinted {
        classify::ask(turn, open.head.run, gate, mail.said(true), &classify::proposals(spec))?;
        return Ok(ReplyOutcome::Read);
    }
    unclear(turn, gate, open, mail.from, mail.own)?;
    let closes = spec.resolve(Decision::Discuss).is_some_and(|resolve| *resolve != Resolve::PassOn);
    Ok(if closes { ReplyOutcome::Decided } else { ReplyOutcome::Noted })
}

/// The receipt for a reply that is recorded now.
fn receipt(turn: &Turn<'_, '_>, gate: OpenId) -> Result<Receipt, Stop> {
    Ok(Receipt { gate, session: turn.session_id()?, at: turn.now() })
}

/// Somebody wrote who may decide, but not so.
fn answer_open(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    mail: &Mail<'_>,
    notice: Notice,
) -> Result<(), Stop> {
    let Some(asked) = &open.body.asked else { return Ok(()) };
    mails::answer(turn, open.head.run, gate, asked, mail.sender(), notice)
}

/// A reply that approves a call whose limit is full.
pub(crate) fn full(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    mail: &Mail<'_>,
    shortage: Shortage,
) -> Result<ReplyOutcome, Stop> {
    answer_open(turn, gate, open, mail, Notice::CannotApprove { shortage })?;
    Ok(ReplyOutcome::Full)
}

/// A reply that cannot count at an open gate, for this reason.
pub(crate) fn moot(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    mail: &Mail<'_>,
    why: NotCounted,
) -> Result<ReplyOutcome, Stop> {
    if why == NotCounted::Empty {
        let (by, comment) = (mail.from.to_owned(), String::new());
        turn.emit(ApprovalEvent::Commented { gate, by, comment })?;
    }
    answer_open(turn, gate, open, mail, Notice::NotCounted { why })?;
    Ok(why.outcome())
}

/// What a participant writes is their answer, as it stands.
fn at_task(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    mail: &Mail<'_>,
) -> Result<ReplyOutcome, Stop> {
    let (answer, by, comment) = (mail.own.trim(), mail.from.to_owned(), String::new());
    // The receipt goes first: the last answer may end the session.
    if let Some(asked) = open.body.asked.as_ref().filter(|_| mail.answered) {
        let notice = Notice::Answered { receipt: receipt(turn, gate)? };
        mails::inform(turn, open.head.run, gate, asked, mail.from, notice)?;
    }
    let given = Given { answer: answer.into(), by, comment, via: Via::Mail };
    tasks::answer(turn, gate, open, given)?;
    Ok(ReplyOutcome::Answered)
}

/// A reply decides, and its sender gets a receipt.
pub(crate) fn decide(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    given: GateDecision,
    grant: Option<Granting>,
) -> Result<(), Stop> {
    let spec = resolve::spec_of(turn, open)?;
    let resolve = spec.resolve(given.decision);
    let resolve = resolve.ok_or_else(|| ViewError("the gate does not take a reply's decision".into()))?;
    // The receipt goes first: the decision may end the session.
    if let Some(asked) = &open.body.asked {
        let notice = Notice::Decided { decision: given.decision, receipt: receipt(turn, gate)? };
        mails::inform(turn, open.head.run, gate, asked, &given.by, notice)?;
    }
    resolve::close(turn, gate, open, &given)?;
    if let Some(grant) = grant {
        decide_gate::make_grant(turn, open.head.run, gate, grant)?;
    }
    resolve::resolved(turn, open, resolve)
}

pub(crate) fn at_wait(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    item: OpenId,
    mail: &Mail<'_>,
) -> Result<ReplyOutcome, Stop> {
    let wait = waiting(turn, run)?;
    let port = match &wait.sort {
        None => wait.done.clone(),
        Some(sort) => match sorted(mail.own, &sort.ports).and_then(|at| sort.ports.get(at)) {
            Some((port, _)) => port.clone(),
            // No phrase decides what it means: a model is asked if the author gave no phrases, else the wait goes on.
            None if mail.model && !sort.hinted => {
                written_back(turn, run, mail, Notice::ReplyReceived)?;
                classify::ask(turn, run, item, mail.said(false), &sort.ports)?;
                return Ok(ReplyOutcome::Read);
            }
            None => {
                written_back(turn, run, mail, Notice::ReplyUnclear)?;
                return Ok(ReplyOutcome::Noted);
            }
        },
    };
    // The answer goes first: what follows may end the session.
    written_back(turn, run, mail, Notice::ReplyReceived)?;
    received(turn, run, item, mail.from, mail.own, port)?;
    Ok(ReplyOutcome::Received)
}

/// A reply that nothing waits for; its sender is informed of that.
pub(crate) fn nothing(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    mail: &Mail<'_>,
    why: ReplyOutcome,
) -> Result<ReplyOutcome, Stop> {
    if why == ReplyOutcome::Unexpected {
        written_back(turn, run, mail, Notice::ReplyUnexpected)?;
    } else if why == ReplyOutcome::Unproved {
        written_back(turn, run, mail, Notice::ReplyUnproved)?;
    }
    Ok(why)
}

/// Writes back to somebody who answered a mail of the run's own, [`ANSWERS_MAX`] times, so that an autoresponder is not
/// answered for ever.
fn written_back(turn: &mut Turn<'_, '_>, run: RunId, mail: &Mail<'_>, notice: Notice) -> Result<(), Stop> {
    let before =
        turn.run(run)?.answered_back.iter().filter(|known| known.eq_ignore_ascii_case(mail.from)).count();
    if !mail.answered || before >= ANSWERS_MAX {
        return Ok(());
    }
    turn.emit(ApprovalEvent::ReplyAnswered { gate: OpenId(0), run: Some(run), to: mail.from.to_owned() })?;
    let about = RequestSubject::from(mail.subject);
    mails::send(turn, run, mails::notice(mail.from, &about, notice, None, Purpose::Inform))
}

/// Returns the wait that a run is in. Fails if the run's act is of another kind.
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
    open: &OpenGate,
    from: &str,
    own: &str,
) -> Result<(), Stop> {
    let (by, comment) = (from.to_owned(), cut(own, NOTE_BYTES_MAX));
    let notice = match resolve::spec_of(turn, open)?.resolve(Decision::Discuss) {
        Some(Resolve::PassOn) => {
            discussion::pass_on(turn, gate, open, &by, comment)?;
            Notice::PassedOn
        }
        Some(_) => {
            let given = GateDecision { decision: Decision::Discuss, by, comment, via: Via::Mail };
            return decide(turn, gate, open, given, None);
        }
        None => {
            turn.emit(ApprovalEvent::Commented { gate, by, comment })?;
            Notice::Commented
        }
    };
    let Some(asked) = &open.body.asked else { return Ok(()) };
    // Whose words are weighed is proved.
    mails::answer(turn, open.head.run, gate, asked, Sender { from, proved: true }, notice)
}

/// A reply to a closed request moves nothing, and its sender is informed why.
pub(crate) fn late(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    closed: &Closed,
    mail: &Mail<'_>,
) -> Result<ReplyOutcome, Stop> {
    if let Some(asked) = &closed.open.body.asked {
        let notice = Notice::Late { at: closed.at, closing: closing(closed) };
        mails::answer(turn, run, gate, asked, mail.sender(), notice)?;
    }
    Ok(ReplyOutcome::Late)
}

/// How a gate was closed, for somebody who wrote too late.
fn closing(closed: &Closed) -> Closing {
    let approved = || closed.open.body.votes().map(Vote::decider).collect();
    match &closed.resolution {
        Resolution::Answered { .. } => Closing::Answered,
        Resolution::Decided { decision, by, via, .. } => {
            let by = Decider { by: by.clone(), via: *via };
            Closing::Decided { decision: *decision, by, approved: approved() }
        }
        Resolution::Lapsed => Closing::Lapsed { approved: approved() },
        Resolution::Voided => Closing::Voided,
    }
}
