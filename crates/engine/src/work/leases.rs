//! Workers: they take work for a time, and come back with a result or without one. A lost worker does not count as an
//! attempt, a bad result does. See `docs/workers.md#lease-and-heartbeat`.

use serde_json::Value;
use switchward_machine::limits::NAME_BYTES_MAX;
use switchward_machine::{Accept, ActKind, Machine, OpenId, RunId, WorkKind};
use switchward_state::catalogue::Role;
use switchward_state::limits::{
    LEASE_MS_MAX, LEASE_MS_MIN, LEASES_LAPSED_MAX, NOTE_BYTES_MAX, RESULT_BYTES_MAX, WORKER_BYTES_MAX,
};
use switchward_state::policy::ReportUsage;
use switchward_state::run::{
    Deferral, Fault, FaultCause, Json, Judged, PendingInput, ResultProblem, RunEvent, Writer,
};
use switchward_state::work::{
    About, CompleteWork, ExtendLease, FailWork, LeaseWork, Owed, ReleaseWork, SERVER_WORKER, WorkEvent,
    WorkItem, WorkProblem,
};
use switchward_state::{ItemHead, Loaded, ReadRows as _, Reason, Rejection, Reply, ViewError};

use crate::acts::{AcceptedResult, accepted, no_next, result_schema};
use crate::approval::{classify, frozen, resolve};
use crate::policy::report;
use crate::run::faults;
use crate::run::writes::{self, Source};
use crate::turn::{Stop, Turn, check_size, check_text};

/// Work that is open, with its item's body.
struct OpenWork {
    item: OpenId,
    run: RunId,
    kind: WorkKind,
    owed: Owed,
    trace: Option<String>,
}

impl OpenWork {
    /// Returns true if a server does the work by itself: no worker could wait with the outcome. [`lease`] and [`held`] make
    /// sure that nobody else has such a lease or ends it.
    fn is_of_server(&self) -> bool {
        self.owed.lease.as_ref().is_some_and(|lease| lease.worker == SERVER_WORKER)
    }

    /// Who has the work; empty if nobody has.
    fn worker(&self) -> String {
        self.owed.lease.as_ref().map(|lease| lease.worker.clone()).unwrap_or_default()
    }
}

pub(crate) fn lease(turn: &mut Turn<'_, '_>, lease: &LeaseWork) -> Result<Reply, Stop> {
    check_lease(lease.lease_ms)?;
    if lease.worker.is_empty() {
        let message = "a worker has a name";
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "worker").into());
    }
    check_text("worker", &lease.worker, WORKER_BYTES_MAX)?;
    if lease.worker == SERVER_WORKER && !by_server(turn) {
        let message = format!("{SERVER_WORKER:?} is the name of the servers");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "worker").into());
    }
    let found = find(turn, lease.item)?;
    let now = turn.now();
    match &found.owed.lease {
        Some(held) if held.until > now => {
            let message = "another worker has it";
            let wait = held.until.0 - now.0;
            return Err(Rejection::new(Reason::StateMismatch, message).retry_after_ms(Some(wait)).into());
        }
        Some(_) => turn.emit(WorkEvent::Released { item: found.item, lapsed: true })?,
        None => {}
    }
    let (item, until) = (found.item, now.after_ms(lease.lease_ms));
    let (worker, by) = (lease.worker.clone(), turn.command.actor.subject.clone());
    turn.emit(WorkEvent::Leased { item, worker, until, again: false, by })?;
    Ok(Reply::Leased { item, fence: found.owed.fence + 1, until, loaded: Loaded::default() })
}

/// A word in the first half of a lease writes nothing, so that short heartbeats cost nothing; the reply says until when
/// the work is the worker's.
pub(crate) fn extend(turn: &mut Turn<'_, '_>, extend: &ExtendLease) -> Result<Reply, Stop> {
    check_lease(extend.lease_ms)?;
    let found = held(turn, extend.item, extend.fence)?;
    let (item, fence) = (found.item, extend.fence);
    let until = turn.now().after_ms(extend.lease_ms);
    let Some(lease) = found.owed.lease else { return Err(lost().into()) };
    if until.0.saturating_sub(lease.until.0) < extend.lease_ms / 2 {
        return Ok(Reply::Leased { item, fence, until: lease.until, loaded: Loaded::default() });
    }
    let (worker, by) = (lease.worker, lease.by);
    turn.emit(WorkEvent::Leased { item, worker, until, again: true, by })?;
    Ok(Reply::Leased { item, fence, until, loaded: Loaded::default() })
}

