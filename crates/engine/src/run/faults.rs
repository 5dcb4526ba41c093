//! Faults: what goes wrong inside a run, and the one path that it takes: a retry, the boundary, the end of the run.

use switchward_machine::{Boundary, EndReason, Ending, RunId};
use switchward_state::ViewError;
use switchward_state::run::{Deferral, EndComment, Fault, FaultCause, RunEvent};
use switchward_state::session::{SessionEvent, SessionWarning};
use switchward_state::work::{OpenItemBody, TimerItem, Why};

use crate::acts::drop_judges;
use crate::next::Next;
use crate::run::leave::{exit_on, void};
use crate::turn::{Stop, Turn};

/// What a fault leads to. A turn that may compute nothing more ends its runs: no retry and no boundary could do anything.
pub(crate) fn handle(turn: &mut Turn<'_, '_>, run: RunId, fault: Fault) -> Result<Next, Stop> {
    let used_up = turn.fuel.is_used_up();
    let fault = if used_up && fault.ended.is_empty() { FaultCause::TurnFuel.into() } else { fault };
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = machine.node(at.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
    let (stands, again) = (at.node, !used_up && fault.is_retryable() && at.attempt < node.attempts.max);
    drop(at);
    turn.emit(RunEvent::Faulted { run, node: stands, fault: fault.clone() })?;
    if again {
        // What an event asks a judge during the delay is another choice than that of the attempt that has failed.
        drop_judges(turn, run)?;
        void(turn, run)?;
        if node.attempts.backoff_ms == 0 {
            return Ok(Next::Again);
        }
        let due = turn.now().after_ms(node.attempts.backoff_ms);
        turn.open(run, OpenItemBody::Timer(TimerItem { due, why: Why::Backoff }))?;
        return Ok(Next::Rest);
    }
    let failed = |reason| Next::End(Ending::failed(reason), EndComment::Fault(fault.clone()));
    if used_up {
        return Ok(failed(EndReason::Fault(fault.code())));
    }
    Ok(match &node.boundary {
        Boundary::Fail => failed(EndReason::Fault(fault.code())),
        Boundary::Port(port) => match exit_on(node, port) {
            Some(exit) => Next::Take(exit),
            None => failed(EndReason::PortUnconnected),
        },
        Boundary::Ignore(port) => {
            let warning = SessionWarning::Ignored { state: node.name.clone(), fault };
            turn.emit(SessionEvent::Warned { warning })?;
            Next::Settle(port.clone())
        }
    })
}

/// What follows from a fault of a judge. If an event has asked for its verdict, and the state ignores faults, the other
/// exits that listen to events are tried: the body has not ended, and nothing else may be.
pub(crate) fn of_judge(turn: &mut Turn<'_, '_>, run: RunId, fault: Fault) -> Result<Deferral, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = machine.node(at.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
    let (stands, for_event) = (at.node, at.choice.as_ref().is_some_and(|choice| choice.event));
    drop(at);
    if !for_event || !matches!(node.boundary, Boundary::Ignore(_)) {
        return Ok(Deferral::Fault(fault));
    }
    turn.emit(RunEvent::Faulted { run, node: stands, fault: fault.clone() })?;
    let warning = SessionWarning::Ignored { state: node.name.clone(), fault };
    turn.emit(SessionEvent::Warned { warning })?;
    Ok(Deferral::Judged)
}
