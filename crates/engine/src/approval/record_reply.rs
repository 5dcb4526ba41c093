//! A reply comes by mail. See `docs/approvals-by-mail.md#what-a-reply-must-prove`. A reply
//! counts only from an address that was written to, and at a gate only if the sender is proved; what anybody else writes
//! is recorded and moves nothing.

pub(crate) mod outcome;
pub(crate) mod vouched;

use switchward_machine::{Decision, Input, OpenId, RunId, WaitOn};
use switchward_state::approval::{
    ApprovalEvent, Closed, MailToken, NotCounted, OpenGate, RecordReply, ReplyEvidence, ReplyFact,
    ReplyOutcome, SenderProof, TokenUse,
};
use switchward_state::limits::{ADDRESS_BYTES_MAX, NOTE_BYTES_MAX, REPLY_BYTES_MAX, RUNS_NAMED_MAX};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::approval::record_reply::outcome::{Mail, granting};
use crate::approval::reply_words::decision_of;
use crate::approval::{REPLIES, resolve};
use crate::run::inputs;
use crate::turn::{Stop, Turn, check_size, check_text, ended};

/// A reply to an open gate that addresses its sender.
pub(crate) struct AtGate<'r> {
    /// The run that records it.
    pub(crate) run: RunId,
    /// The gate's number in the session.
    pub(crate) gate: OpenId,
    /// What is open there.
    pub(crate) open: &'r OpenGate,
    /// What came in.
    pub(crate) reply: &'r RecordReply,
    /// What its first line decides; `None` if nothing.
    pub(crate) decision: Option<Decision>,
}

