//! How far a call gets before a ledger must be asked.

use std::sync::Arc;
use switchward_machine::{
    Budget, BudgetUnit, Digest, Machine, Micros, Num, OpenId, SessionId, TenantId, Time,
};

use super::{Judged, Verdict, judge};
use crate::command::{Authorize, Settings};
use crate::reply::MatchedRule;
use crate::state::{Meters, Run, Session};
use crate::working::{Held, Working};
use crate::{Key, Reason, ViewError};

/// How far a call gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Assessment {
    /// It is denied, whatever a ledger says.
    Denied(Reason, String, Option<MatchedRule>),
    /// An approval of exactly this call is at hand.
    Granted(u64),
    /// It depends on the verdict, and on the limits where there are any.
    Open(Judged),
}

/// Whose call it is, and when.
pub(crate) struct Place {
    pub(crate) tenant: TenantId,
    pub(crate) session: SessionId,
    pub(crate) settings: Settings,
    pub(crate) now: Time,
}

/// The run whose caps a session has, with its machine: its own one, whatever runs below it.
pub(crate) fn capped(
    rows: &Working<'_>,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
) -> Result<(Arc<Machine>, Held<Run>), ViewError> {
    let own = rows.run(tenant, id, session.root)?;
    Ok((machine_of(rows, tenant, &own)?, own))
}

/// The machine of a run.
pub(crate) fn machine_of(rows: &Working<'_>, tenant: TenantId, run: &Run) -> Result<Arc<Machine>, ViewError> {
    let found = rows.machine(tenant, run.machine)?;
    found.ok_or_else(|| ViewError(format!("machine {} is not installed", run.machine)))
}

/// Looks at everything but the ledgers, in the fixed order. `machine` is that of the run that calls.
pub(crate) fn assess(
    rows: &Working<'_>,
    place: &Place,
    session: &Session,
    machine: &Machine,
    call: &Authorize,
) -> Result<Assessment, ViewError> {
    let leaf = rows.leaf(place.tenant, place.session, session.root)?;
    let run = rows.run(place.tenant, place.session, leaf)?;
    if let Some((reason, why)) = frozen(session, &run) {
        return Ok(Assessment::Denied(reason, why, None));
    }
    let judged = judge(machine, session, run.node, place.settings, &call.capability, &call.args);
    if let Verdict::Deny(why) = judged.verdict {
        return Ok(Assessment::Denied(Reason::PolicyDenied, why, judged.rule));
    }
    let grant = grant(rows, place, session, call)?;
    // An approval holds its money already: redeeming it must not find its own reservation in the way.
    let (held, estimate) = match &grant {
        Some((_, reserved)) => (*reserved, *reserved),
        None => (Micros(0), call.estimate.unwrap_or_default()),
    };
    let reserved_micros = session.meters.reserved_micros.saturating_sub(held.0);
    let meters = Meters { reserved_micros, ..session.meters };
    let (capped, own) = capped(rows, place.tenant, place.session, session)?;
    if let Some((reason, why)) = over_budget(&capped, &meters, &own, &call.capability, estimate) {
        return Ok(Assessment::Denied(reason, why, judged.rule));
    }
    Ok(match grant {
        Some((number, _)) => Assessment::Granted(number),
        None => Assessment::Open(judged),
    })
}

/// The approval of exactly this call that is at hand: its number, and the money that it holds.
fn grant(
    rows: &Working<'_>,
    place: &Place,
    session: &Session,
    call: &Authorize,
) -> Result<Option<(u64, Micros)>, ViewError> {
    for number in &session.grants {
        let Some(grant) = rows.grant_at(&Key::grant(place.tenant, place.session, *number))? else { continue };
        let same = grant.capability == call.capability && grant.digest == call.args.digest();
        if same && place.now < grant.expires {
            return Ok(Some((*number, grant.reserved)));
        }
    }
    Ok(None)
}

fn frozen(session: &Session, run: &Run) -> Option<(Reason, String)> {
    if session.status == switchward_machine::Status::Suspended {
        return Some((Reason::StateMismatch, "the session is paused".into()));
    }
    run.held.map(|_| (Reason::ApprovalPending, "a person reviews this step first".into()))
}

/// The cap of a budget in this run.
pub(crate) fn cap(budget: &Budget, machine: &Machine, run: &Run) -> u64 {
    match budget.cap {
        Num::Literal(value) => value,
        Num::Param(ix) => match run.params.iter().find(|(known, _)| *known == ix) {
            Some((_, value)) => *value,
            None => machine.params.get(usize::from(ix.0)).map_or(0, |param| param.value),
        },
    }
}

/// What of a budget's unit is used, with what is reserved.
pub(crate) fn used(unit: BudgetUnit, meters: &Meters) -> u64 {
    match unit {
        BudgetUnit::UsdMicros => meters.usd_micros.saturating_add(meters.reserved_micros),
        BudgetUnit::Mails => meters.mails,
    }
}

/// Why the session's own caps stop a call of this cost, where they do.
pub(crate) fn over_budget(
    machine: &Machine,
    meters: &Meters,
    run: &Run,
    capability: &str,
    estimate: Micros,
) -> Option<(Reason, String)> {
    machine.budgets.iter().filter(|budget| budget.stops(capability)).find_map(|budget| {
        let (cap, used) = (cap(budget, machine, run), used(budget.unit, meters));
        match budget.unit {
            BudgetUnit::UsdMicros => {
                let over = used >= cap || used.saturating_add(estimate.0) > cap;
                let (used, cap) = (Micros(used), Micros(cap));
                let why = format!("the session has used or reserved {used} USD of its {cap} USD");
                over.then_some((Reason::BudgetExhausted, why))
            }
            BudgetUnit::Mails => {
                let why = format!("the session has sent {used} of its {cap} mails");
                (used >= cap).then_some((Reason::QuotaExceeded, why))
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
