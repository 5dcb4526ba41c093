//! How far a call gets before a ledger must be asked.

use std::sync::Arc;
use switchward_machine::{
    Budget, BudgetUnit, Digest, Machine, Micros, Num, OpenId, RunId, SessionId, TenantId, Time,
};
use switchward_state::catalogue::Settings;
use switchward_state::policy::{Authorize, CallGrounds, CallProblem, LayerDecision, MatchedRule, Shortage};
use switchward_state::run::Run;
use switchward_state::session::{Meters, Session};
use switchward_state::{Key, ReadRows, Reason, ViewError};

use crate::policy::in_force::{Cap, InForce};
use crate::policy::judge::{Judged, PolicyDecision, judge};

/// How far a call gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assessment {
    /// It is denied, whatever a ledger says.
    Denied(Reason, CallGrounds, Box<Grounds>),
    /// An approval of exactly this call is at hand.
    Granted(u64),
    /// It depends on the decision, and on the limits if there are any.
    Open(Judged),
}

/// What the layers said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Grounds {
    /// The rule that decides.
    pub(crate) rule: Option<MatchedRule>,
    /// What each layer said, if several did.
    pub(crate) layers: Vec<LayerDecision>,
}

/// Whose call it is, and when.
pub(crate) struct AssessmentContext {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) settings: Settings,
    pub(crate) now: Time,
}

/// Returns the machine of a run. Fails if it is not installed, which happens before the run is created.
pub(crate) fn machine_of(
    rows: &dyn ReadRows,
    tenant: TenantId,
    run: &Run,
) -> Result<Arc<Machine>, ViewError> {
    let found = rows.machine(tenant, run.machine)?;
    found.ok_or_else(|| ViewError(format!("machine {} is not installed", run.machine)))
}

/// Looks at everything but the ledgers, in the fixed order. `force` is what holds for the run that calls.
pub(crate) fn assess(
    rows: &dyn ReadRows,
    context: &AssessmentContext,
    session: &Session,
    force: &InForce,
    call: &Authorize,
) -> Result<Assessment, ViewError> {
    if let Some((reason, problem)) = frozen(session, &force.run) {
        return Ok(Assessment::Denied(reason, CallGrounds::Problem(problem), Box::default()));
    }
    let judged = judge(force, session, context.settings, &call.capability, &call.args);
    let said = Box::new(Grounds { rule: judged.rule.clone(), layers: judged.several() });
    if let PolicyDecision::Deny(problem) = judged.decision {
        return Ok(Assessment::Denied(Reason::PolicyDenied, CallGrounds::Problem(problem), said));
    }
    let grant = grant(rows, context, session, force.caller, call, &judged)?;
    // An approval holds its money already: redeeming it must not find its own reservation in the way.
    let (held, estimate) = match &grant {
        Some((_, reserved)) => (*reserved, *reserved),
        None => (Micros(0), call.estimate.unwrap_or_default()),
    };
    let reserved_micros = session.meters.reserved_micros.saturating_sub(held.0);
    let meters = Meters { reserved_micros, ..session.meters };
    if let Some((reason, shortage)) = over_budget(&force.caps, &meters, &call.capability, estimate) {
        return Ok(Assessment::Denied(reason, CallGrounds::Short(shortage), said));
    }
    Ok(match grant {
        Some((number, _)) => Assessment::Granted(number),
        None => Assessment::Open(judged),
    })
}

/// The approval of exactly this call of this run that is at hand: its number, and the money that it holds. It stands for the
/// layers that asked when it was given; a layer that asks only since then asks again.
fn grant(
    rows: &dyn ReadRows,
    context: &AssessmentContext,
    session: &Session,
    caller: RunId,
    call: &Authorize,
    judged: &Judged,
) -> Result<Option<(u64, Micros)>, ViewError> {
    for number in &session.grants {
        let Some(grant) = rows.grant_at(&Key::grant(context.tenant, context.session, *number))? else {
            continue;
        };
        let same =
            grant.run == caller && grant.capability == call.capability && grant.digest == call.args.digest();
        let shown = judged.asking().iter().all(|layer| grant.asked_by.contains(layer));
        if same && shown && context.now < grant.expires {
            return Ok(Some((*number, grant.reserved)));
        }
    }
    Ok(None)
}

fn frozen(session: &Session, run: &Run) -> Option<(Reason, CallProblem)> {
    if session.status == switchward_machine::Status::Suspended {
        return Some((Reason::StateMismatch, CallProblem::Paused));
    }
    run.held.map(|_| (Reason::ApprovalPending, CallProblem::Reviewed))
}

/// Returns the cap of a budget in this run. A parameter that was not set at the start has the definition's value.
pub(crate) fn cap(budget: &Budget, machine: &Machine, run: &Run) -> u64 {
    match budget.cap {
        Num::Literal(value) => value,
        Num::Param(ix) => match run.params.iter().find(|(known, _)| *known == ix) {
            Some((_, value)) => *value,
            None => machine.params.get(usize::from(ix.0)).map_or(0, |param| param.value),
        },
    }
}

/// The used part of a budget's unit, with what is reserved.
pub(crate) fn used(unit: BudgetUnit, meters: &Meters) -> u64 {
    match unit {
        BudgetUnit::UsdMicros => meters.usd_micros.saturating_add(meters.reserved_micros),
        BudgetUnit::Mails => meters.mails,
    }
}

/// Why the session's caps stop a call of this cost, if they do.
pub(crate) fn over_budget(
    caps: &[Cap],
    meters: &Meters,
    capability: &str,
    estimate: Micros,
) -> Option<(Reason, Shortage)> {
    caps.iter().filter(|cap| cap.budget.stops(capability)).find_map(|cap| {
        let (most, used, layer) = (cap.value, used(cap.budget.unit, meters), cap.layer.clone());
        match cap.budget.unit {
            BudgetUnit::UsdMicros => {
                let over = used >= most || used.saturating_add(estimate.0) > most;
                let (used, most) = (Micros(used), Micros(most));
                over.then_some((Reason::BudgetExhausted, Shortage::Money { used, most, layer }))
            }
            BudgetUnit::Mails => {
                let shortage = Shortage::Mails { sent: used, most, layer };
                (used >= most).then_some((Reason::QuotaExceeded, shortage))
            }
        }
    })
}

/// The name of a call's reservation.
pub(crate) fn call_name(session: SessionId, call_id: &str) -> Digest {
    Digest::of_parts(&[b"call", &session.0, call_id.as_bytes()])
}

/// The name of the reservation that approving a gate makes.
pub(crate) fn gate_name(session: SessionId, gate: OpenId) -> Digest {
    Digest::of_parts(&[b"gate", &session.0, &gate.0.to_be_bytes()])
}
