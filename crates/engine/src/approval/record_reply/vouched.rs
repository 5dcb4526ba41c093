//! Somebody's reply to a gate as an operator passes it on. Nothing proves who wrote it, so it counts as the operator's own
//! decision: under their name, and only if they may decide the gate.

use switchward_machine::{Decision, Resolve};
use switchward_state::Reply;
use switchward_state::approval::{ApprovalEvent, OpenGate, ReplyOutcome, Via};
use switchward_state::limits::NOTE_BYTES_MAX;

use crate::approval::decide_gate::{make_grant, may_decide, release};
use crate::approval::record_reply::outcome::granting;
use crate::approval::record_reply::{About, AtGate, recorded, replied};
use crate::approval::reply_words::{comment, cut};
use crate::approval::resolve::GateDecision;
use crate::approval::tasks::Given;
use crate::approval::votes::Recorded;
use crate::approval::{discussion, resolve, tasks, votes};
use crate::turn::{Stop, Turn};

/// Takes a reply that the command's actor vouches for. No model is asked what it means: the operator can say so.
pub(crate) fn decide(turn: &mut Turn<'_, '_>, at: &AtGate<'_>) -> Result<Option<Reply>, Stop> {
    let AtGate { run, gate, open, reply, decision } = *at;
    if !reply.vouched {
        return Ok(None);
    }
    // Nothing may be recorded before what can be refused.
    check(turn, open, decision)?;
    let own = reply.text.as_str();
    let spec = resolve::spec_of(turn, open)?;
    let by = turn.command.actor.subject.clone();
    let grant = granting(turn, gate, open, reply, decision, &by)?;
    recorded(turn, run, reply, &About::Gate(gate, Box::new(open.clone())))?;
    let via = Via::Vouched;
    let discusses = spec.resolve(Decision::Discuss).is_some_and(|resolve| *resolve != Resolve::PassOn);
    let passes_on = spec.resolve(Decision::Discuss) == Some(&Resolve::PassOn);
    let outcome = if spec.resolve(Decision::Answer).is_some() {
        let (answer, comment) = (own.trim().into(), String::new());
        tasks::answer(turn, gate, open, Given { answer, by, comment, via })?;
        ReplyOutcome::Answered
    } else if let Some(decision) = decision.or(discusses.then_some(Decision::Discuss)) {
        let said = if decision == Decision::Discuss { cut(own, NOTE_BYTES_MAX) } else { comment(own) };
        let given = GateDecision { decision, by, comment: said, via };
        match votes::record(turn, gate, open, &given)? {
            Recorded::Decides => {
                resolve::close(turn, gate, open, &given)?;
                if let Some(grant) = grant {
                    make_grant(turn, open.head.run, gate, grant)?;
                }
                if let Some(resolve) = spec.resolve(decision) {
                    resolve::resolved(turn, open, resolve)?;
                }
                ReplyOutcome::Decided
            }
            Recorded::Counts(_) => {
                release(turn, open.head.run, gate, reply.limits.as_ref())?;
                ReplyOutcome::Counted
            }
            Recorded::Again(vote, so_far) => return Err(votes::again(&vote, &so_far).into()),
        }
    } else if passes_on {
        discussion::pass_on(turn, gate, open, &by, cut(own, NOTE_BYTES_MAX))?;
        ReplyOutcome::Noted
    } else {
        turn.emit(ApprovalEvent::Commented { gate, by, comment: cut(own, NOTE_BYTES_MAX) })?;
        ReplyOutcome::Noted
    };
    replied(turn, outcome).map(Some)
}

/// Checks that the command's actor may decide so, or may speak at the gate if nothing is decided.
pub(crate) fn check(
    turn: &Turn<'_, '_>,
    open: &OpenGate,
    decision: impl Into<Option<Decision>>,
) -> Result<(), Stop> {
    let (people, actor) = (turn.directory()?, &turn.command.actor);
    may_decide(actor, open, &people)?;
    if decision.into() == Some(Decision::Approve) {
        votes::may_approve(&actor.subject, open, &people)?;
        votes::not_again(turn, open, &actor.subject)?;
    }
    Ok(())
}
