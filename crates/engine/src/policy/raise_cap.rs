//! A cap is set again on a live run, by an explicit and recorded call.

use switchward_machine::{Budget, BudgetUnit, Num};
use switchward_state::policy::{PolicyEvent, RaiseCap};
use switchward_state::{Reason, Rejection, Reply};

use crate::policy::{COST, COST_OF_DOCUMENTS, in_force};
use crate::turn::{Stop, Turn};

pub(crate) fn run(turn: &mut Turn<'_, '_>, raise: &RaiseCap) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let machine = turn.machine(&*turn.run(session.root)?)?;
    let id = turn.session_id()?;
    let force = in_force(turn.rows, turn.tenant(), id, &session, turn.leaf()?)?;
    // A document that is attached may be raised as the definition's own cap; a tenant's is its admin's alone.
    let attached = force.documents.iter().filter(|document| !document.of_tenant);
    let money = |budget: &Budget| budget.unit == BudgetUnit::UsdMicros;
    let capped = raise.param == COST && attached.flat_map(|document| &document.machine.budgets).any(money);
    let of_documents = capped.then_some(COST_OF_DOCUMENTS);
    let Some(param) = machine.param_named(&raise.param).or(of_documents) else {
        let known = machine.params.iter().map(|param| param.name.as_str());
        let message = format!("the definition has no cap called {}", raise.param);
        return Err(Rejection::new(Reason::StateMismatch, message).allowed(known).into());
    };
    let own = machine.budgets.iter().filter(|budget| budget.cap == Num::Param(param));
    let units = own.map(|budget| budget.unit).chain(capped.then_some(BudgetUnit::UsdMicros));
    let most = units.map(|unit| match unit {
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
    turn.emit(PolicyEvent::CapRaised { run, param, value: raise.value })?;
    turn.moved()
}
