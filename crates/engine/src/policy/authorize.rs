//! May the agent call this? A denial is an answer and an event, not an error.

use switchward_machine::{BudgetUnit, Digest, GateIx, GateKind, Micros, OpenId, Pattern, RunId, sends_mail};
use switchward_state::approval::{Call, Gate, ProposedCall, RequestSubject};
use switchward_state::delivery::EffectBody;
use switchward_state::limits::{CALL_ID_BYTES_MAX, CALLS_OPEN_MAX, OPENS_MAX, RESERVATION_USABLE_MS};
use switchward_state::policy::{
    Authorize, Authorized, CallEffect, CallGrounds, LedgerRule, LimitCheck, LimitOutcome, PolicyEvent,
    Remaining, Shortage, by_ledger,
};
use switchward_state::session::Session;
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::approval::audience;
use crate::delivery::capacity;
use crate::policy::{
    Assessment, AssessmentContext, Grounds, InForce, Judged, PolicyDecision, assess, call_name, in_force,
    used,
};
use crate::turn::{Stop, Turn, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, call: &Authorize) -> Result<Reply, Stop> {
    well_formed(call)?;
    let session = turn.live_session()?;
    let id = turn.session_id()?;
    let force = in_force(turn.rows, turn.tenant(), id, &session, turn.leaf()?)?;
    let settings = turn.command.settings;
    let context = AssessmentContext { tenant: turn.tenant(), session: id, settings, now: turn.now() };
    match assess(turn.rows, &context, &session, &force, call)? {
        Assessment::Denied(reason, grounds, said) => {
            deny(turn, &session, call, Denial { reason, grounds, said: *said, retry_after_ms: None })
        }
        Assessment::Granted(number) => redeem(turn, &force, call, number),
        Assessment::Open(judged) => judged_open(turn, &session, &force, call, judged),
    }
}

/// Checks that it names one call. Also checked before a ledger is asked, so that a refused call holds nothing there.
pub(crate) fn well_formed(call: &Authorize) -> Result<(), Rejection> {
    Pattern::check_call(&call.capability).map_err(|bad| {
        let message = format!("the capability {bad}; name one call, such as mcp:filesystem:write_file");
        Rejection::new(Reason::FieldInvalid, message).fact("field", "capability")
    })?;
    check_text("call_id", &call.call_id, CALL_ID_BYTES_MAX)
}

/// It depends on the limits, if there are any, and then on the decision.
fn judged_open(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    force: &InForce,
    call: &Authorize,
    judged: Judged,
) -> Result<Reply, Stop> {
    let said = Grounds { rule: judged.rule.clone(), layers: judged.several() };
    let left = if judged.limited.is_empty() {
        Remaining::default()
    } else {
        let check = fresh(call.limits.as_ref(), &judged.limited, call.estimate.unwrap_or_default())?;
        match &check.outcome {
            LimitOutcome::Full { money, capability, wait_ms } => {
                let reason = if *money { Reason::BudgetExhausted } else { Reason::RateLimited };
                let grounds = CallGrounds::Short(Shortage::Limit { capability: capability.clone() });
                let retry_after_ms = Some(*wait_ms);
                return deny(turn, session, call, Denial { reason, grounds, said, retry_after_ms });
            }
            LimitOutcome::Available { .. }
                if judged.decision == PolicyDecision::Allow && !check.is_reserved() =>
            {
                return Err(stale());
            }
            LimitOutcome::Available { remaining } => *remaining,
        }
    };
    match judged.decision.clone() {
        PolicyDecision::Ask(spec) => ask(turn, session, force, call, spec, &judged, left),
        PolicyDecision::Allow => allow(turn, session, force, call, &judged, left),
        PolicyDecision::Deny(problem) => {
            let (reason, grounds) = (Reason::PolicyDenied, CallGrounds::Problem(problem));
            deny(turn, session, call, Denial { reason, grounds, said, retry_after_ms: None })
        }
    }
}

/// The ledger's answer, if it is about these very rules and not too old. Its age is the time that the ledger
/// and the caller have counted; it is not compared with this shard's clock, which may differ from theirs.
pub(crate) fn fresh<'c>(
    check: Option<&'c LimitCheck>,
    rules: &[LedgerRule],
    estimate: Micros,
) -> Result<&'c LimitCheck, Stop> {
    check
        .filter(|check| check.rules == rules && check.estimate == estimate)
        .filter(|check| check.age_ms < RESERVATION_USABLE_MS)
        .ok_or_else(stale)
}

pub(crate) fn stale() -> Stop {
    Rejection::new(Reason::LimitsStale, "the ledger must be asked first").into()
}