/// Handles a reply to an open gate that does something else than count as its sender's decision. Returns `None` for every
/// other reply.
pub(crate) type Taker = fn(&mut Turn<'_, '_>, &AtGate<'_>) -> Result<Option<Reply>, Stop>;

/// What a reply is about.
pub(crate) enum About {
    /// An open gate that addresses its sender.
    Gate(OpenId, Box<OpenGate>),
    /// A wait for somebody whom the run has written to.
    Wait(OpenId),
    /// An open gate at which the reply cannot count, and why.
    Moot(OpenId, Box<OpenGate>, NotCounted),
    /// A gate that is closed.
    Late(OpenId, Box<Closed>),
    /// Nothing here, and why.
    Nothing(ReplyOutcome),
}

impl About {
    /// The gate or the wait.
    fn which(&self) -> Option<OpenId> {
        match self {
            Self::Gate(id, _) | Self::Wait(id) | Self::Moot(id, ..) | Self::Late(id, _) => Some(*id),
            Self::Nothing(_) => None,
        }
    }

    /// Why the reply moves nothing, if that is clear from what it is about.
    fn moot(&self) -> Option<ReplyOutcome> {
        match self {
            Self::Gate(..) | Self::Wait(_) => None,
            Self::Late(..) => Some(ReplyOutcome::Late),
            Self::Moot(_, _, why) => Some(why.outcome()),
            Self::Nothing(why) => Some(*why),
        }
    }
}

pub(crate) fn run(turn: &mut Turn<'_, '_>, reply: &RecordReply) -> Result<Reply, Stop> {
    let session = turn.session()?;
    let leaves = turn.leaves()?;
    turn.expect_sequence(&session)?;
    let about = about(turn, &leaves, reply)?;
    if session.status.ended() && !matches!(about, About::Late(..)) {
        return Err(ended(&session).into());
    }
    drop(session);
    if reply.token.is_none() && !matches!(about, About::Gate(..)) {
        inputs::check_any(turn, &leaves, Input::Mail)?;
    }
    check(reply)?;
    let run = recorder(turn, &leaves, &about)?;
    let (about, decision) = read(turn, about, &reply.text)?;
    if let About::Gate(gate, open) = &about {
        let at = AtGate { run, gate: *gate, open, reply, decision };
        for take in REPLIES {
            if let Some(taken) = take(turn, &at)? {
                return Ok(taken);
            }
        }
    }
    // What the ledger or a cap refuses is refused before anything is recorded.
    let grant = match &about {
        About::Gate(gate, open) => granting(turn, *gate, open, reply, decision, &reply.from),
        About::Wait(_) | About::Moot(..) | About::Late(..) | About::Nothing(_) => Ok(None),
    };
    let (grant, full) = match grant {
        Ok(grant) => (grant, None),
        // A limit is full, and the gate stays open; the sender is informed if they brought a token.
        Err(Stop::Refused(Rejection { shortage: Some(shortage), .. })) if reply.token.is_some() => {
            (None, Some(*shortage))
        }
        Err(stop) => return Err(stop),
    };
    recorded(turn, run, reply, &about)?;
    let mail = Mail::of(reply, decision);
    let outcome = match (about, full) {
        (About::Gate(gate, open), Some(full)) => outcome::full(turn, gate, &open, &mail, full)?,
        (About::Gate(gate, open), None) => outcome::at_gate(turn, gate, &open, &mail, grant)?,
        (About::Moot(gate, open, why), _) => outcome::moot(turn, gate, &open, &mail, why)?,
        (About::Wait(item), _) => outcome::at_wait(turn, run, item, &mail)?,
        (About::Late(gate, closed), _) => outcome::late(turn, run, gate, &closed, &mail)?,
        (About::Nothing(why), _) => outcome::nothing(turn, run, &mail, why)?,
    };
    replied(turn, outcome)
}

/// The run that records a reply: the only active leaf, else the one that the reply is about; the one that waits for all of
/// them if it is about none.
fn recorder(turn: &Turn<'_, '_>, leaves: &[RunId], about: &About) -> Result<RunId, Stop> {
    if let [only] = leaves {
        return Ok(*only);
    }
    let run = match about {
        About::Gate(_, open) | About::Moot(_, open, _) => Some(open.head.run),
        About::Wait(item) => turn.rows.wait_at(&turn.item_key(*item)?)?.map(|wait| wait.head.run),
        About::Late(..) | About::Nothing(_) => None,
    };
    run.map_or_else(|| turn.stem(), Ok)
}

/// Returns what a reply is about. Without a token, that is the newest request to its sender, if the sender is proved.
fn about(turn: &Turn<'_, '_>, leaves: &[RunId], reply: &RecordReply) -> Result<About, Stop> {
    match &reply.token {
        Some(token) => by_token(turn, leaves, reply, token),
        None if reply.authenticated || reply.vouched => {
            let found = newest(turn, leaves, &reply.from)?;
            // What is passed on counts as the operator's own decision.
            if let About::Gate(gate, open) = &found
                && !reply.vouched
                && is_lost(turn, open, &reply.from)?
            {
                return Ok(About::Moot(*gate, open.clone(), NotCounted::NoLongerRecipient));
            }
            Ok(found)
        }
        None => Ok(About::Nothing(ReplyOutcome::Unproved)),
    }
}

/// The gate at which a reply would count, and what it would decide there. `None` if it would decide nothing: its sender is
/// not one who may decide, or does not prove it, or its words say nothing.
///
/// # Errors
/// The reply would be refused, or a row cannot be read.
pub(crate) fn decides(turn: &Turn<'_, '_>, reply: &RecordReply) -> Result<Option<(OpenId, Decision)>, Stop> {
    let session = turn.session()?;
    turn.expect_sequence(&session)?;
    if session.status.ended() {
        return Err(ended(&session).into());
    }
    drop(session);
    check(reply)?;
    let (about, decision) = read(turn, about(turn, &turn.leaves()?, reply)?, &reply.text)?;
    let (About::Gate(gate, open), Some(decision)) = (about, decision) else { return Ok(None) };
    if reply.vouched {
        vouched::check(turn, &open, decision)?;
    }
    Ok(Some((gate, decision)))
}

/// The answer to who brought a reply.
pub(crate) fn replied(turn: &Turn<'_, '_>, outcome: ReplyOutcome) -> Result<Reply, Stop> {
    let (session, sequence) = (turn.session_id()?, turn.session()?.sequence);
    Ok(Reply::Replied { session, sequence, outcome, position: None })
}

/// Writes down that a reply has come, and what is known of its sender.
pub(crate) fn recorded(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    reply: &RecordReply,
    about: &About,
) -> Result<(), Stop> {
    let proof = match (reply.vouched, reply.authenticated) {
        (true, _) => SenderProof::Vouched { by: turn.command.actor.subject.clone() },
        (false, true) => SenderProof::Mail,
        (false, false) => SenderProof::None,
    };
    let (from, text, evidence) = (reply.from.clone(), reply.text.clone(), reply.evidence.clone());
    let (about, why) = (about.which(), about.moot());
    let brought_by = reply.brought_by.clone();
    Ok(turn.emit(ApprovalEvent::ReplyRecorded(ReplyFact {
        run,
        from,
        text,
        proof,
        about,
        evidence,
        why,
        brought_by,
    }))?)
}

/// Reads the words of a reply: what it is about then, and what its first line decides at a gate. One without words
/// decides nothing, and one that approves must be to a mail that showed all of what it approves.
fn read(turn: &Turn<'_, '_>, about: About, own: &str) -> Result<(About, Option<Decision>), Stop> {
    let About::Gate(gate, open) = about else { return Ok((about, None)) };
    if own.trim().is_empty() {
        return Ok((About::Moot(gate, open, NotCounted::Empty), None));
    }
    let decision = decision_of(&resolve::spec_of(turn, &open)?, own);
    if decision == Some(Decision::Approve) && !open.body.fits_a_mail() {
        return Ok((About::Moot(gate, open, NotCounted::Unseen), None));
    }
    Ok((About::Gate(gate, open), decision))
}

fn check(reply: &RecordReply) -> Result<(), Rejection> {
    check_text("text", &reply.text, REPLY_BYTES_MAX)?;
    check_text("from", &reply.from, ADDRESS_BYTES_MAX)?;
    let evidence = reply.evidence.as_ref().map_or(0, ReplyEvidence::bytes);
    check_size("evidence", evidence, NOTE_BYTES_MAX, "bytes")?;
    check_text("subject", &reply.subject, NOTE_BYTES_MAX)?;
    if reply.from.trim().is_empty() || reply.from.chars().any(char::is_control) {
        let message = format!("{:?} is not an address", reply.from);
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "from"));
    }
    Ok(())
}

