//! The ledger of a process: calls are held, counted and settled. See
//! `tests/corpus/checkpoint/sentences.tsv#1b-7a`.

use switchward_machine::Micros;
use switchward_state::limits::RESERVATIONS_MAX;
use switchward_state::policy::{
    Confirm, LedgerRule, LimitCheck, LimitOutcome, PolicyEvent, Remaining, Reservation, Reserve, Settle,
    check_limits_in,
};
use switchward_state::{Key, Reason, Rejection, Reply, Scope, ViewError};

use crate::turn::{Stop, Turn};

/// Reserves a call if no limit is full. Asked again under the same name, it finds the same reservation.
pub(crate) fn reserve(turn: &mut Turn<'_, '_>, reserve: &Reserve) -> Result<Reply, Stop> {
    let process = process(turn)?;
    let (rules, estimate) = (&reserve.rules, reserve.estimate);
    if rules.iter().any(|rule| rule.process != process) {
        return Err(ViewError(format!("the ledger of {process} was asked about another's rules")).into());
    }
    let counted = Key::request(turn.tenant(), turn.site.scope, Confirm::request_of(reserve.call).hash());
    if turn.rows.request_at(&counted)?.is_some() {
        let message = "a call of this call_id was counted before; use a new call_id for a new call";
        return Err(Rejection::new(Reason::RequestIdReused, message).fact("field", "call_id").into());
    }
    if let Some(held) = held(turn, reserve)? {
        // The reservation is counted already, so what is left is left after it.
        let left = check_limits_in(turn.rows, turn.tenant(), rules, Micros(0), turn.now())?;
        let remaining = match left.outcome {
            LimitOutcome::Available { remaining, .. } => remaining,
            LimitOutcome::Full { .. } => Remaining { calls: Some(0), usd: None },
        };
        let outcome = LimitOutcome::Available { remaining, reserved: true };
        return Ok(Reply::Limits(LimitCheck { rules: rules.clone(), estimate, at: held.at, outcome }));
    }
    let mut check = check_limits_in(turn.rows, turn.tenant(), rules, estimate, turn.now())?;
    let LimitOutcome::Available { remaining, reserved } = &mut check.outcome else {
        return Ok(Reply::Limits(check));
    };
    remaining.calls = remaining.calls.map(|calls| calls.saturating_sub(1));
    remaining.usd = remaining.usd.map(|usd| usd.minus(estimate));
    *reserved = true;
    turn.emit(PolicyEvent::LedgerReserved { call: reserve.call, rules: rules.clone(), estimate })?;
    Ok(Reply::Limits(check))
}

/// The reservation of this name, if every rule has it.
fn held(turn: &Turn<'_, '_>, reserve: &Reserve) -> Result<Option<Reservation>, Stop> {
    let mut found = None;
    for rule in &reserve.rules {
        let row =
            turn.rows.ledger_at(&Key::ledger(turn.tenant(), &rule.process, &rule.role, &rule.capability))?;
        let Some(row) = row else { return Ok(None) };
        let same = |held: &&Reservation| held.call == reserve.call && held.estimate == reserve.estimate;
        found = row.reservations.iter().find(same).cloned();
        if found.is_none() {
            if row.reservations.len() >= RESERVATIONS_MAX {
                let message = format!("{RESERVATIONS_MAX} calls of {} are not yet settled", rule.capability);
                return Err(Rejection::new(Reason::QuotaExceeded, message).into());
            }
            return Ok(None);
        }
    }
    Ok(found)
}

/// The call was permitted: it counts from when it was reserved, even if the reservation has lapsed meanwhile.
pub(crate) fn confirm(turn: &mut Turn<'_, '_>, confirm: &Confirm) -> Result<Reply, Stop> {
    process(turn)?;
    let (call, rules) = (confirm.call, confirm.rules.clone());
    turn.emit(PolicyEvent::LedgerConfirmed { call, rules, estimate: confirm.estimate, at: confirm.at })?;
    Ok(Reply::Done)
}

/// The reservation ends, and what the call cost is charged.
pub(crate) fn settle(turn: &mut Turn<'_, '_>, settle: &Settle) -> Result<Reply, Stop> {
    process(turn)?;
    if settle.release && confirmed(turn, settle)? {
        return Ok(Reply::Done);
    }
    let cost = if settle.release { Micros(0) } else { settle.cost };
    let rules: Vec<LedgerRule> = settle.rules.clone();
    turn.emit(PolicyEvent::LedgerSettled { call: settle.call, rules, cost, at: settle.at })?;
    Ok(Reply::Done)
}

/// Whether the call was counted meanwhile: then there is nothing to give back.
fn confirmed(turn: &Turn<'_, '_>, settle: &Settle) -> Result<bool, Stop> {
    let Some(call) = settle.call else { return Ok(false) };
    let counted = Key::request(turn.tenant(), turn.site.scope, Confirm::request_of(call).hash());
    Ok(turn.rows.request_at(&counted)?.is_some())
}

fn process<'t>(turn: &'t Turn<'_, '_>) -> Result<&'t str, ViewError> {
    match turn.site.scope {
        Scope::Ledger(process) => Ok(process),
        Scope::Session(_) | Scope::Catalogue | Scope::Shard => {
            Err(ViewError("the scope is no ledger".into()))
        }
    }
}
