//! Data that stand still: while an approval of a run is open, nothing changes what its people were shown. Records are
//! refused; what comes from elsewhere is kept with the run, and enters in its order when the approval closes, before
//! anything that follows from that. A failed attempt at the state's work is kept, too, if a server has made it, and the end
//! of the state's wait or delay. See `tests/corpus/conversation/sentences.tsv#003-s22a`.
//!
//! Only a gate of the kind `approval` does that: a tool call that a person is asked about names its arguments itself, and
//! a part of a task approves nothing. Runs that call or are called by this one have data of their own. What a run below
//! gives back is written when it has ended, and while it runs no approval of its caller can be open.

use serde_json::{Map, Value, json};
use switchward_machine::{GateKind, Machine, OpenId, Port, RunId, Writes, reserved_keys::EVENT_KEY};
use switchward_state::limits::{PENDING_INPUT_BYTES_MAX, PENDING_INPUTS_MAX};
use switchward_state::run::{Deferral, Json, PendingFact, PendingInput, Run, WriteProblem, Writer};
use switchward_state::session::{SessionEvent, SessionWarning};
use switchward_state::{Actor, ItemKind, ReadRows as _, Reason, Rejection};

use crate::run::data;
use crate::run::scope::Scope;
use crate::run::writes::{self, Source};
use crate::turn::{Stop, Turn};

/// The approval that the data of a run stand still for; `None` if none is open.
pub(crate) fn gate(turn: &Turn<'_, '_>, run: RunId) -> Result<Option<OpenId>, Stop> {
    let session = turn.session()?;
    for gate in session.open_in(run, ItemKind::Gate) {
        let open = turn.rows.gate(turn.tenant(), turn.session_id()?, gate)?;
        if open.is_some_and(|open| open.body.kind == GateKind::Approval) {
            return Ok(Some(gate));
        }
    }
    Ok(None)
}

/// Refuses to record data while they stand still.
pub(crate) fn may_record(turn: &Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    let Some(gate) = gate(turn, run)? else { return Ok(()) };
    let name = gate_name(turn, gate)?;
    let message = "the data stand still until the open approval is decided; record them afterwards";
    Err(Rejection::new(Reason::ApprovalPending, message).fact("gate", name).into())
}

/// The public name of a gate, without its tenant.
fn gate_name(turn: &Turn<'_, '_>, gate: OpenId) -> Result<String, Stop> {
    let session = turn.session_id()?.to_string();
    Ok(format!("gat_{}_{}", session.strip_prefix("ses_").unwrap_or(&session), gate.0))
}

/// Whether the values fit behind what waits already. Stops when the turn may compute nothing more, which
/// [`check_capacity`] refuses.
pub(crate) fn fits(
    turn: &Turn<'_, '_>,
    run: RunId,
    values: &Map<String, Value>,
) -> Result<Result<(), WriteProblem>, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let writes = writes_of(&machine, &at);
    let mut scope = Scope::of_data(turn, run)?;
    for data in at.pending.iter().filter_map(PendingInput::data) {
        if turn.fuel.is_used_up() {
            break;
        }
        scope = merged(&machine, &writes, scope, data).unwrap_or_else(|(scope, _)| scope);
    }
    let fits = merged(&machine, &writes, scope, &Json(Value::Object(values.clone())));
    Ok(fits.map(|_| ()).map_err(|(_, problem)| problem))
}

/// Refuses an input that cannot be kept until the approval is decided.
pub(crate) fn check_capacity(
    turn: &Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    input: &PendingInput,
) -> Result<(), Stop> {
    let at = turn.run(run)?;
    let bytes: usize = at.pending.iter().map(PendingInput::bytes).sum();
    let name = gate_name(turn, gate)?;
    if turn.fuel.is_used_up() {
        let message = "the events and results that wait for the open approval take too much work together";
        return Err(Rejection::new(Reason::QuotaExceeded, message).fact("gate", name).into());
    }
    if at.pending.len() < PENDING_INPUTS_MAX && bytes.saturating_add(input.bytes()) <= PENDING_INPUT_BYTES_MAX
    {
        return Ok(());
    }
    let message = format!(
        "{PENDING_INPUTS_MAX} events and results or {PENDING_INPUT_BYTES_MAX} bytes of them wait for the open approval"
    );
    Err(Rejection::new(Reason::QuotaExceeded, message).fact("gate", name).into())
}