/// What a token is about, for whom it was made.
fn by_token(
    turn: &Turn<'_, '_>,
    leaves: &[RunId],
    reply: &RecordReply,
    token: &MailToken,
) -> Result<About, Stop> {
    let (id, from) = (turn.session_id()?, reply.from.as_str());
    if !turn.made(token, TokenUse::Reply, from)? {
        // One that was made for somebody else was passed on; one that was made for nobody is no token.
        return foreign(turn, leaves, reply, token);
    }
    if token.about.0 == 0 {
        return Ok(match waits_for(turn, leaves, from)? {
            None => About::Nothing(ReplyOutcome::Unexpected),
            Some(_) if !reply.authenticated => About::Nothing(ReplyOutcome::Unproved),
            Some(wait) => About::Wait(wait),
        });
    }
    if let Some(closed) = turn.rows.closed_at(&Key::closed(turn.tenant(), id, token.about))? {
        return Ok(About::Late(token.about, Box::new(Closed::clone(&closed))));
    }
    let Some(open) = turn.rows.gate(turn.tenant(), id, token.about)? else {
        return Ok(About::Nothing(ReplyOutcome::Unexpected));
    };
    let request = open.body.asked.as_ref().and_then(|asked| asked.request_of(from));
    let (gate, open) = (token.about, Box::new(OpenGate::clone(&open)));
    Ok(match request {
        // They were asked, as the token proves.
        None => About::Moot(gate, open, NotCounted::NoLongerRecipient),
        // The directory led to them when they were asked, and does not any more.
        Some(_) if is_lost(turn, &open, from)? => About::Moot(gate, open, NotCounted::NoLongerRecipient),
        // The requester cannot decide, by mail or otherwise.
        Some(_) if is_own(turn, &open, from)? => About::Moot(gate, open, NotCounted::Own),
        Some(request) if request != token.request => About::Moot(gate, open, NotCounted::Earlier),
        Some(_) if !counts(turn, &open, reply)? => About::Moot(gate, open, NotCounted::Unproved),
        Some(_) => About::Gate(gate, open),
    })
}

/// Returns true if the proof of a reply's sender is enough to decide this gate. A reply that the gate's requester brings
/// must be signed.
fn counts(turn: &Turn<'_, '_>, open: &OpenGate, reply: &RecordReply) -> Result<bool, Stop> {
    if !reply.authenticated || reply.pages_only {
        return Ok(false);
    }
    let Some(by) = reply.brought_by.as_ref().filter(|_| !reply.signed) else { return Ok(true) };
    Ok(!turn.directory()?.one_person(&open.body.requester, by))
}

