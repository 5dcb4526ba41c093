//! Acts: one file each. An act either leaves something open, or ends with a port.

pub(crate) mod contract;
pub(crate) mod operations;
mod result_schema;
pub(crate) mod spawn;
pub(crate) mod wait;
pub(crate) mod work;

use switchward_machine::{ActIx, ActKind, Port, RunId};
use switchward_state::ViewError;
use switchward_state::run::Fault;

use crate::approval::{gates, tasks};
use crate::next::Next;
use crate::turn::{Stop, Turn};

pub(crate) use operations::operate;
pub(crate) use result_schema::result_schema;
pub(crate) use spawn::{abandon, ended as child_ended};
pub(crate) use work::{AcceptedResult, accepted, ask_judge, drop_judges, no_next};

/// What operations came to.
pub(crate) enum Ran {
    /// They ran, and the act ends with this port.
    Ended(Port),
    /// One of them failed.
    Fault(Fault),
}

/// Begins an act of the run's node.
pub(crate) fn begin(turn: &mut Turn<'_, '_>, run: RunId, act: ActIx) -> Result<Next, Stop> {
    turn.budget.next_act();
    let row = turn.run(run)?;
    let (at, machine) = (row.node, turn.machine(&row)?);
    drop(row);
    let node = machine.node(at).ok_or_else(|| ViewError(format!("machine has no node {at:?}")))?;
    let found = node.acts.get(usize::from(act.0));
    let found = found.ok_or_else(|| ViewError(format!("node {} has no {act:?}", node.name)))?;
    match &found.kind {
        // The agent owes an answer or a turn; no item is opened for it, because nobody holds a lease on a turn.
        ActKind::Ask(_) => Ok(Next::Rest),
        ActKind::Do(ops) => Ok(match operate(turn, run, ops)? {
            Ran::Ended(port) => Next::Ended(port),
            Ran::Fault(fault) => Next::Fault(fault),
        }),
        ActKind::Work(owed) => work::begin(turn, run, owed),
        ActKind::Wait(wait) => wait::begin(turn, run, wait),
        ActKind::Decide(decide) if decide.each => tasks::open(turn, run, decide.gate),
        ActKind::Spawn(spawn) => spawn::begin(turn, run, spawn),
        ActKind::Decide(decide) => Ok(match gates::open(turn, run, decide.gate, None)? {
            None => Next::Rest,
            Some(fault) => Next::Fault(fault),
        }),
    }
}
