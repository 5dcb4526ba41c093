//! Spawn: runs below this one. See `docs/formats-conversation.md#subworkflow`.

use serde_json::Value;
use std::collections::BTreeMap;
use switchward_machine::{
    Act, ActKind, CalleeIx, EndReason, Ending, FixedChild, Gives, Kids, Machine, Mapped, Outcome, Port,
    RunId, Spawn,
};
use switchward_state::limits::{CALL_DEPTH_MAX, ENTRIES_MAX, RUNS_MAX};
use switchward_state::run::{
    EndComment, EndedRun, Fault, FaultCause, Frame, Parent, Pinned, RunEvent, Slot, WriteProblem, Writer,
    json_length,
};
use switchward_state::{Key, ReadRows as _, ViewError};

use crate::next::Next;
use crate::run::leave::void;
use crate::run::scope::Scope;
use crate::run::writes::{self, Source, Writing};
use crate::turn::{Stop, Turn};

pub(crate) fn begin(turn: &mut Turn<'_, '_>, run: RunId, spawn: &Spawn) -> Result<Next, Stop> {
    match &spawn.kids {
        Kids::Call(at) => call(turn, run, *at, &spawn.input),
        Kids::Fixed(children) => begin_fixed(turn, run, children),
    }
}

/// Children of the run's own machine are made, and begin one after the other, as far as each gets.
fn begin_fixed(turn: &mut Turn<'_, '_>, run: RunId, children: &[FixedChild]) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let own = turn.machine(&at)?;
    let node = own.node(at.node).map(|node| node.name.clone()).unwrap_or_default();
    let (machine, definition, version, entry) = (at.machine, at.definition.clone(), at.version, at.entry);
    drop(at);
    let (before, count) = (turn.session()?.runs, u32::try_from(children.len()).unwrap_or(u32::MAX));
    if before.saturating_add(count) > RUNS_MAX {
        return Ok(Next::Fault(FaultCause::TooManyRuns.into()));
    }
    if depth_below(turn, run)? > CALL_DEPTH_MAX {
        return Ok(Next::Fault(FaultCause::TooDeep { name: definition }.into()));
    }
    turn.emit(RunEvent::ChildrenPlanned { run, count })?;
    let begun: Vec<(RunId, &FixedChild)> = (1..).map(|at| RunId(before + at)).zip(children).collect();
    for (index, (child, fixed)) in (0..).zip(&begun) {
        turn.emit(RunEvent::ChildCreated {
            run: *child,
            machine,
            definition: definition.clone(),
            version,
            parent: Parent { run, entry, index },
            frame: Some(Frame { label: format!("{node}.{}", fixed.name) }),
        })?;
    }
    for (child, fixed) in begun {
        turn.go_if_there(child, Next::Enter(fixed.node), None)?;
    }
    Ok(Next::Rest)
}

/// A child is made, with what is mapped to it out of its parent's data, and begins.
fn call(turn: &mut Turn<'_, '_>, run: RunId, at: CalleeIx, input: &[Mapped]) -> Result<Next, Stop> {
    let pinned = match callee(turn, run, at)? {
        Ok(pinned) => pinned,
        Err(fault) => return Ok(Next::Fault(fault)),
    };
    let machine = turn.rows.machine(turn.tenant(), pinned.machine)?;
    let machine = machine.ok_or_else(|| ViewError(format!("machine {} is not installed", pinned.machine)))?;
    let own = turn.machine(&*turn.run(run)?)?;
    let from = Scope::of_run(turn, run)?;
    let values = mapped(&from, input);
    let begun = Writing::beginning(&machine, &turn.fuel);
    let written = match begun.and_then(|begun| merged(&own, begun, values)) {
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
        frame: None,
    })?;
    let who = turn.run(run)?.definition.clone();
    writes::record(turn, child, written, &Source { by: Writer::Start, who: &who })?;
    Ok(Next::Descend(child))
}

/// The machine that is called; a fault if the session may have no more runs.
fn callee(turn: &Turn<'_, '_>, run: RunId, at: CalleeIx) -> Result<Result<Pinned, Fault>, Stop> {
    let session = turn.session()?;
    let machine = turn.machine(&*turn.run(run)?)?;
    let wanted = machine.callee(at).ok_or_else(|| ViewError(format!("the machine has no {at:?}")))?;
    let Some(pinned) = session.callees.iter().find(|pinned| pinned.callee == *wanted) else {
        return Ok(Err(FaultCause::UnknownCallee { name: wanted.name.clone() }.into()));
    };
    if session.runs >= RUNS_MAX {
        return Ok(Err(FaultCause::TooManyRuns.into()));
    }
    if depth_below(turn, run)? > CALL_DEPTH_MAX {
        return Ok(Err(FaultCause::TooDeep { name: wanted.name.clone() }.into()));
    }
    Ok(Ok(pinned.clone()))
}