/// A token that was made for somebody else was passed on, and one that was made for nobody is no token. A sender who is a
/// recipient too and has answered another recipient's mail is asked to answer their own.
fn foreign(
    turn: &Turn<'_, '_>,
    leaves: &[RunId],
    reply: &RecordReply,
    token: &MailToken,
) -> Result<About, Stop> {
    if !known(turn, leaves, token)? {
        return Err(no_token().into());
    }
    let open = turn.rows.gate(turn.tenant(), turn.session_id()?, token.about)?;
    Ok(match open.filter(|open| reply.authenticated && open.body.wrote_to(&reply.from)) {
        Some(open) => About::Moot(token.about, Box::new(OpenGate::clone(&open)), NotCounted::Foreign),
        None => About::Nothing(ReplyOutcome::Foreign),
    })
}

fn no_token() -> Rejection {
    Rejection::new(Reason::CredentialInvalid, "the mail's token is not valid")
}

/// Whether a token was made for anybody whom this session has written to.
fn known(turn: &Turn<'_, '_>, leaves: &[RunId], token: &MailToken) -> Result<bool, Stop> {
    let (tenant, id) = (turn.tenant(), turn.session_id()?);
    let asked = match turn.rows.gate(tenant, id, token.about)? {
        Some(open) => open.body.asked.as_ref().map(|asked| asked.to.clone()),
        None => {
            let closed = turn.rows.closed_at(&Key::closed(tenant, id, token.about))?;
            closed.and_then(|closed| closed.open.body.asked.as_ref().map(|asked| asked.to.clone()))
        }
    };
    if let Some(to) = asked {
        return Ok(turn.made_for(token, TokenUse::Reply, &to)?.is_some());
    }
    for leaf in leaves {
        let to = turn.run(*leaf)?.mailed.clone();
        if turn.made_for(token, TokenUse::Reply, &to)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_own(turn: &Turn<'_, '_>, open: &OpenGate, from: &str) -> Result<bool, Stop> {
    Ok(open.body.kind.needs_another() && turn.directory()?.one_person(&open.body.requester, from))
}

fn is_lost(turn: &Turn<'_, '_>, open: &OpenGate, from: &str) -> Result<bool, Stop> {
    Ok(open.body.has_lost(from, &*turn.directory()?))
}

/// The newest request that is open and was sent to this address, else the newest that was.
fn newest(turn: &Turn<'_, '_>, leaves: &[RunId], from: &str) -> Result<About, Stop> {
    let (session, id) = (turn.session()?, turn.session_id()?);
    let wait = waits_for(turn, leaves, from)?;
    for gate in session.gates().rev() {
        let Some(open) = turn.rows.gate(turn.tenant(), id, gate)? else { continue };
        if open.body.wrote_to(from) && !is_own(turn, &open, from)? && wait.is_none_or(|wait| wait < gate) {
            return Ok(About::Gate(gate, Box::new(OpenGate::clone(&open))));
        }
    }
    if let Some(item) = wait {
        return Ok(About::Wait(item));
    }
    for gate in session.answered.iter().rev() {
        let Some(closed) = turn.rows.closed_at(&Key::closed(turn.tenant(), id, *gate))? else { continue };
        if closed.open.body.wrote_to(from) {
            return Ok(About::Late(*gate, Box::new(Closed::clone(&closed))));
        }
    }
    Ok(About::Nothing(ReplyOutcome::Unexpected))
}

/// The wait for a reply that this address may end. Refused if several runs wait for one: nothing says which is meant.
fn waits_for(turn: &Turn<'_, '_>, leaves: &[RunId], from: &str) -> Result<Option<OpenId>, Stop> {
    let (mut found, mut runs) = (None, Vec::new());
    for run in leaves.iter().copied() {
        if runs.len() > RUNS_NAMED_MAX {
            break;
        }
        let Some(wait) = turn.open_wait(run, WaitOn::Reply)? else { continue };
        if was_written_to(turn, run, from)? {
            found = Some(wait);
            runs.push(run);
        }
    }
    if runs.len() > 1 {
        return Err(turn.active(&*turn.session()?)?.several(&runs)?.into());
    }
    Ok(found)
}

/// Returns true if a run's definition has written to this address, or that of one that has called it, directly or through
/// others.
fn was_written_to(turn: &Turn<'_, '_>, run: RunId, address: &str) -> Result<bool, Stop> {
    let mut next = Some(run);
    while let Some(run) = next {
        let at = turn.run(run)?;
        if at.recipients.iter().any(|known| known.eq_ignore_ascii_case(address)) {
            return Ok(true);
        }
        next = at.parent.map(|parent| parent.run);
    }
    Ok(false)
}
