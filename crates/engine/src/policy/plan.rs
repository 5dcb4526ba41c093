//! Which ledger must be asked before a command can be decided, and what.
//!
//! A limit spans sessions, so its counters live in their own bucket. Whoever submits an `Authorize` or an approving
//! `DecideGate` plans it first on the session's shard, asks the ledger's shard, and submits it with the answer.

use switchward_machine::{Digest, Micros, Resolve, SessionId, Time};

use super::{
    Assessment, LedgerRule, Place, Verdict, assess, call_name, capped, gate_name, judge, machine_of,
    over_budget,
};
use crate::command::{Authorize, Command, DecideGate, Scope};
use crate::commands::{entitled, well_formed};
use crate::state::{AskedCall, Session};
use crate::working::Working;
use crate::{Args, Reason, View, ViewError};

/// What must be asked first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Direct,
    /// Whether there is room; nothing is counted (a call that a person is asked about first).
    Look(Ledgers),
    /// To hold a place.
    Reserve(Ledgers),
}

/// The ledger, and what it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ledgers {
    /// The process whose ledger it is.
    pub process: String,
    /// The call's name there.
    pub call: Digest,
    /// The rules whose limits must have room.
    pub rules: Vec<LedgerRule>,
    /// What the call is believed to cost.
    pub estimate: Micros,
}

/// What must be asked before this `Authorize` of this session can be decided.
///
/// # Errors
/// A row cannot be read.
pub fn plan_authorize(
    view: &dyn View,
    command: &Command,
    call: &Authorize,
    now: Time,
) -> Result<Plan, ViewError> {
    let rows = Working::new(view);
    let Scope::Session(id) = command.scope else { return Ok(Plan::Direct) };
    let Some(session) = rows.session(command.tenant, id)? else { return Ok(Plan::Direct) };
    let refused = session.status.ended() || moved_on(command, &session) || well_formed(call).is_err();
    if refused || known(&rows, command)? {
        return Ok(Plan::Direct);
    }
    let leaf = rows.leaf(command.tenant, id, session.root)?;
    let machine = machine_of(&rows, command.tenant, &*rows.run(command.tenant, id, leaf)?)?;
    let place = Place { tenant: command.tenant, session: id, settings: command.settings, now };
    let found = assess(&rows, &place, &session, &machine, call)?;
    let Assessment::Open(judged) = found else { return Ok(Plan::Direct) };
    if judged.limited.is_empty() {
        return Ok(Plan::Direct);
    }
    let ledgers = Ledgers {
        process: session.definition.clone(),
        call: call_name(id, &call.call_id),
        rules: judged.limited,
        estimate: call.estimate.unwrap_or_default(),
    };
    Ok(match judged.verdict {
        Verdict::Ask(_) => Plan::Look(ledgers),
        Verdict::Allow | Verdict::Deny(_) => Plan::Reserve(ledgers),
    })
}

/// What must be asked before this `DecideGate` can be decided: approving a call counts it.
///
/// # Errors
/// A row cannot be read.
pub fn plan_decide(view: &dyn View, command: &Command, decide: &DecideGate) -> Result<Plan, ViewError> {
    let rows = Working::new(view);
    let Scope::Session(id) = command.scope else { return Ok(Plan::Direct) };
    let Some(session) = rows.session(command.tenant, id)? else { return Ok(Plan::Direct) };
    let Some(open) = rows.open(command.tenant, id, decide.gate)? else { return Ok(Plan::Direct) };
    let refused = moved_on(command, &session) || entitled(&command.actor, &open, decide).is_err();
    if refused || known(&rows, command)? {
        return Ok(Plan::Direct);
    }
    match asked_call(&rows, command, id, decide)? {
        Some(Asked { process, rules, call, over: None }) if !rules.is_empty() => {
            let (name, estimate) = (gate_name(id, decide.gate), call.estimate);
            Ok(Plan::Reserve(Ledgers { process, call: name, rules, estimate }))
        }
        Some(_) | None => Ok(Plan::Direct),
    }
}

/// The call that a decision would grant.
pub(crate) struct Asked {
    /// The process whose ledger it is.
    pub(crate) process: String,
    /// The rules whose limits must have room.
    pub(crate) rules: Vec<LedgerRule>,
    /// The call.
    pub(crate) call: AskedCall,
    /// Why the session's own caps have no room for it, where they have none.
    pub(crate) over: Option<(Reason, String)>,
}

/// The call that this decision would grant; nothing where it grants none.
pub(crate) fn asked_call(
    rows: &Working<'_>,
    command: &Command,
    id: SessionId,
    decide: &DecideGate,
) -> Result<Option<Asked>, ViewError> {
    let Some(session) = rows.session(command.tenant, id)? else { return Ok(None) };
    let Some(open) = rows.open(command.tenant, id, decide.gate)? else { return Ok(None) };
    let run = rows.run(command.tenant, id, open.run)?;
    let machine = machine_of(rows, command.tenant, &run)?;
    let resolve = machine.gate(open.gate.spec).and_then(|spec| spec.resolve(decide.decision));
    let grants = resolve == Some(&Resolve::Grant);
    let Some(call) = open.gate.call.as_ref().filter(|_| grants) else { return Ok(None) };
    let args = Args::parse(&call.args).map_err(|bad| ViewError(format!("stored arguments {}", bad.0)))?;
    let judged = judge(&machine, &session, run.node, command.settings, &call.capability, &args);
    let (capped, own) = capped(rows, command.tenant, id, &session)?;
    let over = over_budget(&capped, &session.meters, &own, &call.capability, call.estimate);
    let process = session.definition.clone();
    Ok(Some(Asked { process, rules: judged.limited, call: call.clone(), over }))
}

/// Whether the session has moved since the caller looked.
fn moved_on(command: &Command, session: &Session) -> bool {
    command.expected_sequence.is_some_and(|seen| seen != session.sequence)
}

fn known(rows: &Working<'_>, command: &Command) -> Result<bool, ViewError> {
    Ok(crate::remembered::answered(rows, command)?.is_some())
}
