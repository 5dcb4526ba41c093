//! Spawn: runs below this one. See `docs/formats-conversation.md#subworkflow`.

use serde_json::{Map, Value};
use switchward_machine::{
    Act, ActKind, EndReason, Ending, Gives, Kids, Machine, Mapped, Outcome, Port, RunId, Spawn,
};
use switchward_state::limits::{CALL_DEPTH_MAX, ENTRIES_MAX, RUNS_MAX};
use switchward_state::run::{
    EndComment, EndedRun, Fault, FaultCause, Json, Parent, Pinned, RunEvent, Slot, WriteProblem, Writer,
    json_length,
};
use switchward_state::{Key, ReadRows as _, ViewError};

use crate::next::Next;
use crate::run::data::copy;
use crate::run::leave::void;
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// A child is made, with what is mapped to it out of its parent's data, and begins.
pub(crate) fn begin(turn: &mut Turn<'_, '_>, run: RunId, spawn: &Spawn) -> Result<Next, Stop> {
    let pinned = match callee(turn, run, spawn)? {
        Ok(pinned) => pinned,
        Err(fault) => return Ok(Next::Fault(fault)),
    };
    let machine = turn.rows.machine(turn.tenant(), pinned.machine)?;
    let machine = machine.ok_or_else(|| ViewError(format!("machine {} is not installed", pinned.machine)))?;
    let mut scope = Scope::of(Map::new(), &turn.fuel);
    let own = turn.machine(&*turn.run(run)?)?;
    let from = Scope::of_run(turn, run)?;
    let values = mapped(&from, &spawn.input);
    let written = match merged(&own, &machine, &mut scope, values) {
        Ok(written) => written,
        Err(problem) => {
            let cause = FaultCause::ChildInput { definition: pinned.callee.name, problem };
            return Ok(Next::Fault(cause.into()));
        }
    };
    if let Some(fault) = turn.budget.check_bytes(bytes_of(&written)) {
        return Ok(Next::Fault(fault));
    }
    let child = RunId(turn.session()?.runs.saturating_add(1));
    turn.emit(RunEvent::ChildrenPlanned { run, count: 1 })?;
    let parent = Parent { run, entry: turn.run(run)?.entry, index: 0 };
    turn.emit(RunEvent::ChildCreated {
        run: child,
        machine: pinned.machine,
        definition: pinned.callee.name,
        version: pinned.version,
        parent,
    })?;
    for (key, value) in written {
        turn.emit(RunEvent::Wrote { run: child, key, value: Json(value), by: Writer::Start })?;
    }
    Ok(Next::Descend(child))
}

/// The machine that is called; a fault if the session may have no more runs.
fn callee(turn: &Turn<'_, '_>, run: RunId, spawn: &Spawn) -> Result<Result<Pinned, Fault>, Stop> {
    let session = turn.session()?;
    let machine = turn.machine(&*turn.run(run)?)?;
    let Kids::Call(at) = spawn.kids;
    let wanted = machine.callee(at).ok_or_else(|| ViewError(format!("the machine has no {at:?}")))?;
    let Some(pinned) = session.callees.iter().find(|pinned| pinned.callee == *wanted) else {
        return Ok(Err(FaultCause::UnknownCallee { name: wanted.name.clone() }.into()));
    };
    if session.runs >= RUNS_MAX {
        return Ok(Err(FaultCause::TooManyRuns.into()));
    }
    let (mut depth, mut above) = (1, turn.run(run)?.parent);
    while let Some(parent) = above {
        depth += 1;
        above = turn.run(parent.run)?.parent;
    }
    if depth > CALL_DEPTH_MAX {
        return Ok(Err(FaultCause::TooDeep { name: wanted.name.clone() }.into()));
    }
    Ok(Ok(pinned.clone()))
}

/// The values that are there, each with where it comes from and goes to.
fn mapped<'m>(scope: &'m Scope, mapping: &'m [Mapped]) -> Vec<(&'m Mapped, &'m Value)> {
    let value = |one: &'m Mapped| Some((one, scope.get(&one.from).filter(|it| !it.is_null())?));
    mapping.iter().filter_map(value).collect()
}

