//! A cap is set anew on a live run, by an explicit and recorded call.

use switchward_machine::{BudgetUnit, Num};

use crate::command::RaiseCap;
use crate::turn::{Stop, Turn};
use crate::{Event, Reason, Rejection, Reply};

pub(super) fn run(turn: &mut Turn<'_, '_>, raise: &RaiseCap) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let machine = turn.machine(&*turn.run(session.root)?)?;
    let Some(param) = machine.param_named(&raise.param) else {
        let known = machine.params.iter().map(|param| param.name.as_str());
        let message = format!("the definition has no cap called {}", raise.param);
        return Err(Rejection::new(Reason::StateMismatch, message).allowed(known).into());
    };
    let capped = machine.budgets.iter().filter(|budget| budget.cap == Num::Param(param));
    let most = capped.map(|budget| match budget.unit {
        BudgetUnit::UsdMicros => session.meters.usd_micros,
        BudgetUnit::Mails => session.meters.mails,
    });
    let most = most.max().unwrap_or(0);
    if raise.value < most {
        let message = "more than that is used already; a cap cannot be set below what is used";
        return Err(Rejection::new(Reason::BudgetExhausted, message).fact("used", most).into());
    }
    let run = session.root;
    drop(session);
    turn.emit(Event::CapRaised { run, param, value: raise.value })?;
    turn.moved()
}
