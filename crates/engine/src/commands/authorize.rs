//! May the agent call this? A denial is an answer and an event, not an error.

use switchward_machine::{Digest, GateIx, GateKind, Machine, Micros, OpenId, Pattern, SessionId};

use crate::audience;
use crate::budget;
use crate::command::Authorize;
use crate::limits::{CALL_ID_BYTES_MAX, CALLS_OPEN_MAX, OPENS_MAX, RESERVATION_USABLE_MS};
use crate::policy::{
    Assessment, GRANTED, Judged, LimitCheck, LimitOutcome, Place, Verdict, assess, call_name, cap, no_room,
    to_ask, used,
};
use crate::reply::{Authorized, Effect, MatchedRule, Remaining};
use crate::state::{AskedCall, Call, EffectBody, Gate, Session};
use crate::turn::{Stop, Turn, check_text};
use crate::{Event, Key, Reason, Rejection, Reply};

pub(super) fn run(turn: &mut Turn<'_, '_>, call: &Authorize) -> Result<Reply, Stop> {
    well_formed(call)?;
    let session = turn.live_session()?;
    let id = turn.session_id()?;
    let machine = turn.machine(&*turn.run(turn.leaf()?)?)?;
    let capped = turn.machine(&*turn.run(session.root)?)?;
    let settings = turn.command.settings;
    let place = Place { tenant: turn.tenant(), session: id, settings, now: turn.now() };
    match assess(turn.rows, &place, &session, &machine, call)? {
        Assessment::Denied(reason, message, rule) => deny(turn, &session, call, reason, message, rule, None),
        Assessment::Granted(number) => redeem(turn, &capped, call, number),
        Assessment::Open(judged) => judged_open(turn, &session, &machine, &capped, call, judged),
    }
}

/// Whether it names one call. Looked at before a ledger is asked too, so that what is refused holds no place there.
pub(crate) fn well_formed(call: &Authorize) -> Result<(), Rejection> {
    Pattern::check_call(&call.capability).map_err(|bad| {
        let message = format!("the capability {bad}; name one call, such as mcp:filesystem:write_file");
        Rejection::new(Reason::FieldInvalid, message).fact("field", "capability")
    })?;
    check_text("call_id", &call.call_id, CALL_ID_BYTES_MAX)
}

/// `machine` is that of the run that calls, whose policy it is; `capped` that of the session's own, whose caps they are.
fn judged_open(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    machine: &Machine,
    capped: &Machine,
    call: &Authorize,
    judged: Judged,
) -> Result<Reply, Stop> {
    let left = if judged.limited.is_empty() {
        Remaining::default()
    } else {
        let check = fresh(turn, call.limits.as_ref(), &judged.limited, call.estimate.unwrap_or_default())?;
        match &check.outcome {
            LimitOutcome::Full { money, capability, until } => {
                let reason = LimitOutcome::reason(*money);
                let message = no_room(capability);
                let retry = Some(until.since_ms(turn.now()));
                return deny(turn, session, call, reason, message, judged.rule, retry);
            }
            LimitOutcome::Room { reserved: false, .. } if judged.verdict == Verdict::Allow => {
                return Err(stale());
            }
            LimitOutcome::Room { remaining, .. } => *remaining,
        }
    };
    match judged.verdict {
        Verdict::Ask(spec) => ask(turn, session, machine, call, spec, judged.rule, left),
        Verdict::Allow => allow(turn, session, capped, call, &judged, left),
        Verdict::Deny(why) => deny(turn, session, call, Reason::PolicyDenied, why, judged.rule, None),
    }
}

/// The ledger's answer, where it is about these very rules and not too old.
pub(super) fn fresh<'c>(
    turn: &Turn<'_, '_>,
    check: Option<&'c LimitCheck>,
    rules: &[crate::policy::LedgerRule],
    estimate: Micros,
) -> Result<&'c LimitCheck, Stop> {
    check
        .filter(|check| check.rules == rules && check.estimate == estimate)
        .filter(|check| turn.now().since_ms(check.at) < RESERVATION_USABLE_MS)
        .ok_or_else(stale)
}

pub(super) fn stale() -> Stop {
    Rejection::new(Reason::LimitsStale, "the ledger must be asked first").into()
}

