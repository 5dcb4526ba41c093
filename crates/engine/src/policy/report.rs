//! What was used is reported, by a call or by no call in particular.

use switchward_machine::{BudgetUnit, Micros};
use switchward_state::approval::Call;
use switchward_state::delivery::EffectBody;
use switchward_state::policy::{Args, PolicyEvent, ReportCall, ReportUsage, by_ledger};
use switchward_state::session::{Meters, Session};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::policy::{Cap, in_force, judge};
use crate::turn::{Stop, Turn, ended};

/// A call was made: its cost goes to the session and to every matching rule of the deciding list.
pub(crate) fn call(turn: &mut Turn<'_, '_>, report: &ReportCall) -> Result<Reply, Stop> {
    let session = turn.session()?;
    turn.expect_sequence(&session)?;
    let found = find(turn, &session, report)?;
    // A call that was permitted before the end may still be reported, or its money would stay reserved.
    if found.is_none() && session.status.ended() {
        return Err(ended(&session).into());
    }
    let capability = match (&found, &report.capability) {
        (Some((_, call)), _) => call.capability.clone(),
        (None, Some(capability)) => capability.clone(),
        (None, None) => {
            let message =
                "there is no such unreported call; name the capability to report a cost all the same";
            return Err(Rejection::new(Reason::NotFound, message).into());
        }
    };
    let (number, reservation, mut rules) = match found {
        Some((number, call)) => (Some(number), call.reservation, call.rules),
        None => (None, None, Vec::new()),
    };
    let id = turn.session_id()?;
    let force = in_force(turn.rows, turn.tenant(), id, &session, turn.leaf()?)?;
    let none = Args::parse(b"").map_err(|bad| switchward_state::ViewError(bad.0))?;
    // The rules that counted the call are charged, and those that have come to hold since.
    for rule in judge(&force, &session, turn.command.settings, &capability, &none).limited {
        if !rules.iter().any(|known| known.counts_with(&rule)) {
            rules.push(rule);
        }
    }
    let (root, before) = (session.root, session.meters);
    drop((session, force));
    turn.emit(PolicyEvent::CallReported { number, capability, success: report.success })?;
    meter(turn, before, report.cost, report.tokens)?;
    let held = reservation.is_some() && !planted!(turn.rows, FreeCallNotSettled);
    if report.cost.0 > 0 || held {
        let (at, cost, call) = (turn.now(), report.cost, reservation);
        for (process, rules) in by_ledger(&rules) {
            turn.send(root, EffectBody::Settle { process, call, rules, cost, at, release: false })?;
        }
    }
    metered(turn)
}

/// Money or tokens were used: they go to the session only.
pub(crate) fn usage(turn: &mut Turn<'_, '_>, report: &ReportUsage) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let before = session.meters;
    drop(session);
    meter(turn, before, report.cost, report.tokens)?;
    metered(turn)
}

/// The reply with what the session has used by now.
fn metered(turn: &Turn<'_, '_>) -> Result<Reply, Stop> {
    let (id, session) = (turn.session_id()?, turn.session()?);
    let caps = in_force(turn.rows, turn.tenant(), id, &session, turn.leaf()?)?.caps;
    let cap = |unit| caps.iter().filter(|cap| cap.budget.unit == unit).map(|cap| cap.value).min();
    Ok(Reply::Metered {
        session: id,
        sequence: session.sequence,
        meters: session.meters,
        usd_cap: cap(BudgetUnit::UsdMicros),
        mail_cap: cap(BudgetUnit::Mails),
    })
}

/// Counts what a worker used, if it used anything.
pub(crate) fn counted(turn: &mut Turn<'_, '_>, report: &ReportUsage) -> Result<(), Stop> {
    if report.cost.0 == 0 && report.tokens == 0 {
        return Ok(());
    }
    let before = turn.session()?.meters;
    meter(turn, before, report.cost, report.tokens)
}

/// The unreported call that the report is about: the named one, else the oldest of the capability.
fn find(turn: &Turn<'_, '_>, session: &Session, report: &ReportCall) -> Result<Option<(u64, Call)>, Stop> {
    for number in &session.calls {
        let key = Key::call(turn.tenant(), turn.session_id()?, *number);
        let Some(call) = turn.rows.call_at(&key)? else { continue };
        let named = match (&report.call_id, &report.capability) {
            (Some(id), _) => call.call_id == *id,
            (None, Some(capability)) => call.capability == *capability,
            (None, None) => false,
        };
        if named {
            return Ok(Some((*number, Call::clone(&call))));
        }
    }
    Ok(None)
}

/// Counts what was used, and says once when a cap is reached by it.
fn meter(turn: &mut Turn<'_, '_>, before: Meters, cost: Micros, tokens: u64) -> Result<(), Stop> {
    turn.emit(PolicyEvent::Metered { cost, tokens })?;
    let session = turn.session()?;
    let id = turn.session_id()?;
    let force = in_force(turn.rows, turn.tenant(), id, &session, turn.leaf()?)?;
    let money = force.caps.iter().filter(|cap| cap.budget.unit == BudgetUnit::UsdMicros);
    for Cap { budget, value: cap, .. } in money {
        if before.usd_micros < *cap && session.meters.usd_micros >= *cap {
            turn.emit(PolicyEvent::BudgetExhausted { unit: budget.unit, cap: *cap })?;
        }
    }
    Ok(())
}
