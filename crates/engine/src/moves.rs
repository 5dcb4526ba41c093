//! Moves: the one place where nodes are left and entered and runs end.

use switchward_machine::{Ending, ExitIx, NoExit, NodeIx, Outcome, RunId, Target};

use crate::acts::{Progress, begin, operate};
use crate::limits::ENTRIES_MAX;
use crate::state::EffectBody;
use crate::turn::{Stop, Turn};
use crate::{Event, Key, ViewError};

/// Takes an exit of the node that the run stands in.
pub(crate) fn take(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<(), Stop> {
    let at = turn.run(run)?.node;
    let machine = turn.machine(&*turn.run(run)?)?;
    let found = machine.node(at).and_then(|node| node.exits.get(usize::from(exit.0)));
    let found = found.ok_or_else(|| ViewError(format!("node {at:?} has no exit {exit:?}")))?;
    void(turn, run)?;
    turn.emit(Event::Left { run, node: at, exit })?;
    operate(turn, &found.ops)?;
    match &found.to {
        Target::Node(to) => enter(turn, run, *to),
        Target::End(ending) => end(turn, run, ending.clone(), String::new()),
    }
}

/// Enters a node and goes on for as long as nobody is needed.
pub(crate) fn enter(turn: &mut Turn<'_, '_>, run: RunId, node: NodeIx) -> Result<(), Stop> {
    turn.emit(Event::Entered { run, node })?;
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    if at.drained > ENTRIES_MAX {
        let ending = Ending { outcome: Outcome::Failed, reason: Some("drain_limit".into()) };
        return end(turn, run, ending, String::new());
    }
    drop(at);
    let node = machine.node(node).ok_or_else(|| ViewError(format!("machine has no node {node:?}")))?;
    match begin(turn, run, node)? {
        Progress::Rests => Ok(()),
        // No exit of today's triggers is taken by a body that settles on its own.
        Progress::Settled => match &node.on_no_exit {
            NoExit::Stay => Ok(()),
            NoExit::End(ending) => end(turn, run, ending.clone(), String::new()),
        },
    }
}

/// Ends a run, and with the root run its session.
pub(crate) fn end(turn: &mut Turn<'_, '_>, run: RunId, ending: Ending, comment: String) -> Result<(), Stop> {
    void(turn, run)?;
    turn.emit(Event::RunEnded { run, ending, comment })?;
    Ok(())
}

/// Closes all that belongs to the entry: gates, and approvals that were not used.
fn void(turn: &mut Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    let session = turn.session()?;
    if session.opens.is_empty() && session.grants.is_empty() {
        return Ok(());
    }
    let (gates, grants, process) =
        (session.opens.clone(), session.grants.clone(), session.definition.clone());
    drop(session);
    for number in &grants {
        release(turn, run, &process, *number)?;
    }
    turn.emit(Event::Voided { gates, grants })?;
    Ok(())
}

/// Gives back the money that an unused grant holds in a ledger.
pub(crate) fn release(turn: &mut Turn<'_, '_>, run: RunId, process: &str, number: u64) -> Result<(), Stop> {
    let key = Key::grant(turn.tenant(), turn.session_id()?, number);
    let Some(grant) = turn.rows.grant_at(&key)? else { return Ok(()) };
    let Some(call) = grant.reservation else { return Ok(()) };
    let body = EffectBody::Settle {
        process: process.to_owned(),
        call: Some(call),
        rules: grant.rules.clone(),
        cost: switchward_machine::Micros(0),
        at: turn.now(),
        release: false,
    };
    drop(grant);
    turn.send(run, body)?;
    Ok(())
}