pub(crate) fn release(turn: &mut Turn<'_, '_>, release: &ReleaseWork) -> Result<Reply, Stop> {
    let found = held(turn, release.item, release.fence)?;
    turn.emit(WorkEvent::Released { item: found.item, lapsed: false })?;
    turn.moved()
}

pub(crate) fn fail(turn: &mut Turn<'_, '_>, fail: &FailWork) -> Result<Reply, Stop> {
    check_size("message", fail.failure.bytes(), NOTE_BYTES_MAX, "bytes")?;
    let found = held(turn, fail.item, fail.fence)?;
    let usage = ReportUsage { cost: fail.cost, tokens: fail.tokens };
    if let Some(gate) = frozen_by(turn, &found)? {
        let fault = FaultCause::Worker(fail.failure.clone()).into();
        let outcome = PendingInput::Failed { item: found.item, fault };
        wait_for_gate(turn, &found, gate, outcome, &usage, fail.unknown)?;
        return turn.moved();
    }
    report::counted(turn, found.run, &usage)?;
    let ended = match found.owed.about {
        // A reply that nobody could read counts as undecided; that is no fault of the run.
        About::Reply { .. } => Ended::Reply(None),
        About::Act | About::Judge { .. } => Ended::Fault(FaultCause::Worker(fail.failure.clone()).into()),
    };
    end(turn, &found, ended, fail.unknown)?;
    turn.moved()
}

pub(crate) fn complete(turn: &mut Turn<'_, '_>, complete: &CompleteWork) -> Result<Reply, Stop> {
    check_size("result", switchward_state::run::json_length(&complete.result), RESULT_BYTES_MAX, "bytes")?;
    check_text("next", complete.next.as_deref().unwrap_or_default(), NAME_BYTES_MAX)?;
    let found = held(turn, complete.item, complete.fence)?;
    let usage = ReportUsage { cost: complete.cost, tokens: complete.tokens };
    if found.owed.about != About::Act {
        no_next(complete.next.as_deref())?;
    }
    let ended = match found.owed.about {
        About::Act => {
            let accept = accept_of(turn, &found)?;
            let next = complete.next.as_deref();
            let taken = accepted(turn, found.run, accept.as_ref(), &complete.result, next)?;
            if let Some(gate) = frozen::gate(turn, found.run)? {
                let outcome = pending_result(turn, &found, taken)?;
                let wrong = outcome.fault().and_then(result_problem);
                wait_for_gate(turn, &found, gate, outcome, &usage, false)?;
                return worked(turn, wrong);
            }
            match taken {
                Ok(taken) => Ended::Accepted(taken.written, taken.due),
                Err(fault) => Ended::Fault(fault),
            }
        }
        About::Judge { exit, nth } => match complete.result.get("verdict").and_then(Value::as_bool) {
            Some(holds) => Ended::Judged(Judged { exit, nth, holds }),
            None => Ended::Fault(ResultProblem::NoJudgement.into()),
        },
        About::Reply { .. } => Ended::Reply(classify::port_of(&found.owed, &complete.result)),
    };
    // An answer of HTTP that says no is a result all the same; what does not fit its schema is none.
    let wrong = match &ended {
        Ended::Fault(fault) => result_problem(fault),
        Ended::Reply(None) => Some(ResultProblem::NoPort),
        Ended::Accepted(..) | Ended::Judged(_) | Ended::Reply(Some(_)) => None,
    };
    report::counted(turn, found.run, &usage)?;
    end(turn, &found, ended, false)?;
    worked(turn, wrong)
}

/// Answers who did the work, with the position after it; `wrong` says why the result was not taken.
fn worked(turn: &Turn<'_, '_>, wrong: Option<ResultProblem>) -> Result<Reply, Stop> {
    Ok(Reply::Worked { session: turn.session_id()?, sequence: turn.session()?.sequence, wrong })
}

/// Returns what is wrong with a result if that is what has gone wrong.
fn result_problem(fault: &Fault) -> Option<ResultProblem> {
    if let FaultCause::Result(problem) = &fault.cause { Some(problem.clone()) } else { None }
}

/// A result that comes while an approval of its run is open: what it brings waits for that. One that brings nothing ends
/// the work and no more, and the answer may make that void: it waits with its worker. A server has done the work outside
/// and would do it again, so all that it has waits here, and what does not fit has failed.
fn pending_result(
    turn: &Turn<'_, '_>,
    found: &OpenWork,
    taken: Result<AcceptedResult, Fault>,
) -> Result<PendingInput, Stop> {
    let (item, of_server) = (found.item, found.is_of_server());
    let (brought, port) = match taken {
        Ok(AcceptedResult { brought, due: Deferral::Ended(port), .. })
            if of_server || !brought.is_empty() =>
        {
            (brought, port)
        }
        Err(fault) if of_server => return Ok(PendingInput::Failed { item, fault }),
        Ok(_) | Err(_) => return Err(asked_first().into()),
    };
    match frozen::fits(turn, found.run, &brought)? {
        Ok(()) => {
            let (data, requester) = (Json(Value::Object(brought)), turn.requester());
            Ok(PendingInput::Work { item, data, port, requester })
        }
        Err(problem) if of_server => {
            Ok(PendingInput::Failed { item, fault: ResultProblem::Write(problem).into() })
        }
        Err(problem) => {
            let message = problem.to_string();
            Err(Rejection::new(Reason::SchemaViolation, message).fact("field", "result").into())
        }
    }
}

