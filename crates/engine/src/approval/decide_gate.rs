//! A person decides. A gate is decided once: `tests/corpus/checkpoint/sentences.tsv#6.2-1`.

use switchward_machine::{Decision, Digest, GateSpec, OpenId, Resolve, RunId};
use switchward_state::approval::{
    Closed, DecideGate, Grant, MailToken, OpenGate, PageProof, Resolution, TokenUse, Via,
};
use switchward_state::catalogue::Directory;
use switchward_state::limits::{GRANT_KEPT_MS, GRANTS_MAX, NOTE_BYTES_MAX, RESULT_SHOWN_BYTES_MAX};
use switchward_state::policy::{LimitCheck, LimitOutcome, PolicyEvent, Shortage};
use switchward_state::{Actor, Key, ReadRows as _, Reason, Rejection, Reply};

use crate::approval::resolve::GateDecision;
use crate::approval::votes::Recorded;
use crate::approval::{resolve, votes};
use crate::policy::authorize::{confirm_reservation, fresh, release_reservation, stale};
use crate::policy::{GrantPlan, asked_call, gate_name};
use crate::turn::{Stop, Turn, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, decide: &DecideGate) -> Result<Reply, Stop> {
    let open = open_gate(turn, decide.gate)?;
    proved(turn, decide.gate, &open, decide.proof.as_ref())?;
    entitled(&turn.command.actor, &open, decide, &*turn.directory()?)?;
    let spec = resolve::spec_of(turn, &open)?;
    let resolve = resolution_of(&spec, decide.decision)?;
    if decide.decision == Decision::Answer {
        return Err(unsaid().into());
    }
    let grants = *resolve == Resolve::Grant
        && votes::would_decide(&open, &turn.command.actor.subject, &*turn.directory()?);
    let grant = if grants { Some(granting(turn, decide, &open)?) } else { None };
    let (by, comment) = (turn.command.actor.subject.clone(), decide.comment.clone());
    let via = via(decide.proof.as_ref());
    let given = GateDecision { decision: decide.decision, by, comment, via };
    match votes::record(turn, decide.gate, &open, &given)? {
        Recorded::Decides => {}
        Recorded::Counts(_) => {
            release(turn, open.head.run, decide.gate, decide.limits.as_ref())?;
            return Ok(Reply::Gate { gate: decide.gate, sequence: turn.session()?.sequence, summary: None });
        }
        Recorded::Again(vote, so_far) => return Err(votes::again(&vote, &so_far).into()),
    }
    resolve::close(turn, decide.gate, &open, &given)?;
    if let Some(grant) = grant {
        make_grant(turn, open.head.run, decide.gate, grant)?;
    }
    resolve::resolved(turn, &open, resolve)?;
    Ok(Reply::Gate { gate: decide.gate, sequence: turn.session()?.sequence, summary: None })
}