/// Why a call is denied.
struct Denial {
    reason: Reason,
    grounds: CallGrounds,
    said: Grounds,
    retry_after_ms: Option<u64>,
}

fn deny(turn: &mut Turn<'_, '_>, session: &Session, call: &Authorize, denial: Denial) -> Result<Reply, Stop> {
    let Denial { reason, grounds, said: Grounds { rule, layers }, retry_after_ms } = denial;
    turn.emit(PolicyEvent::CallDenied {
        capability: call.capability.clone(),
        digest: call.args.digest(),
        reason,
        rule: rule.clone(),
        call_id: call.call_id.clone(),
        layers: layers.clone(),
    })?;
    let name = call_name(turn.session_id()?, &call.call_id);
    release_reservation(turn, session.root, name, call.limits.as_ref())?;
    Ok(Reply::Authorized(Box::new(Authorized {
        effect: CallEffect::Deny,
        reason: Some(reason),
        grounds: Some(grounds),
        rule,
        gate: None,
        granted_by: None,
        call_id: call.call_id.clone(),
        retry_after_ms,
        remaining: Remaining::default(),
        layers,
        sequence: 0,
        unnotified: false,
        warnings: Vec::new(),
    })))
}

/// Sends the ledgers the release of a reservation, if `check` says that one was made under this name.
pub(crate) fn release_reservation(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    name: Digest,
    check: Option<&LimitCheck>,
) -> Result<(), Stop> {
    let Some(check) = check.filter(|check| check.is_reserved()) else { return Ok(()) };
    for (process, rules) in by_ledger(&check.rules) {
        let (call, cost, at) = (Some(name), Micros(0), turn.now());
        turn.send(run, EffectBody::Settle { process, call, rules, cost, at, release: true })?;
    }
    Ok(())
}

/// Sends the ledgers the confirmation of a reservation: the call counts in each from when that one reserved it.
pub(crate) fn confirm_reservation(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    call: Digest,
    check: &LimitCheck,
) -> Result<(), Stop> {
    for (process, rules) in by_ledger(&check.rules) {
        let Some(at) = check.held_at(&process) else { continue };
        turn.send(run, EffectBody::Confirm { process, call, rules, estimate: check.estimate, at })?;
    }
    Ok(())
}

fn ask(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    force: &InForce,
    call: &Authorize,
    spec: GateIx,
    judged: &Judged,
    remaining: Remaining,
) -> Result<Reply, Stop> {
    let gate = match asked_before(turn, session, force.caller, call, judged)? {
        Some(gate) => gate,
        None => open_gate(turn, session, force, call, spec, judged)?,
    };
    // When it was planned, nobody was to be asked: what was reserved then is given back.
    let name = call_name(turn.session_id()?, &call.call_id);
    release_reservation(turn, session.root, name, call.limits.as_ref())?;
    Ok(Reply::Authorized(Box::new(Authorized {
        effect: CallEffect::Ask,
        reason: None,
        grounds: Some(CallGrounds::Ask { capability: call.capability.clone() }),
        rule: judged.rule.clone(),
        gate: Some(gate),
        granted_by: None,
        call_id: call.call_id.clone(),
        retry_after_ms: None,
        remaining,
        layers: judged.several(),
        sequence: 0,
        unnotified: false,
        warnings: Vec::new(),
    })))
}

/// The open gate about the same call of the same run with the same arguments, if it shows every layer that asks.
fn asked_before(
    turn: &Turn<'_, '_>,
    session: &Session,
    caller: RunId,
    call: &Authorize,
    judged: &Judged,
) -> Result<Option<OpenId>, Stop> {
    let asking = judged.asking();
    for gate in session.gates() {
        let Some(row) = turn.rows.gate(turn.tenant(), turn.session_id()?, gate)? else { continue };
        let same = row.body.call.as_ref().is_some_and(|asked| {
            row.head.run == caller
                && asked.capability == call.capability
                && asked.digest == call.args.digest()
                && asking.iter().all(|layer| asked.asked_by.contains(layer))
        });
        if same {
            return Ok(Some(gate));
        }
    }
    Ok(None)
}