/// Work is done, and its outcome waits for an approval of its run. That of a server waits beyond what may wait otherwise:
/// a state has one piece of work open at one time, so it is one outcome.
fn wait_for_gate(
    turn: &mut Turn<'_, '_>,
    found: &OpenWork,
    gate: OpenId,
    outcome: PendingInput,
    usage: &ReportUsage,
    unknown: bool,
) -> Result<(), Stop> {
    let (item, run, worker) = (found.item, found.run, found.worker());
    if !found.is_of_server() {
        frozen::check_capacity(turn, run, gate, &outcome)?;
    }
    report::counted(turn, run, usage)?;
    turn.follows(found.trace.as_ref());
    let wrong = outcome.fault().cloned().map(WorkProblem::Fault);
    turn.emit(WorkEvent::Done { item, run, worker, wrong, unknown })?;
    frozen::keep(turn, run, gate, outcome)
}

/// A lease is over, and nobody has come back: the work is another's, or was handed out too often.
pub(crate) fn lapse(turn: &mut Turn<'_, '_>, item: OpenId, owed: &Owed, run: RunId) -> Result<(), Stop> {
    turn.emit(WorkEvent::Released { item, lapsed: true })?;
    if owed.lapsed + 1 < LEASES_LAPSED_MAX || turn.run(run)?.held.is_some() {
        return Ok(());
    }
    let worker = owed.lease.as_ref().map(|lease| lease.worker.clone()).unwrap_or_default();
    let fault = Fault::from(FaultCause::LeasesLapsed);
    let wrong = Some(WorkProblem::Fault(fault.clone()));
    turn.emit(WorkEvent::Done { item, run, worker, wrong, unknown: true })?;
    if let About::Reply { .. } = owed.about {
        return classify::answered(turn, run, owed, None);
    }
    not_of_judge(turn, run, owed.about)?;
    let due = failed(turn, run, owed.about, fault)?;
    resolve::now_or_later(turn, run, due)
}

/// A judge asks for nothing: the requester of what follows is the one who has caused the choice.
fn not_of_judge(turn: &mut Turn<'_, '_>, run: RunId, about: About) -> Result<(), ViewError> {
    if let About::Judge { .. } = about {
        turn.asker = turn.run(run)?.choice.as_ref().map(|choice| choice.requester.clone());
    }
    Ok(())
}

/// What the end of work leads to.
enum Ended {
    /// This is written, and that follows.
    Accepted(Vec<(String, Value)>, Deferral),
    /// A guard is judged.
    Judged(Judged),
    /// A reply means this port, or nothing that may be.
    Reply(Option<String>),
    /// The attempt has failed.
    Fault(Fault),
}

fn end(turn: &mut Turn<'_, '_>, found: &OpenWork, ended: Ended, unknown: bool) -> Result<(), Stop> {
    turn.follows(found.trace.as_ref());
    let (item, run, worker) = (found.item, found.run, found.worker());
    let wrong = match &ended {
        Ended::Fault(fault) => Some(WorkProblem::Fault(fault.clone())),
        Ended::Reply(None) => Some(WorkProblem::Undecided),
        Ended::Accepted(..) | Ended::Judged(_) | Ended::Reply(Some(_)) => None,
    };
    turn.emit(WorkEvent::Done { item, run, worker, wrong, unknown })?;
    not_of_judge(turn, run, found.owed.about)?;
    let due = match ended {
        Ended::Accepted(written, due) => {
            writes::record(turn, run, written, &Source { by: Writer::Worker, who: &found.worker() })?;
            due
        }
        Ended::Judged(judged) => {
            turn.emit(RunEvent::Judged { run, judged })?;
            Deferral::Judged
        }
        Ended::Reply(port) => return classify::answered(turn, run, &found.owed, port.as_deref()),
        Ended::Fault(fault) => failed(turn, run, found.owed.about, fault)?,
    };
    resolve::now_or_later(turn, run, due)
}

