//! A cap is set again on a live run, by an explicit and recorded call.

use switchward_machine::{Budget, BudgetUnit, Machine, Micros, Num};
use switchward_state::policy::{COST_OF_DOCUMENTS, PolicyEvent, RaiseCap};
use switchward_state::session::{SessionEvent, SessionWarning};
use switchward_state::{Reason, Rejection, Reply};

use crate::policy::{COST, InForce, in_force};
use crate::turn::{Stop, Turn};

pub(crate) fn run(turn: &mut Turn<'_, '_>, raise: &RaiseCap) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let machine = turn.machine(&*turn.run(session.root)?)?;
    let id = turn.session_id()?;
    let force = in_force(turn.rows, turn.tenant(), id, &session, turn.stem()?)?;
    // A document that is attached may be raised as the definition's own cap; a tenant's is its admin's alone.
    let attached = force.documents.iter().filter(|document| !document.of_tenant);
    let money = |budget: &Budget| budget.unit == BudgetUnit::UsdMicros;
    let capped = raise.param == COST && attached.flat_map(|document| &document.machine.budgets).any(money);
    let of_documents = capped.then_some(COST_OF_DOCUMENTS);
    let Some(param) = machine.param_named(&raise.param).or(of_documents) else {
        return Err(not_raised(&machine, &force, raise).into());
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
    let lower = of_tenant(&force, raise).filter(|(_, cap)| *cap < raise.value);
    let lower: Vec<SessionWarning> =
        lower.map(|(layer, cap)| SessionWarning::StillCapped { layer: layer.to_owned(), cap }).collect();
    drop(session);
    turn.emit(PolicyEvent::CapRaised { run, param, value: raise.value })?;
    for warning in lower {
        turn.emit(SessionEvent::Warned { warning })?;
    }
    turn.moved()
}

/// The caps of the tenant's policies that this call would raise if they were the definition's own, with their layers.
fn of_tenant<'f>(force: &'f InForce, raise: &RaiseCap) -> impl Iterator<Item = (&'f str, u64)> {
    let named = raise.param == COST;
    let documents = force.documents.iter().filter(move |document| named && document.of_tenant);
    documents.flat_map(|document| {
        let money = document.machine.budgets.iter().filter(|budget| budget.unit == BudgetUnit::UsdMicros);
        money.filter_map(|budget| match budget.cap {
            Num::Literal(cap) => Some((document.layer.as_str(), cap)),
            Num::Param(_) => None,
        })
    })
}

/// The refusal of a raise without a cap that an operator may raise.
fn not_raised(machine: &Machine, force: &InForce, raise: &RaiseCap) -> Rejection {
    if let Some((layer, cap)) = of_tenant(force, raise).next() {
        let message = format!(
            "the definition has no cap called {}; {layer} still caps the session at {} USD; only an admin of the \
             tenant can change that, by setting another version of the policy",
            raise.param,
            Micros(cap)
        );
        return Rejection::new(Reason::StateMismatch, message).fact("layer", layer);
    }
    let known = machine.params.iter().map(|param| param.name.as_str());
    let message = format!("the definition has no cap called {}", raise.param);
    Rejection::new(Reason::StateMismatch, message).allowed(known)
}