/// What keys hold once these values of a run of the machine `from` are merged into them: all of it, or nothing.
fn merged(
    from: &Machine,
    machine: &Machine,
    scope: &mut Scope,
    values: Vec<(&Mapped, &Value)>,
) -> Result<Vec<(String, Value)>, WriteProblem> {
    let mut written = Vec::with_capacity(values.len());
    for (one, value) in values {
        copy(from, machine, scope, one, value.clone())?;
        let holds = scope.key(&one.to).cloned().unwrap_or_default();
        scope.fuel().spend_reads(&holds, 2);
        written.push((one.to.clone(), holds));
    }
    Ok(written)
}

/// What keys and their values hold, bytes.
fn bytes_of(written: &[(String, Value)]) -> usize {
    written.iter().map(|(key, value)| key.len() + json_length(value)).sum()
}

/// A child is at its end, and the run that waits for it goes on.
pub(crate) fn ended(
    turn: &mut Turn<'_, '_>,
    parent: Parent,
    child: RunId,
    ending: &Ending,
    comment: EndComment,
) -> Result<Next, Stop> {
    let Parent { run, index, .. } = parent;
    turn.emit(RunEvent::ChildEnded { run, index, child, outcome: ending.outcome })?;
    if ending.outcome == Outcome::Completed {
        return joined(turn, run, child);
    }
    if turn.run(run)?.drained > ENTRIES_MAX {
        // What goes round without an end goes no further up here.
        return Ok(Next::End(Ending::failed(EndReason::DrainLimit), comment));
    }
    let called = EndedRun { definition: turn.run(child)?.definition.clone(), ending: ending.clone() };
    abandon(turn, run)?;
    Ok(Next::Fault(comment.into_fault(called)))
}

/// All children have completed: what they give back is written, all of it or nothing.
fn joined(turn: &mut Turn<'_, '_>, run: RunId, child: RunId) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let act = machine.node(at.node).and_then(|node| node.acts.get(usize::from(at.act.0)));
    let Some(Act { kind: ActKind::Spawn(spawn), .. }) = act else {
        return Err(ViewError("a child has ended, and nothing waits for it".into()).into());
    };
    drop(at);
    let Gives::Return(output) = &spawn.result;
    let from = Scope::of_run(turn, child)?;
    let values = mapped(&from, output);
    let called = turn.machine(&*turn.run(child)?)?;
    let written = merged(&called, &machine, &mut Scope::of_run(turn, run)?, values);
    turn.emit(RunEvent::ChildrenJoined { run })?;
    match written {
        Ok(written) => {
            if let Some(fault) = turn.budget.check_bytes(bytes_of(&written)) {
                return Ok(Next::Fault(fault));
            }
            for (key, value) in written {
                turn.emit(RunEvent::Wrote { run, key, value: Json(value), by: Writer::Child })?;
            }
            Ok(Next::Ended(Port::Done))
        }
        Err(problem) => {
            let definition = turn.run(child)?.definition.clone();
            Ok(Next::Fault(FaultCause::ChildOutput { definition, problem }.into()))
        }
    }
}

/// Abandons the children of a run, and theirs.
pub(crate) fn abandon(turn: &mut Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    let at = turn.run(run)?;
    let (entry, slots) = (at.entry, at.slots);
    drop(at);
    if slots == 0 {
        return Ok(());
    }
    for index in 0..slots {
        let key = Key::slot(turn.tenant(), turn.session_id()?, run, entry, index);
        let Some(Slot::Runs(child)) = turn.rows.slot_at(&key)?.map(|slot| *slot) else { continue };
        void(turn, child)?;
        let ending = Ending::plain(Outcome::Abandoned);
        turn.emit(RunEvent::Ended { run: child, ending, comment: EndComment::default() })?;
    }
    turn.emit(RunEvent::ChildrenJoined { run })?;
    Ok(())
}
