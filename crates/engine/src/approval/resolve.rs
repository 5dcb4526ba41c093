//! What the resolution of a gate does.

use serde_json::json;
use switchward_machine::{Decision, ExitIx, GateKind, GateSpec, OpenId, Resolve, RunId, Status, Trigger};
use switchward_state::approval::{ApprovalEvent, OpenGate, Via};
use switchward_state::policy::time_text;
use switchward_state::run::{Deferral, RunEvent, Writer};
use switchward_state::session::SessionEvent;
use switchward_state::work::About;
use switchward_state::{ItemKind, ReadRows as _, ViewError};

use crate::approval::frozen;
use crate::run::data::merge_below;
use crate::turn::{Stop, Turn};

/// What a person said.
pub(crate) struct GateDecision {
    pub(crate) decision: Decision,
    pub(crate) by: String,
    pub(crate) comment: String,
    pub(crate) via: Via,
}

/// Returns the spec of an open gate. Fails if the machine of its run does not have it.
pub(crate) fn spec_of(turn: &Turn<'_, '_>, open: &OpenGate) -> Result<GateSpec, Stop> {
    let machine = turn.machine(&*turn.run(open.head.run)?)?;
    let found = machine.gate(open.body.spec).cloned();
    Ok(found.ok_or_else(|| ViewError("the gate has no spec".into()))?)
}

/// A person has decided: the gate is closed, and a refusal is recorded in the data if the gate's spec says where.
pub(crate) fn close(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    open: &OpenGate,
    given: &GateDecision,
) -> Result<(), Stop> {
    turn.asker = Some(open.body.requester.clone());
    turn.emit(ApprovalEvent::Closed {
        gate,
        decision: given.decision,
        by: given.by.clone(),
        comment: given.comment.clone(),
        via: given.via,
    })?;
    if given.decision != Decision::Refuse {
        return Ok(());
    }
    let Some(key) = spec_of(turn, open)?.record else { return Ok(()) };
    let value = json!({
        "decision": given.decision.word(),
        "by": given.by,
        "comment": given.comment,
        "at": time_text(turn.now()),
    });
    if let Some(full) = merge_below(turn, open.head.run, &key, value, Writer::Person)? {
        turn.emit(SessionEvent::Warned { warning: full.into() })?;
    }
    Ok(())
}

/// What the resolution of a closed gate does; if the session is paused, it happens on resuming, so that a decision is
/// never lost. Grants and denials of calls are handled separately.
pub(crate) fn resolved(turn: &mut Turn<'_, '_>, open: &OpenGate, resolve: &Resolve) -> Result<(), Stop> {
    let exit = || open.body.exit.ok_or_else(|| ViewError("the gate holds no exit".into()));
    // An approval state holds no exit, and its data stand still all the same.
    let waited = open.body.kind == GateKind::Approval || open.body.exit.is_some();
    let ended = if waited { frozen::enter(turn, open.head.run)? } else { None };
    let due = match resolve {
        Resolve::Grant | Resolve::Deny | Resolve::PassOn => return Ok(()),
        Resolve::Stay => match ended {
            // The state's own work, wait or delay ended while its people were asked: whose doing that is asks for what
            // follows.
            Some(ended) => {
                turn.asker = Some(ended.requester);
                ended.due
            }
            None => return stay(turn, open.head.run, exit()?),
        },
        Resolve::TakeHeld => Deferral::Take(exit()?),
        Resolve::End(ending) => Deferral::End(ending.clone()),
        Resolve::Settle(port) => Deferral::Ended(port.clone()),
    };
    now_or_later(turn, open.head.run, due)
}

/// It happens now, or on resuming if the session is paused.
pub(crate) fn now_or_later(turn: &mut Turn<'_, '_>, run: RunId, due: Deferral) -> Result<(), Stop> {
    if turn.session()?.status == Status::Suspended {
        // What a person has decided stands, and so does an error, whatever ends after it. A judgement is kept
        // with its choice.
        let kept = match (&turn.run(run)?.due, &due) {
            (Some(Deferral::Take(_) | Deferral::End(_) | Deferral::Fault(_) | Deferral::Begin), _)
            | (Some(_), Deferral::Judged) => true,
            (
                Some(
                    Deferral::Ended(_)
                    | Deferral::Again
                    | Deferral::Judged
                    | Deferral::Chosen(_)
                    | Deferral::Try(_),
                )
                | None,
                _,
            ) => false,
        };
        if !kept {
            let requester = Some(turn.requester());
            turn.emit(RunEvent::Deferred { run, due, requester })?;
        }
        return Ok(());
    }
    turn.go(run, due);
    Ok(())
}

/// The run stays in its state. A body that ended with a port leaves by it when it next tries to, also if an event has tried
/// another exit since. One that has not ended, because an event has tried the exit, goes on.
pub(crate) fn stay(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<(), Stop> {
    if has_open_part(turn, run)? {
        return Ok(());
    }
    let before = turn.run(run)?.refused.clone();
    let refused = held_port(turn, run, exit)?.or(before);
    turn.emit(RunEvent::Rested { run, refused })?;
    Ok(())
}

/// Returns true if work, a wait or a delay of the run's body is open.
fn has_open_part(turn: &Turn<'_, '_>, run: RunId) -> Result<bool, Stop> {
    for kind in [ItemKind::Wait, ItemKind::Timer] {
        if !turn.open_in(run, kind)?.is_empty() {
            return Ok(true);
        }
    }
    for item in turn.open_in(run, ItemKind::Work)? {
        let work = turn.rows.work_at(&turn.item_key(item)?)?;
        if work.is_some_and(|work| work.body.owed.about == About::Act) {
            return Ok(true);
        }
    }
    Ok(false)
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
        Some(Trigger::Answer(_) | Trigger::Auto { .. } | Trigger::Agent(_)) | None => None,
    })
}
