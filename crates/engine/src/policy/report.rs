//! What was used is reported, by a call or by no call in particular.

use switchward_machine::{BudgetUnit, Micros, RunId};
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
    let addressed = if turn.command.address.is_some() { Some(turn.leaf()?) } else { None };
    let found = find(turn, &session, report, addressed)?;
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
    let (number, reservation, mut rules, caller) = match found {
        Some((number, call)) => (Some(number), call.reservation, call.rules, call.run),
        None => (None, None, Vec::new(), None),
    };
    let run = match caller.or(addressed) {
        Some(run) => run,
        None => turn.leaf()?,
    };
    let id = turn.session_id()?;
    let force = in_force(turn.rows, turn.tenant(), id, &session, run)?;
    let none = Args::parse(b"").map_err(|bad| switchward_state::ViewError(bad.0))?;
    // The rules that counted the call are charged, and those that have come to hold since.
    for rule in judge(&force, &session, turn.command.settings, &capability, &none).limited {
        if !rules.iter().any(|known| known.counts_with(&rule)) {
            rules.push(rule);
        }
    }
    let (root, before) = (session.root, session.meters);
    drop((session, force));
    turn.emit(PolicyEvent::CallReported { number, capability, success: report.success, run: Some(run) })?;
    meter(turn, run, before, report.cost, report.tokens)?;
    let held = reservation.is_some() && !planted!(turn.rows, FreeCallNotSettled);
    if report.cost.0 > 0 || held {
        let (at, cost, call) = (turn.now(), report.cost, reservation);
        for (process, rules) in by_ledger(&rules) {
            turn.send(root, EffectBody::Settle { process, call, rules, cost, at, release: false })?;
        }
    }
    metered(turn, run)
}

/// Money or tokens were used: they go to the session only.
pub(crate) fn usage(turn: &mut Turn<'_, '_>, report: &ReportUsage) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let before = session.meters;
    drop(session);
    let run = turn.leaf()?;
    meter(turn, run, before, report.cost, report.tokens)?;
    metered(turn, run)
}

/// The reply with what the session has used by now.
fn metered(turn: &Turn<'_, '_>, run: RunId) -> Result<Reply, Stop> {
    let (id, session) = (turn.session_id()?, turn.session()?);
    let caps = in_force(turn.rows, turn.tenant(), id, &session, run)?.caps;
    let cap = |unit| caps.iter().filter(|cap| cap.budget.unit == unit).map(|cap| cap.value).min();
    Ok(Reply::Metered {
        session: id,
        sequence: session.sequence,
        meters: session.meters,
        usd_cap: cap(BudgetUnit::UsdMicros),
        mail_cap: cap(BudgetUnit::Mails),
    })
}

/// Counts what a worker of a run used, if it used anything.
pub(crate) fn counted(turn: &mut Turn<'_, '_>, run: RunId, report: &ReportUsage) -> Result<(), Stop> {
    if report.cost.0 == 0 && report.tokens == 0 {
        return Ok(());
    }
    let before = turn.session()?.meters;
    meter(turn, run, before, report.cost, report.tokens)
}

/// The unreported call that the report is about: the named one, else the oldest of the capability; if the report names a
/// run, of that run. A capability that several runs have called names none of their calls.
fn find(
    turn: &Turn<'_, '_>,
    session: &Session,
    report: &ReportCall,
    run: Option<RunId>,
) -> Result<Option<(u64, Call)>, Stop> {
    let mut oldest: Option<(u64, Call)> = None;
    for number in &session.calls {
        let key = Key::call(turn.tenant(), turn.session_id()?, *number);
        let Some(call) = turn.rows.call_at(&key)? else { continue };
        // A call of which no run is known is of none in particular.
        if run.is_some() && call.run.is_some() && call.run != run {
            continue;
        }
        match (&report.call_id, &report.capability) {
            (Some(id), _) if call.call_id == *id => return Ok(Some((*number, Call::clone(&call)))),
            (None, Some(capability)) if call.capability == *capability => match &oldest {
                Some((_, known)) if known.run == call.run => {}
                Some((_, known)) => of_one_run(turn, known, &call)?,
                None => oldest = Some((*number, Call::clone(&call))),
            },
            (Some(_) | None, _) => {}
        }
    }
    Ok(oldest)
}

/// Refuses a report by a capability that two runs have called, if both are active and runs are active side by side.
fn of_one_run(turn: &Turn<'_, '_>, one: &Call, other: &Call) -> Result<(), Stop> {
    let (Some(first), Some(second)) = (one.run, other.run) else { return Ok(()) };
    let session = turn.session()?;
    let active = turn.active(&session)?;
    if active.leaves(2)?.len() < 2 || !active.is_active(first)? || !active.is_active(second)? {
        return Ok(());
    }
    let message = format!(
        "calls of {} by run {} and run {} wait for a report; name the call or its run",
        one.capability, first.0, second.0
    );
    let refusal = Rejection::new(Reason::StateMismatch, message).fact("field", "address");
    Err(refusal.allowed([&*first.0.to_string(), &*second.0.to_string()]).into())
}

/// Counts what a run used, and says once when a cap is reached by it.
fn meter(turn: &mut Turn<'_, '_>, run: RunId, before: Meters, cost: Micros, tokens: u64) -> Result<(), Stop> {
    turn.emit(PolicyEvent::Metered { cost, tokens })?;
    let session = turn.session()?;
    let id = turn.session_id()?;
    let force = in_force(turn.rows, turn.tenant(), id, &session, run)?;
    let money = force.caps.iter().filter(|cap| cap.budget.unit == BudgetUnit::UsdMicros);
    for Cap { budget, value: cap, .. } in money {
        if before.usd_micros < *cap && session.meters.usd_micros >= *cap {
            turn.emit(PolicyEvent::BudgetExhausted { unit: budget.unit, cap: *cap })?;
        }
    }
    Ok(())
}