/// Checks that a person who acts on a page has the token that was made for them, of the newest request, and is recognised
/// as the tenant requires.
pub(crate) fn proved(
    turn: &Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    proof: Option<&PageProof>,
) -> Result<(), Stop> {
    let Some(PageProof { token, by }) = proof else { return Ok(()) };
    has_token(turn, gate, open, token)?;
    let tenancy = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?;
    match tenancy.and_then(|known| known.link_auth) {
        Some(least) if *by < least => {
            let message = "this page does not know you yet";
            Err(Rejection::new(Reason::CredentialInvalid, message).fact("link_auth", least.word()).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks that the command's actor has the page's token that was made for them, of the newest request, and that they were not
/// removed from the directory since.
pub(crate) fn has_token(
    turn: &Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    token: &MailToken,
) -> Result<(), Stop> {
    let person = turn.command.actor.subject.as_str();
    let request = open.body.asked.as_ref().and_then(|asked| asked.request_of(person));
    if token.about == gate && request == Some(token.request) && turn.made(token, TokenUse::Page, person)? {
        if open.body.has_lost(person, &*turn.directory()?) {
            return Err(not_listed(person).into());
        }
        return Ok(());
    }
    Err(Rejection::new(Reason::CredentialInvalid, "the page's token is not valid for this request").into())
}

/// Which way a command came that may have been said on a page.
pub(crate) fn via(proof: Option<&PageProof>) -> Via {
    proof.map_or(Via::Rpc, |proof| Via::page(proof.by))
}

/// The refusal of an answer that is none.
pub(crate) fn unsaid() -> Rejection {
    Rejection::new(Reason::FieldInvalid, "an answer must say something").fact("field", "answer")
}

/// What a decision does at a gate; one that the gate does not take is refused.
pub(crate) fn resolution_of(spec: &GateSpec, decision: Decision) -> Result<&Resolve, Rejection> {
    // What is passed on decides nothing.
    spec.resolve(decision).filter(|resolve| **resolve != Resolve::PassOn).ok_or_else(|| {
        let known: Vec<&str> = spec.outcomes.iter().map(|(known, _)| known.word()).collect();
        Rejection::new(Reason::FieldInvalid, "the gate does not take this decision").allowed(known)
    })
}

/// The open gate of this number, if the session is at the sequence that the caller saw.
pub(crate) fn open_gate(turn: &Turn<'_, '_>, gate: OpenId) -> Result<OpenGate, Stop> {
    let session = turn.session()?;
    let id = turn.session_id()?;
    if let Some(closed) = turn.rows.closed_at(&Key::closed(turn.tenant(), id, gate))? {
        addressed(&turn.command.actor, &closed.open, &*turn.directory()?)?;
        return Err(resolved(&closed).into());
    }
    let open = turn.rows.gate(turn.tenant(), id, gate)?;
    let open = open.ok_or_else(|| Rejection::new(Reason::NotFound, "there is no such gate"))?;
    turn.expect_sequence(&session)?;
    Ok(OpenGate::clone(&open))
}

/// Checks that this person may decide it. Also checked before a ledger is asked, so that a refused decision holds nothing
/// there.
pub(crate) fn entitled(
    actor: &Actor,
    open: &OpenGate,
    decide: &DecideGate,
    people: &Directory,
) -> Result<(), Rejection> {
    may_decide(actor, open, people)?;
    if decide.decision == Decision::Approve {
        votes::may_approve(&actor.subject, open, people)?;
    }
    is_meant(open, decide.shown, &decide.comment)
}

/// Whether this person may decide it, whatever is decided.
pub(crate) fn may_decide(actor: &Actor, open: &OpenGate, people: &Directory) -> Result<(), Rejection> {
    has_a_say(actor)?;
    if open.body.kind.needs_another() && people.one_person(&actor.subject, &open.body.requester) {
        return Err(Rejection::new(Reason::SelfApproval, "the requester cannot decide; somebody else must"));
    }
    addressed(actor, open, people)
}

/// Checks that the gate addresses this person, if it addresses anybody, and that they were not removed from the directory since
/// it asked them.
fn addressed(actor: &Actor, open: &OpenGate, people: &Directory) -> Result<(), Rejection> {
    not_removed(&actor.subject, open, people)?;
    if open.body.asked.as_ref().is_none_or(|asked| asked.open) {
        // Their key is enough, asked or not.
        return Ok(());
    }
    let theirs = people.addresses(&actor.subject).into_iter().chain([actor.subject.clone()]);
    let meant: Vec<String> = theirs.filter(|person| open.body.wrote_to(person)).collect();
    if meant.iter().any(|person| !open.body.has_lost(person, people)) {
        return Ok(());
    }
    if !meant.is_empty() {
        return Err(not_listed(&actor.subject));
    }
    let message = format!("{} is not one of those who are asked", actor.subject);
    Err(Rejection::new(Reason::NotAnApprover, message))
}

/// Refuses an address that the gate asked because the directory led to it, and that the directory does not hold any more.
pub(crate) fn not_removed(person: &str, open: &OpenGate, people: &Directory) -> Result<(), Rejection> {
    if open.body.has_lost(person, people) && !people.holds(person) {
        return Err(not_listed(person));
    }
    Ok(())
}

/// The refusal of somebody who was asked because the directory led to them, and to whom it does not lead any more.
pub(crate) fn not_listed(person: &str) -> Rejection {
    let message = format!("{person} was asked before, and the directory does not lead to them any more");
    Rejection::new(Reason::NotAnApprover, message).fact("problem", "not_in_directory")
}

/// Whether this person may speak at gates.
pub(crate) fn has_a_say(actor: &Actor) -> Result<(), Rejection> {
    if actor.role.decides() {
        return Ok(());
    }
    let message = format!("a key of the role {} cannot decide", actor.role.word());
    Err(Rejection::new(Reason::NotAnApprover, message))
}

/// Checks that the statement is about what the gate shows.
pub(crate) fn is_meant(open: &OpenGate, shown: Option<Digest>, comment: &str) -> Result<(), Rejection> {
    if shown.is_some() && shown != open.body.shown() {
        let message = "what you were shown is not what this gate is about; look at it again";
        return Err(Rejection::new(Reason::StateMismatch, message).fact("field", "args_digest"));
    }
    check_text("comment", comment, NOTE_BYTES_MAX)
}

/// The refusal that reports the first decision.
pub(crate) fn resolved(closed: &Closed) -> Rejection {
    let refusal =
        |message: String| Rejection::new(Reason::AlreadyResolved, message).fact("at_ms", closed.at.0);
    match &closed.resolution {
        Resolution::Decided { decision, by, comment, via } => {
            let word = decision.word();
            let message = format!("{by} decided before: {word}");
            let refusal = refusal(message);
            let all: Vec<&str> = closed.open.body.votes().map(|vote| vote.by.as_str()).collect();
            let refusal = if all.is_empty() { refusal } else { refusal.fact("approved_by", all.join(" ")) };
            refusal.fact("decision", word).fact("by", by).fact("via", via.word()).fact("comment", comment)
        }
        Resolution::Answered { by, answer, comment, via } => {
            let message = format!("{by} has answered before");
            refusal(message)
                .fact("decision", Decision::Answer.word())
                .fact("by", by)
                .fact("via", via.word())
                .fact("comment", comment)
                .fact("answer", excerpt(&answer.0.to_string()))
        }
        Resolution::Lapsed => {
            let message = "nobody decided in time".to_owned();
            refusal(message).fact("decision", "timeout")
        }
        Resolution::Voided => {
            let message = "the gate was closed when the session moved on".to_owned();
            refusal(message).fact("decision", "voided")
        }
    }
}

/// The beginning of an answer, for the refusal.
fn excerpt(answer: &str) -> &str {
    answer.get(..answer.floor_char_boundary(RESULT_SHOWN_BYTES_MAX)).unwrap_or(answer)
}

/// What approving an asked call makes.
pub(crate) struct Granting {
    grant: Grant,
    /// What the ledgers answered; `None` if no limit applies.
    reserved: Option<LimitCheck>,
}

/// Returns what approving the asked call makes; refused if the session's cap or a limit is used up by now.
pub(crate) fn granting(turn: &Turn<'_, '_>, decide: &DecideGate, open: &OpenGate) -> Result<Granting, Stop> {
    let id = turn.session_id()?;
    let session = turn.session()?;
    if session.grants.len() >= GRANTS_MAX {
        let shortage = Shortage::Grants { most: u32::try_from(GRANTS_MAX).unwrap_or(u32::MAX) };
        let message = shortage.to_string();
        return Err(Rejection::new(Reason::QuotaExceeded, message).shortage(shortage).into());
    }
    let asked = asked_call(turn.rows, turn.command, id, decide)?;
    let asked = asked.ok_or_else(|| switchward_state::ViewError("the gate is about no call".into()))?;
    let GrantPlan { rules, call, over } = asked;
    if let Some((reason, shortage)) = over {
        let message = format!("{shortage}; the gate stays open");
        return Err(Rejection::new(reason, message).shortage(shortage).into());
    }
    let mut reserved = None;
    if !rules.is_empty() {
        let check = fresh(decide.limits.as_ref(), &rules, call.estimate)?;
        match &check.outcome {
            LimitOutcome::Full { money, capability, wait_ms } => {
                let shortage = Shortage::Limit { capability: capability.clone() };
                let message = format!("{shortage}; the gate stays open");
                let reason = if *money { Reason::BudgetExhausted } else { Reason::RateLimited };
                return Err(Rejection::new(reason, message)
                    .fact("capability", capability)
                    .retry_after_ms(Some(*wait_ms))
                    .shortage(shortage)
                    .into());
            }
            LimitOutcome::Available { .. } if check.is_reserved() => reserved = Some(check.clone()),
            LimitOutcome::Available { .. } => return Err(stale()),
        }
    }
    let reservation = (!rules.is_empty() && call.estimate.0 > 0).then(|| gate_name(id, decide.gate));
    let grant = Grant {
        gate: decide.gate.0,
        capability: call.capability,
        digest: call.digest,
        expires: turn.now().after_ms(GRANT_KEPT_MS),
        run: open.head.run,
        reserved: call.estimate,
        reservation,
        rules,
        asked_by: call.asked_by,
    };
    Ok(Granting { grant, reserved })
}

/// Releases the reservation of an approval that counts and does not decide: when it was planned, no other was missing.
pub(crate) fn release(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    check: Option<&LimitCheck>,
) -> Result<(), Stop> {
    let name = gate_name(turn.session_id()?, gate);
    release_reservation(turn, run, name, check)
}

pub(crate) fn make_grant(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    granting: Granting,
) -> Result<(), Stop> {
    let Granting { grant, reserved } = granting;
    let number = turn.session()?.next_id;
    turn.emit(PolicyEvent::GrantMade { number, grant })?;
    let Some(check) = reserved else { return Ok(()) };
    let call = gate_name(turn.session_id()?, gate);
    confirm_reservation(turn, run, call, &check)
}