/// Keeps an input until the approval closes.
pub(crate) fn keep(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    input: PendingInput,
) -> Result<(), Stop> {
    Ok(turn.emit(PendingFact::Held { run, gate, input })?)
}

/// What follows from the end of a wait, which has this port, or from that of the delay before the next attempt.
pub(crate) fn time_over(port: Option<Port>) -> Deferral {
    port.map_or(Deferral::Again, Deferral::Ended)
}

/// The end of the state's own work, wait or delay, which came while an approval was open.
pub(crate) struct PendingEnd {
    /// What follows from it. It counts only if the run stays in its state.
    pub(crate) due: Deferral,
    /// The requester of a gate that opens then.
    pub(crate) requester: String,
}

impl PendingEnd {
    /// One that a server has found: a failure of its own work, or that a time is over.
    fn by_server(due: Deferral) -> Self {
        Self { due, requester: Actor::server().subject }
    }
}

/// The inputs that were kept enter, in their order; each key is written once, with its final value. Returns the end of the
/// state's own work, wait or delay, if that was among them.
pub(crate) fn enter(turn: &mut Turn<'_, '_>, run: RunId) -> Result<Option<PendingEnd>, Stop> {
    let pending = turn.run(run)?.pending.clone();
    if pending.is_empty() {
        return Ok(None);
    }
    let count = u32::try_from(pending.len()).unwrap_or(u32::MAX);
    turn.emit(PendingFact::Entered { run, count })?;
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let writes = writes_of(&machine, &at);
    drop(at);
    let mut scope = Scope::of_data(turn, run)?;
    let mut written: Vec<(String, Writer)> = Vec::new();
    let (mut event_key, mut ended) = (None, None);
    for input in pending {
        let by = match &input {
            PendingInput::Event { key, .. } => {
                event_key = Some(key.clone());
                Writer::Event
            }
            PendingInput::Work { port, requester, .. } => {
                let (due, requester) = (Deferral::Ended(port.clone()), requester.clone());
                ended = Some(PendingEnd { due, requester });
                Writer::Worker
            }
            PendingInput::Failed { fault, .. } => {
                ended = Some(PendingEnd::by_server(Deferral::Fault(fault.clone())));
                Writer::Worker
            }
            PendingInput::TimeOver { port, .. } => {
                ended = Some(PendingEnd::by_server(time_over(port.clone())));
                continue;
            }
        };
        let Some(data) = input.data() else { continue };
        scope = match merged(&machine, &writes, scope, data) {
            Ok(scope) => {
                let keys = data.0.as_object().into_iter().flat_map(Map::keys);
                for key in keys {
                    written.retain(|(known, _)| known != key);
                    written.push((key.clone(), by));
                }
                scope
            }
            // It fitted when it came, and what was decided since has taken its space.
            Err((scope, problem)) => {
                let warning = SessionWarning::WaitedDataFull { problem };
                turn.emit(SessionEvent::Warned { warning })?;
                scope
            }
        };
    }
    let who = turn.requester();
    for (key, by) in written {
        let value = scope.key(&key).cloned().unwrap_or(Value::Null);
        writes::record(turn, run, vec![(key, value)], &Source { by, who: &who })?;
    }
    if let Some(key) = event_key.filter(|_| machine.reserves(EVENT_KEY)) {
        let written = vec![(EVENT_KEY.to_owned(), json!(key))];
        writes::record(turn, run, written, &Source { by: Writer::Event, who: &who })?;
    }
    Ok(ended)
}

/// What data hold once an input is merged into them: all of it, or nothing.
fn merged(
    machine: &Machine,
    writes: &Writes,
    scope: Scope,
    data: &Json,
) -> Result<Scope, (Scope, WriteProblem)> {
    scope.fuel().spend_reads(scope.root(), 2);
    let mut after = scope.clone();
    for (key, value) in data.0.as_object().into_iter().flatten() {
        if let Err(problem) = data::merge(machine, writes, &mut after, key, value.clone()) {
            return Err((scope, problem));
        }
    }
    match writes::fits(machine, after.root(), after.fuel()) {
        Ok(()) => Ok(after),
        Err(problem) => Err((scope, problem)),
    }
}

/// What the node of a run may write.
fn writes_of(machine: &Machine, at: &Run) -> Writes {
    machine.node(at.node).map(|node| node.writes.clone()).unwrap_or_default()
}