fn deny(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    call: &Authorize,
    reason: Reason,
    message: String,
    rule: Option<MatchedRule>,
    retry_after_ms: Option<u64>,
) -> Result<Reply, Stop> {
    turn.emit(Event::CallDenied {
        capability: call.capability.clone(),
        digest: call.args.digest(),
        reason: reason.code().to_owned(),
        rule: rule.clone(),
        call_id: call.call_id.clone(),
    })?;
    if let Some(check) = call
        .limits
        .as_ref()
        .filter(|check| matches!(check.outcome, LimitOutcome::Room { reserved: true, .. }))
    {
        let body = EffectBody::Settle {
            process: session.definition.clone(),
            call: Some(call_name(turn.session_id()?, &call.call_id)),
            rules: check.rules.clone(),
            cost: Micros(0),
            at: turn.now(),
            release: true,
        };
        turn.send(session.root, body)?;
    }
    Ok(Reply::Authorized(Authorized {
        effect: Effect::Deny,
        reason: Some(reason.code().to_owned()),
        message,
        rule,
        gate: None,
        granted_by: None,
        call_id: call.call_id.clone(),
        retry_after_ms,
        remaining: Remaining::default(),
    }))
}

fn ask(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    machine: &Machine,
    call: &Authorize,
    spec: GateIx,
    rule: Option<MatchedRule>,
    remaining: Remaining,
) -> Result<Reply, Stop> {
    let gate = match asked_before(turn, session, call)? {
        Some(gate) => gate,
        None => open_gate(turn, session, machine, call, spec, rule.clone())?,
    };
    Ok(Reply::Authorized(Authorized {
        effect: Effect::Ask,
        reason: None,
        message: to_ask(&call.capability),
        rule,
        gate: Some(gate),
        granted_by: None,
        call_id: call.call_id.clone(),
        retry_after_ms: None,
        remaining,
    }))
}

/// The open gate about the same call with the same arguments.
fn asked_before(turn: &Turn<'_, '_>, session: &Session, call: &Authorize) -> Result<Option<OpenId>, Stop> {
    for open in &session.opens {
        let Some(row) = turn.rows.open(turn.tenant(), turn.session_id()?, *open)? else { continue };
        let asked = row.gate.call.as_ref();
        if asked
            .is_some_and(|asked| asked.capability == call.capability && asked.digest == call.args.digest())
        {
            return Ok(Some(*open));
        }
    }
    Ok(None)
}

fn open_gate(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    machine: &Machine,
    call: &Authorize,
    spec: GateIx,
    rule: Option<MatchedRule>,
) -> Result<OpenId, Stop> {
    if session.opens.len() >= OPENS_MAX {
        let message = format!("the session waits for {OPENS_MAX} decisions already");
        return Err(Rejection::new(Reason::QuotaExceeded, message).into());
    }
    let gate = OpenId(session.next_id);
    let asked = AskedCall {
        capability: call.capability.clone(),
        args: call.args.json().to_vec(),
        digest: call.args.digest(),
        estimate: call.estimate.unwrap_or_default(),
    };
    turn.emit(Event::CallAsked {
        capability: call.capability.clone(),
        digest: call.args.digest(),
        gate,
        rule,
        call_id: call.call_id.clone(),
    })?;
    let requester = turn.command.actor.subject.clone();
    let body = Gate { call: Some(asked), ..Gate::open_to_all(spec, GateKind::ToolAsk, requester) };
    let run = turn.leaf()?;
    let subject = format!("{}: approve {}?", machine.meta.name, call.capability);
    audience::open(turn, run, gate, body, subject)?;
    Ok(gate)
}

fn allow(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    machine: &Machine,
    call: &Authorize,
    judged: &Judged,
    left: Remaining,
) -> Result<Reply, Stop> {
    let id = turn.session_id()?;
    let name = call_name(id, &call.call_id);
    let reserved = call.estimate.unwrap_or_default();
    let reservation = (!judged.limited.is_empty() && reserved.0 > 0).then_some(name);
    not_counted_yet(session, name)?;
    has_room(turn, session, call, reserved)?;
    permit(turn, session, machine, call, reserved, reservation, judged.rule.clone())?;
    if let Some(check) = call.limits.as_ref().filter(|_| !judged.limited.is_empty()) {
        let body = EffectBody::Confirm {
            process: session.definition.clone(),
            call: name,
            rules: judged.limited.clone(),
            estimate: reserved,
            at: check.at,
        };
        turn.send(session.root, body)?;
    }
    let remaining = with_cap(turn, id, machine, &call.capability, left)?;
    Ok(allowed(call, judged.rule.clone(), None, remaining))
}

/// The ledger holds one place for all calls of one name until it has counted the first of them; then it refuses the others
/// itself.
fn not_counted_yet(session: &Session, name: Digest) -> Result<(), Rejection> {
    if session.uncounted.contains(&name) {
        let message = "a call of this call_id was permitted before; use a new call_id for a new call";
        return Err(Rejection::new(Reason::RequestIdReused, message).fact("field", "call_id"));
    }
    if session.uncounted.len() >= CALLS_OPEN_MAX {
        let message = format!("{CALLS_OPEN_MAX} calls of the session are not yet counted");
        return Err(Rejection::new(Reason::QuotaExceeded, message));
    }
    Ok(())
}