/// How deep a child of a run stands below the first run.
fn depth_below(turn: &Turn<'_, '_>, run: RunId) -> Result<usize, Stop> {
    let (mut depth, mut above) = (1, turn.run(run)?.parent);
    while let Some(parent) = above {
        depth += 1;
        above = turn.run(parent.run)?.parent;
    }
    Ok(depth)
}

/// The values that are there, each with where it comes from and goes to.
fn mapped<'m>(scope: &'m Scope, mapping: &'m [Mapped]) -> Vec<(&'m Mapped, &'m Value)> {
    let value = |one: &'m Mapped| Some((one, scope.get(&one.from).filter(|it| !it.is_null())?));
    mapping.iter().filter_map(value).collect()
}

/// What keys hold once these values of a run of the machine `from` are merged into them: all of it, or nothing.
fn merged(
    from: &Machine,
    mut into: Writing,
    values: Vec<(&Mapped, &Value)>,
) -> Result<Vec<(String, Value)>, WriteProblem> {
    for (one, value) in values {
        into.copy(from, one, value.clone())?;
    }
    let written = into.checked()?;
    written.iter().for_each(|(_, holds)| into.scope().fuel().spend_reads(holds, 2));
    Ok(written)
}

/// What keys hold, or why it does not fit.
type Written = Result<Vec<(String, Value)>, WriteProblem>;

/// What keys and their values hold, bytes.
fn bytes_of(written: &[(String, Value)]) -> usize {
    written.iter().map(|(key, value)| key.len() + json_length(value)).sum()
}

/// A child is at its end. The run that waits for it goes on if it was the last one, or has not completed.
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
        let at = turn.run(run)?;
        let others = turn.rows.children(turn.tenant(), turn.session_id()?, run, &at, 1)?;
        drop(at);
        return if others.is_empty() { joined(turn, run, child) } else { Ok(Next::Rest) };
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
    let written = match &spawn.result {
        Gives::Return(output) => returned(turn, run, child, output)?,
        Gives::Update => updated(turn, run)?,
    };
    turn.emit(RunEvent::ChildrenJoined { run })?;
    match written {
        Ok(written) => {
            if let Some(fault) = turn.budget.check_bytes(bytes_of(&written)) {
                return Ok(Next::Fault(fault));
            }
            let who = turn.run(child)?.definition.clone();
            writes::record(turn, run, written, &Source { by: Writer::Child, who: &who })?;
            Ok(Next::Ended(Port::Done))
        }
        Err(problem) => {
            let definition = turn.run(child)?.definition.clone();
            Ok(Next::Fault(FaultCause::ChildOutput { definition, problem }.into()))
        }
    }
}

/// What a run's keys hold once a child's output is merged into them.
fn returned(turn: &Turn<'_, '_>, run: RunId, child: RunId, output: &[Mapped]) -> Result<Written, Stop> {
    let from = Scope::of_run(turn, child)?;
    let values = mapped(&from, output);
    let called = turn.machine(&*turn.run(child)?)?;
    Ok(merged(&called, Writing::at_node(turn, run)?, values))
}

/// What a run's keys hold once all that its children have written is put there, in the order of the children.
fn updated(turn: &Turn<'_, '_>, run: RunId) -> Result<Written, Stop> {
    let (tenant, id, at) = (turn.tenant(), turn.session_id()?, turn.run(run)?);
    let mut written: BTreeMap<String, Value> = BTreeMap::new();
    for index in 0..at.slots {
        let slot = turn.rows.slot_at(&Key::slot(tenant, id, run, at.entry, index))?;
        let Some(Slot::Ended { run: child, .. }) = slot.as_deref() else { continue };
        let Some(data) = turn.rows.data_at(&Key::data(tenant, id, *child))? else { continue };
        written.extend(data.values.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    let mut into = Writing::at_node(turn, run)?;
    for (key, value) in written {
        if let Err(problem) = into.replace(&key, value) {
            return Ok(Err(problem));
        }
    }
    Ok(into.checked())
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