/// What follows from work that has failed. What could not be judged does not hold: if the fault is ignored, nobody is asked
/// again.
fn failed(turn: &mut Turn<'_, '_>, run: RunId, about: About, fault: Fault) -> Result<Deferral, Stop> {
    match about {
        About::Act | About::Reply { .. } => Ok(Deferral::Fault(fault)),
        About::Judge { exit, nth } => {
            turn.emit(RunEvent::Judged { run, judged: Judged { exit, nth, holds: false } })?;
            faults::of_judge(turn, run, fault)
        }
    }
}

/// Returns the approval that the failure of a server's work waits for; `None` if no person is asked whether the state may be
/// left. Any other work waits with its worker: the answer may make it void.
fn frozen_by(turn: &Turn<'_, '_>, found: &OpenWork) -> Result<Option<OpenId>, Stop> {
    if found.owed.about != About::Act || turn.run(found.run)?.held.is_none() {
        return Ok(None);
    }
    let gate = frozen::gate(turn, found.run)?.filter(|_| found.is_of_server());
    Ok(Some(gate.ok_or_else(asked_first)?))
}

fn asked_first() -> Rejection {
    let message = "a person is asked first whether the state is left; keep the lease and try again";
    Rejection::new(Reason::ApprovalPending, message)
}

fn check_lease(lease_ms: u64) -> Result<(), Rejection> {
    if (LEASE_MS_MIN..=LEASE_MS_MAX).contains(&lease_ms) {
        return Ok(());
    }
    let message = format!("a lease is {LEASE_MS_MIN} to {LEASE_MS_MAX} milliseconds, not {lease_ms}");
    Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "lease"))
}

fn lost() -> Rejection {
    Rejection::new(
        Reason::LeaseLost,
        "the work is another's by now, or nobody's any more; what was done is void",
    )
}

/// The open work of this number.
fn find(turn: &Turn<'_, '_>, item: OpenId) -> Result<OpenWork, Stop> {
    turn.session()?;
    let Some(open) = turn.rows.work_at(&turn.item_key(item)?)? else { return Err(lost().into()) };
    let (ItemHead { run, trace, .. }, WorkItem { kind, owed }) = (open.head.clone(), open.body.clone());
    Ok(OpenWork { item, run, kind, owed, trace })
}

/// The same, if the caller holds its lease: the number is that of its last lease, and the caller's key has the subject of the
/// key that took it. The number alone proves nothing, because anybody can compute it. Keys may have the subject `server`,
/// so the leases of servers also require a caller with the role of a server.
fn held(turn: &Turn<'_, '_>, item: OpenId, fence: u64) -> Result<OpenWork, Stop> {
    let session = turn.session()?;
    turn.expect_sequence(&session)?;
    let found = find(turn, item)?;
    let by = found.owed.lease.as_ref().map(|lease| &lease.by);
    if by != Some(&turn.command.actor.subject) || found.owed.fence != fence {
        return Err(lost().into());
    }
    if found.is_of_server() && !by_server(turn) {
        return Err(lost().into());
    }
    Ok(found)
}

fn by_server(turn: &Turn<'_, '_>) -> bool {
    turn.command.actor.role == Role::Server
}

fn accept_of(turn: &Turn<'_, '_>, found: &OpenWork) -> Result<Option<Accept>, Stop> {
    let at = turn.run(found.run)?;
    let machine = turn.machine(&at)?;
    Ok(accept_at(&machine, &at)
        .ok_or_else(|| ViewError(format!("no work of the kind {}", found.kind.word())))?)
}

/// What the work of the body's current part accepts.
fn accept_at(machine: &Machine, at: &switchward_state::run::Run) -> Option<Option<Accept>> {
    match &machine.node(at.node)?.acts.get(usize::from(at.act.0))?.kind {
        ActKind::Work(work) => Some(work.accept.clone()),
        ActKind::Ask(_) | ActKind::Do(_) | ActKind::Wait(_) | ActKind::Decide(_) | ActKind::Spawn(_) => None,
    }
}

/// The JSON Schema that a result of open work must meet.
pub(crate) fn schema_of(machine: &Machine, at: &switchward_state::run::Run, owed: &Owed) -> Value {
    match owed.about {
        About::Act => {
            let (node, accept) = (machine.node(at.node), accept_at(machine, at));
            let schema = |(node, accept): (_, Option<Accept>)| {
                result_schema(machine, node, accept.as_ref(), &owed.input.0)
            };
            node.zip(accept).map(schema).unwrap_or_default()
        }
        About::Judge { .. } => serde_json::json!({
            "type": "object",
            "properties": { "verdict": { "type": "boolean" } },
            "required": ["verdict"],
        }),
        About::Reply { .. } => classify::schema(owed),
    }
}