/// An approved call is made: it neither counts nor checks limits again (semantics §7, checkpoint (2)).
fn redeem(turn: &mut Turn<'_, '_>, machine: &Machine, call: &Authorize, number: u64) -> Result<Reply, Stop> {
    let id = turn.session_id()?;
    let key = Key::grant(turn.tenant(), id, number);
    let grant = turn.rows.grant_at(&key)?.map(|grant| crate::Grant::clone(&grant));
    let grant = grant.ok_or_else(|| crate::ViewError(format!("key {key:?} holds no grant")))?;
    let session = turn.session()?;
    // What is refused is refused before anything is written.
    has_room(turn, &session, call, grant.reserved)?;
    turn.emit(Event::GrantUsed { number })?;
    permit(turn, &session, machine, call, grant.reserved, grant.reservation, None)?;
    let remaining = with_cap(turn, id, machine, &call.capability, Remaining::default())?;
    Ok(allowed(call, None, Some(OpenId(grant.gate)), remaining))
}

/// Whether the session can remember the call, and send what it sends.
fn has_room(
    turn: &Turn<'_, '_>,
    session: &Session,
    call: &Authorize,
    reserved: Micros,
) -> Result<(), Rejection> {
    if session.calls.len() >= CALLS_OPEN_MAX && reserved.0 > 0 {
        let message = format!("{CALLS_OPEN_MAX} calls of the session are not yet reported");
        return Err(Rejection::new(Reason::QuotaExceeded, message));
    }
    let Some(mail) = &call.mail else { return Ok(()) };
    let effects = mail.effects();
    let bytes = effects.iter().map(EffectBody::bytes).fold(0, usize::saturating_add);
    let fault = budget::mails_of(turn, session, effects.len(), bytes);
    fault.map_or(Ok(()), |fault| Err(Rejection::new(Reason::QuotaExceeded, fault.message)))
}

/// The mail of a call goes out: the call is made, and nobody need report it. One that holds money, because it was approved
/// with a price, is left to be reported, or to lapse, as any other.
fn send(
    turn: &mut Turn<'_, '_>,
    call: &Authorize,
    number: Option<u64>,
    reserved: Micros,
) -> Result<(), Stop> {
    let Some(mail) = &call.mail else { return Ok(()) };
    let run = turn.leaf()?;
    for effect in mail.effects() {
        turn.send(run, effect)?;
    }
    if reserved.0 == 0 {
        turn.emit(Event::CallReported { number, capability: call.capability.clone(), success: true })?;
    }
    Ok(())
}

fn permit(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    machine: &Machine,
    call: &Authorize,
    reserved: Micros,
    reservation: Option<switchward_machine::Digest>,
    rule: Option<MatchedRule>,
) -> Result<(), Stop> {
    let full = session.calls.len() >= CALLS_OPEN_MAX;
    let number = if full { None } else { Some(turn.session()?.next_id) };
    let mails = |budget: &&switchward_machine::Budget| budget.unit == switchward_machine::BudgetUnit::Mails;
    let mail = machine.budgets.iter().filter(mails).any(|budget| budget.stops(&call.capability));
    let made = Call {
        call_id: call.call_id.clone(),
        capability: call.capability.clone(),
        at: turn.now(),
        reserved,
        reservation,
    };
    turn.emit(Event::CallPermitted { number, call: made, digest: call.args.digest(), rule, mail })?;
    send(turn, call, number, reserved)
}

/// What is left after the call, with the session's own cap.
fn with_cap(
    turn: &Turn<'_, '_>,
    id: SessionId,
    machine: &Machine,
    capability: &str,
    mut left: Remaining,
) -> Result<Remaining, Stop> {
    let session = turn.session()?;
    let run = turn.rows.run(turn.tenant(), id, session.root)?;
    for budget in machine.budgets.iter().filter(|budget| budget.stops(capability)) {
        let free = cap(budget, machine, &run).saturating_sub(used(budget.unit, &session.meters));
        match budget.unit {
            switchward_machine::BudgetUnit::UsdMicros => {
                left.usd = Some(left.usd.map_or(Micros(free), |least| least.min(Micros(free))));
            }
            switchward_machine::BudgetUnit::Mails => {
                left.calls = Some(left.calls.map_or(free, |least| least.min(free)));
            }
        }
    }
    Ok(left)
}

fn allowed(
    call: &Authorize,
    rule: Option<MatchedRule>,
    granted_by: Option<OpenId>,
    remaining: Remaining,
) -> Reply {
    let message = if granted_by.is_some() { GRANTED } else { "" };
    Reply::Authorized(Authorized {
        effect: Effect::Allow,
        reason: None,
        message: message.into(),
        rule,
        gate: None,
        granted_by,
        call_id: call.call_id.clone(),
        retry_after_ms: None,
        remaining,
    })
}
