//! Which ledger must be asked before a command can be decided, and what.
//!
//! A limit spans sessions, so its counters live in their own bucket. The caller that submits an `Authorize`, an approving
//! `DecideGate` or a reply by mail plans it first on the session's shard, asks the ledger's shard, and submits it with
//! the answer.

use switchward_machine::{Digest, Micros, Resolve, SessionId, Time};
use switchward_state::approval::{ApprovalCommand, DecideGate, ProposedCall, RecordReply};
use switchward_state::policy::{Args, Authorize, LedgerRule, PolicyCommand, Shortage};
use switchward_state::session::Session;
use switchward_state::{Body, Command, Level, ReadRows, Reason, Scope, View, ViewError};

use crate::approval::decide_gate::entitled;
use crate::approval::{record_reply, votes};
use crate::policy::assess::{Assessment, AssessmentContext, assess, call_name, gate_name, over_budget};
use crate::policy::authorize::well_formed;
use crate::policy::in_force::in_force;
use crate::policy::judge::{PolicyDecision, judge};
use crate::run::address::Active;
use crate::stamp::Stamp;
use crate::turn::{DirectoryRow, Stop, Turn};
use crate::working::Working;

/// What must be asked first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Direct,
    /// To check the limits; nothing is counted (a call that a person is asked about first).
    Look(Ledgers),
    /// To reserve the call.
    Reserve(Ledgers),
}

/// The ledgers, and what they are asked. A call is reserved in all of them or in none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledgers {
    /// The call's name there.
    pub call: Digest,
    /// The rules whose limits are checked; each says in whose ledger it counts, see [`by_ledger`](switchward_state::policy::by_ledger).
    pub rules: Vec<LedgerRule>,
    /// What the call is believed to cost.
    pub estimate: Micros,
}

/// What must be asked before this command can be decided.
///
/// # Errors
/// A row cannot be read.
pub fn plan(view: &dyn View, command: &Command, now: Time) -> Result<Plan, ViewError> {
    if let Body::Policy(PolicyCommand::Authorize(call)) = &command.body {
        plan_authorize(view, command, call, now)
    } else if let Body::Approval(ApprovalCommand::DecideGate(decide)) = &command.body {
        plan_decide(view, command, decide)
    } else if let Body::Approval(ApprovalCommand::RecordReply(reply)) = &command.body {
        plan_reply(view, command, reply, now)
    } else {
        Ok(Plan::Direct)
    }
}

/// What must be asked before this reply can be recorded: one that approves a call counts it. The reply is judged as when it
/// is recorded, so that one that would not count reserves nothing.
fn plan_reply(view: &dyn View, command: &Command, reply: &RecordReply, now: Time) -> Result<Plan, ViewError> {
    let mut rows = Working::new(view);
    let Scope::Session(id) = command.scope else { return Ok(Plan::Direct) };
    if known(&rows, command)? {
        return Ok(Plan::Direct);
    }
    // Nothing is written.
    let stamp = Stamp { now, level: Level::FIRST };
    let (gate, decision) = match record_reply::decides(&Turn::new(&mut rows, command, stamp), reply) {
        Ok(Some(decides)) => decides,
        // What is refused is refused when it is decided.
        Ok(None) | Err(Stop::Refused(_)) => return Ok(Plan::Direct),
        Err(Stop::Broken(error)) => return Err(error),
    };
    let decide =
        DecideGate { gate, decision, comment: String::new(), shown: None, limits: None, proof: None };
    let by = if reply.vouched { &command.actor.subject } else { &reply.from };
    reserving(&rows, command, id, by, &decide)
}

/// What must be asked before this `Authorize` of this session can be decided.
fn plan_authorize(
    view: &dyn View,
    command: &Command,
    call: &Authorize,
    now: Time,
) -> Result<Plan, ViewError> {
    let rows: &dyn ReadRows = view;
    let Scope::Session(id) = command.scope else { return Ok(Plan::Direct) };
    let Some(session) = rows.session(command.tenant, id)? else { return Ok(Plan::Direct) };
    let refused = session.status.ended() || moved_on(command, &session) || well_formed(call).is_err();
    if refused || known(rows, command)? {
        return Ok(Plan::Direct);
    }
    // What is refused is refused when it is decided.
    let active = Active::of(rows, command.tenant, id, &session);
    let Ok(caller) = active.of_command(&session, command)? else { return Ok(Plan::Direct) };
    let force = in_force(rows, command.tenant, id, &session, caller)?;
    let context = AssessmentContext { tenant: command.tenant, session: id, settings: command.settings, now };
    let found = assess(rows, &context, &session, &force, call)?;
    let Assessment::Open(judged) = found else { return Ok(Plan::Direct) };
    if judged.limited.is_empty() {
        return Ok(Plan::Direct);
    }
    let ledgers = Ledgers {
        call: call_name(id, &call.call_id),
        rules: judged.limited,
        estimate: call.estimate.unwrap_or_default(),
    };
    Ok(match judged.decision {
        PolicyDecision::Ask(_) => Plan::Look(ledgers),
        PolicyDecision::Allow | PolicyDecision::Deny(_) => Plan::Reserve(ledgers),
    })
}

