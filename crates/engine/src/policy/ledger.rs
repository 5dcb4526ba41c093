//! The ledger of a process: calls are held, counted and settled. See
//! `tests/corpus/checkpoint/sentences.tsv#1b-7a`.

use switchward_machine::{Micros, Time};
use switchward_state::limits::{RESERVATION_RENEWED_MS, RESERVATIONS_MAX};
use switchward_state::policy::{
    Confirm, HeldSince, LimitCheck, LimitOutcome, PolicyEvent, Remaining, Reservation, Reserve, Settle,
    check_limits_in,
};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply, RequestId, Scope, ViewError};

use crate::turn::{Stop, Turn};

/// Reserves a call if no limit is full. Asked again under the same name, it finds the same reservation, and renews one
/// that is about to be too old to be decided on. Its age is measured here, by the ledger's clock alone.
pub(crate) fn reserve(turn: &mut Turn<'_, '_>, reserve: &Reserve) -> Result<Reply, Stop> {
    let process = process(turn)?.to_owned();
    let (rules, estimate) = (&reserve.rules, reserve.estimate);
    if rules.iter().any(|rule| rule.process != process) {
        return Err(ViewError(format!("the ledger of {process} was asked about another's rules")).into());
    }
    if answered(turn, &Confirm::request_of(reserve.call))?
        || answered(turn, &Settle::request_of(reserve.call))?
    {
        let message = "a call of this call_id was counted before; use a new call_id for a new call";
        return Err(Rejection::new(Reason::RequestIdReused, message).fact("field", "call_id").into());
    }
    let (held, now) = (held_since(turn, reserve)?, turn.now());
    let mut check = match held {
        Some(_) => left_after(turn, reserve)?,
        None => check_limits_in(turn.rows, turn.tenant(), rules, estimate, now)?,
    };
    let LimitOutcome::Available { remaining } = &mut check.outcome else {
        return Ok(Reply::Limits(check));
    };
    if held.is_none() {
        remaining.calls = remaining.calls.map(|calls| calls.saturating_sub(1));
        remaining.usd = remaining.usd.map(|usd| usd.minus(estimate));
    }
    let at = match held {
        Some(at) if now.since_ms(at) < RESERVATION_RENEWED_MS => at,
        Some(_) | None => {
            turn.emit(PolicyEvent::LedgerReserved { call: reserve.call, rules: rules.clone(), estimate })?;
            now
        }
    };
    check.age_ms = now.since_ms(at);
    check.held = vec![HeldSince { process, at }];
    Ok(Reply::Limits(check))
}

/// What the limits leave after a call that is reserved: it counts already.
fn left_after(turn: &Turn<'_, '_>, reserve: &Reserve) -> Result<LimitCheck, Stop> {
    let left = check_limits_in(turn.rows, turn.tenant(), &reserve.rules, Micros(0), turn.now())?;
    let remaining = match left.outcome {
        LimitOutcome::Available { remaining } => remaining,
        LimitOutcome::Full { .. } => Remaining { calls: Some(0), usd: None },
    };
    let outcome = LimitOutcome::Available { remaining };
    Ok(LimitCheck { estimate: reserve.estimate, outcome, ..left })
}

/// When the call was reserved, if every rule holds it still.
fn held_since(turn: &Turn<'_, '_>, reserve: &Reserve) -> Result<Option<Time>, Stop> {
    let (mut since, now) = (None, turn.now());
    for rule in &reserve.rules {
        let row =
            turn.rows.ledger_at(&Key::ledger(turn.tenant(), &rule.process, &rule.role, &rule.capability))?;
        let Some(row) = row else { return Ok(None) };
        let same = |held: &&Reservation| held.call == reserve.call && held.estimate == reserve.estimate;
        let found = row.reservations.iter().find(same).filter(|held| held.live(now));
        let Some(found) = found else {
            if row.reservations.len() >= RESERVATIONS_MAX {
                let message = format!("{RESERVATIONS_MAX} calls of {} are not yet settled", rule.capability);
                return Err(Rejection::new(Reason::QuotaExceeded, message).into());
            }
            return Ok(None);
        };
        since = Some(since.map_or(found.at, |at: Time| at.min(found.at)));
    }
    Ok(since)
}

/// The call was permitted: it counts from when it was reserved, even if the reservation has lapsed meanwhile. A call whose
/// report has arrived first holds no money.
pub(crate) fn confirm(turn: &mut Turn<'_, '_>, confirm: &Confirm) -> Result<Reply, Stop> {
    process(turn)?;
    let (call, rules) = (confirm.call, confirm.rules.clone());
    let settled = answered(turn, &Settle::request_of(call))? && !planted!(turn.rows, ConfirmedAfterReport);
    let estimate = if settled { Micros(0) } else { confirm.estimate };
    turn.emit(PolicyEvent::LedgerConfirmed { call, rules, estimate, at: confirm.at })?;
    Ok(Reply::Done)
}

/// The reservation ends, and what the call cost is charged. If the call is not counted yet, its reservation stays until
/// the confirmation arrives: without it, another call could be counted instead.
pub(crate) fn settle(turn: &mut Turn<'_, '_>, settle: &Settle) -> Result<Reply, Stop> {
    process(turn)?;
    let counted = counted(turn, settle)?;
    let reported = match settle.call {
        Some(call) => answered(turn, &Settle::request_of(call))?,
        None => false,
    };
    // A call that was counted, or will be, has nothing to give back.
    if settle.release && (counted || reported) {
        return Ok(Reply::Done);
    }
    let cost = if settle.release { Micros(0) } else { settle.cost };
    if planted!(turn.rows, SettleLost) && !settle.release {
        return Ok(Reply::Done);
    }
    let (early, holds) = (planted!(turn.rows, FreedEarly), planted!(turn.rows, EstimateHeld));
    let frees = (counted || early) && !holds;
    let call = settle.call.filter(|_| settle.release || frees);
    turn.emit(PolicyEvent::LedgerSettled { call, rules: settle.rules.clone(), cost, at: settle.at })?;
    Ok(Reply::Done)
}

/// Returns true if the call was confirmed: the reply to that is remembered, or a row still holds money for it.
fn counted(turn: &Turn<'_, '_>, settle: &Settle) -> Result<bool, Stop> {
    let Some(call) = settle.call else { return Ok(false) };
    if answered(turn, &Confirm::request_of(call))? {
        return Ok(true);
    }
    for rule in &settle.rules {
        let key = Key::ledger(turn.tenant(), &rule.process, &rule.role, &rule.capability);
        let row = turn.rows.ledger_at(&key)?;
        if row.is_some_and(|row| row.reservations.iter().any(|held| held.confirmed && held.call == call)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if the ledger remembers its reply to this request.
fn answered(turn: &Turn<'_, '_>, request: &RequestId) -> Result<bool, Stop> {
    let key = Key::request(turn.tenant(), turn.site.scope, request.hash());
    Ok(turn.rows.request_at(&key)?.is_some())
}

fn process<'t>(turn: &'t Turn<'_, '_>) -> Result<&'t str, ViewError> {
    match turn.site.scope {
        Scope::Ledger(process) => Ok(process),
        Scope::Session(_) | Scope::Catalogue | Scope::Shard => {
            Err(ViewError("the scope is no ledger".into()))
        }
    }
}