fn open_gate(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    force: &InForce,
    call: &Authorize,
    spec: GateIx,
    judged: &Judged,
) -> Result<OpenId, Stop> {
    if session.gates().count() >= OPENS_MAX {
        let message = format!("the session waits for {OPENS_MAX} decisions already");
        return Err(Rejection::new(Reason::QuotaExceeded, message).into());
    }
    let gate = OpenId(session.next_id);
    let asked = ProposedCall {
        capability: call.capability.clone(),
        args: call.args.json().to_vec(),
        digest: call.args.digest(),
        estimate: call.estimate.unwrap_or_default(),
        asked_by: judged.asking(),
    };
    turn.emit(PolicyEvent::CallAsked {
        capability: call.capability.clone(),
        digest: call.args.digest(),
        gate,
        rule: judged.rule.clone(),
        call_id: call.call_id.clone(),
        layers: judged.several(),
    })?;
    let requester = turn.command.actor.subject.clone();
    let body = Gate { call: Some(asked), ..Gate::open_to_all(spec, GateKind::ToolAsk, requester) };
    let (definition, capability) = (force.machine.meta.name.clone(), call.capability.clone());
    let subject = RequestSubject::Call { definition, capability };
    audience::open(turn, force.caller, gate, body, subject)?;
    Ok(gate)
}

fn allow(
    turn: &mut Turn<'_, '_>,
    session: &Session,
    force: &InForce,
    call: &Authorize,
    judged: &Judged,
    left: Remaining,
) -> Result<Reply, Stop> {
    let id = turn.session_id()?;
    let name = call_name(id, &call.call_id);
    let reserved = call.estimate.unwrap_or_default();
    let reservation = (!judged.limited.is_empty() && reserved.0 > 0).then_some(name);
    not_counted_yet(session, name)?;
    if !judged.limited.is_empty() {
        not_counted_before(turn, name)?;
    }
    check_capacity(turn, session, call, reserved)?;
    let said = Grounds { rule: judged.rule.clone(), layers: judged.several() };
    let (run, rules) = (force.caller, judged.limited.clone());
    permit(turn, session, call, Permit { run, reserved, reservation, rules, said })?;
    if judged.limited.is_empty() {
        // The rules that the ledgers were asked about do not hold any more: they count nothing, and hold no money.
        release_reservation(turn, session.root, name, call.limits.as_ref())?;
    } else if let Some(check) = call.limits.as_ref() {
        confirm_reservation(turn, session.root, name, check)?;
    }
    let remaining = with_caps(turn, force, &call.capability, left)?;
    let said = Grounds { rule: judged.rule.clone(), layers: judged.several() };
    Ok(allowed(call, said, None, remaining))
}

/// The ledger holds one reservation for all calls of one name until it has counted the first of them; then it refuses the
/// others itself.
fn not_counted_yet(session: &Session, name: Digest) -> Result<(), Rejection> {
    if session.uncounted.contains(&name) {
        return Err(permitted_before());
    }
    if session.uncounted.len() >= CALLS_OPEN_MAX {
        let message = format!("{CALLS_OPEN_MAX} calls of the session are not yet counted");
        return Err(Rejection::new(Reason::QuotaExceeded, message));
    }
    Ok(())
}

/// The ledger may have held the reservation for this call before it counted another call of the name: two permits would
/// count as one.
fn not_counted_before(turn: &Turn<'_, '_>, name: Digest) -> Result<(), Stop> {
    let known = turn.rows.recorded_at(&Key::counted(turn.tenant(), turn.session_id()?, name))?;
    if known.is_some_and(|until| turn.now() < *until) {
        return Err(permitted_before().into());
    }
    Ok(())
}

fn permitted_before() -> Rejection {
    let message = "a call of this call_id was permitted before; use a new call_id for a new call";
    Rejection::new(Reason::RequestIdReused, message).fact("field", "call_id")
}

/// An approved call is made: it neither counts nor checks limits again (`tests/corpus/checkpoint/sentences.tsv#7-2c`).
fn redeem(turn: &mut Turn<'_, '_>, force: &InForce, call: &Authorize, number: u64) -> Result<Reply, Stop> {
    let id = turn.session_id()?;
    let key = Key::grant(turn.tenant(), id, number);
    let grant = turn.rows.grant_at(&key)?.map(|grant| switchward_state::approval::Grant::clone(&grant));
    let grant = grant.ok_or_else(|| switchward_state::ViewError(format!("key {key:?} holds no grant")))?;
    let session = turn.session()?;
    // What is refused is refused before anything is written.
    check_capacity(turn, &session, call, grant.reserved)?;
    turn.emit(PolicyEvent::GrantUsed { number })?;
    let (reserved, reservation, rules) = (grant.reserved, grant.reservation, grant.rules);
    let (run, said) = (force.caller, Grounds::default());
    permit(turn, &session, call, Permit { run, reserved, reservation, rules, said })?;
    // The approval came after the call was planned: it holds a reservation of its own.
    release_reservation(turn, session.root, call_name(id, &call.call_id), call.limits.as_ref())?;
    let remaining = with_caps(turn, force, &call.capability, Remaining::default())?;
    Ok(allowed(call, Grounds::default(), Some(OpenId(grant.gate)), remaining))
}