/// What must be asked before this `DecideGate` can be decided: approving a call counts it.
fn plan_decide(view: &dyn View, command: &Command, decide: &DecideGate) -> Result<Plan, ViewError> {
    let rows: &dyn ReadRows = view;
    let Scope::Session(id) = command.scope else { return Ok(Plan::Direct) };
    let Some(session) = rows.session(command.tenant, id)? else { return Ok(Plan::Direct) };
    let Some(open) = rows.gate(command.tenant, id, decide.gate)? else { return Ok(Plan::Direct) };
    let people = DirectoryRow::of(rows, command.tenant)?;
    let refused = moved_on(command, &session) || entitled(&command.actor, &open, decide, &people).is_err();
    if refused || known(rows, command)? {
        return Ok(Plan::Direct);
    }
    reserving(rows, command, id, &command.actor.subject, decide)
}

/// A reservation for the call that `by`'s decision grants, if limits apply. An approval after which others are still
/// missing grants nothing and reserves nothing.
fn reserving(
    rows: &dyn ReadRows,
    command: &Command,
    id: SessionId,
    by: &str,
    decide: &DecideGate,
) -> Result<Plan, ViewError> {
    let Some(open) = rows.gate(command.tenant, id, decide.gate)? else { return Ok(Plan::Direct) };
    if !votes::would_decide(&open, by, &*DirectoryRow::of(rows, command.tenant)?) {
        return Ok(Plan::Direct);
    }
    match asked_call(rows, command, id, decide)? {
        Some(GrantPlan { rules, call, over: None }) if !rules.is_empty() => {
            let (name, estimate) = (gate_name(id, decide.gate), call.estimate);
            Ok(Plan::Reserve(Ledgers { call: name, rules, estimate }))
        }
        Some(_) | None => Ok(Plan::Direct),
    }
}

/// The call that a decision would grant.
pub(crate) struct GrantPlan {
    /// The rules whose limits are checked.
    pub(crate) rules: Vec<LedgerRule>,
    /// What the gate shows, with the estimate that is reserved.
    pub(crate) call: ProposedCall,
    /// Why the session's own caps stop it, if they do.
    pub(crate) over: Option<(Reason, Shortage)>,
}

/// The call that this decision would grant; `None` if it grants none.
pub(crate) fn asked_call(
    rows: &dyn ReadRows,
    command: &Command,
    id: SessionId,
    decide: &DecideGate,
) -> Result<Option<GrantPlan>, ViewError> {
    let Some(session) = rows.session(command.tenant, id)? else { return Ok(None) };
    let Some(open) = rows.gate(command.tenant, id, decide.gate)? else { return Ok(None) };
    let force = in_force(rows, command.tenant, id, &session, open.head.run)?;
    let resolve = force.machine.gate(open.body.spec).and_then(|spec| spec.resolve(decide.decision));
    let grants = resolve == Some(&Resolve::Grant);
    let Some(call) = open.body.call.as_ref().filter(|_| grants) else { return Ok(None) };
    let args = Args::parse(&call.args).map_err(|bad| ViewError(format!("stored arguments {}", bad.0)))?;
    let judged = judge(&force, &session, command.settings, &call.capability, &args);
    let over = over_budget(&force.caps, &session.meters, &call.capability, call.estimate);
    Ok(Some(GrantPlan { rules: judged.limited, call: call.clone(), over }))
}

/// Whether the session has moved since the caller looked.
fn moved_on(command: &Command, session: &Session) -> bool {
    command.expected_sequence.is_some_and(|seen| !session.is_seen_at(seen))
}

fn known(rows: &dyn ReadRows, command: &Command) -> Result<bool, ViewError> {
    Ok(crate::remembered::answered_in(rows, command)?.is_some())
}