/// Whether the session can remember the call, and send what it sends.
fn check_capacity(
    turn: &Turn<'_, '_>,
    session: &Session,
    call: &Authorize,
    reserved: Micros,
) -> Result<(), Stop> {
    if is_full(session) && reserved.0 > 0 && oldest_free(turn, session)?.is_none() {
        let message = format!("{CALLS_OPEN_MAX} calls of the session that hold money are not yet reported");
        return Err(Rejection::new(Reason::QuotaExceeded, message).into());
    }
    let Some(mail) = &call.mail else { return Ok(()) };
    let effects = mail.effects();
    let bytes = effects.iter().map(EffectBody::bytes).fold(0, usize::saturating_add);
    let excess = capacity::mails_of(turn, session, effects.len(), bytes);
    excess.map_or(Ok(()), |excess| Err(Rejection::new(Reason::QuotaExceeded, excess.to_string()).into()))
}

/// Whether the session remembers as many unreported calls as it may.
fn is_full(session: &Session) -> bool {
    session.calls.len() >= CALLS_OPEN_MAX
}

/// The oldest unreported call that holds no money. A call that does is remembered instead of it if there are too many.
fn oldest_free(turn: &Turn<'_, '_>, session: &Session) -> Result<Option<u64>, Stop> {
    for number in &session.calls {
        let call = turn.rows.call_at(&Key::call(turn.tenant(), turn.session_id()?, *number))?;
        if call.is_some_and(|call| call.reserved.0 == 0) {
            return Ok(Some(*number));
        }
    }
    Ok(None)
}

/// The mail of a call goes out: the call is made, and nobody need report it. One that holds money, because it was
/// approved with a price, is left to be reported, or to lapse, as any other.
fn send(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    call: &Authorize,
    number: Option<u64>,
    reserved: Micros,
) -> Result<(), Stop> {
    let Some(mail) = &call.mail else { return Ok(()) };
    for effect in mail.effects() {
        turn.send(run, effect)?;
    }
    if reserved.0 == 0 {
        let (capability, run) = (call.capability.clone(), Some(run));
        turn.emit(PolicyEvent::CallReported { number, capability, success: true, run })?;
    }
    Ok(())
}

struct Permit {
    run: RunId,
    reserved: Micros,
    reservation: Option<Digest>,
    rules: Vec<LedgerRule>,
    said: Grounds,
}

fn permit(turn: &mut Turn<'_, '_>, session: &Session, call: &Authorize, permit: Permit) -> Result<(), Stop> {
    let Permit { run, reserved, reservation, rules, said } = permit;
    let free = if is_full(session) && reserved.0 > 0 { oldest_free(turn, session)? } else { None };
    if let Some(number) = free {
        turn.emit(PolicyEvent::CallLapsed { number })?;
    }
    let number = if is_full(session) && free.is_none() { None } else { Some(turn.session()?.next_id) };
    // Every mail counts, capped or not: a tenant's cap holds at once.
    let mail = sends_mail(&call.capability);
    let made = Call {
        call_id: call.call_id.clone(),
        capability: call.capability.clone(),
        at: turn.now(),
        reserved,
        reservation,
        rules,
        run: Some(run),
    };
    let (rule, layers) = (said.rule, said.layers);
    turn.emit(PolicyEvent::CallPermitted {
        number,
        call: made,
        digest: call.args.digest(),
        rule,
        mail,
        layers,
    })?;
    send(turn, run, call, number, reserved)
}

/// What is left after the call, with the session's own caps.
fn with_caps(
    turn: &Turn<'_, '_>,
    force: &InForce,
    capability: &str,
    mut left: Remaining,
) -> Result<Remaining, Stop> {
    let session = turn.session()?;
    for cap in force.caps.iter().filter(|cap| cap.budget.stops(capability)) {
        let free = cap.value.saturating_sub(used(cap.budget.unit, &session.meters));
        left = left.least(match cap.budget.unit {
            BudgetUnit::UsdMicros => Remaining { calls: None, usd: Some(Micros(free)) },
            BudgetUnit::Mails => Remaining { calls: Some(free), usd: None },
        });
    }
    Ok(left)
}

fn allowed(call: &Authorize, said: Grounds, granted_by: Option<OpenId>, remaining: Remaining) -> Reply {
    Reply::Authorized(Box::new(Authorized {
        effect: CallEffect::Allow,
        reason: None,
        grounds: granted_by.map(|_| CallGrounds::Approved),
        rule: said.rule,
        gate: None,
        granted_by,
        call_id: call.call_id.clone(),
        retry_after_ms: None,
        remaining,
        layers: said.layers,
        sequence: 0,
        unnotified: false,
        warnings: Vec::new(),
    }))
}
