//! Acts: one file each. An act either leaves something open, or ends with a port.

mod operations;

use switchward_machine::{ActIx, ActKind, Node, Port, RunId};

use crate::turn::{Stop, Turn};
use crate::{Event, ViewError};

pub(crate) use operations::operate;

/// How far a body got.
pub(crate) enum Progress {
    /// It waits for somebody.
    Rests,
    /// It has come to its end.
    Settled,
}

/// Begins a node's body and follows its wires until something rests or the node settles.
pub(crate) fn begin(turn: &mut Turn<'_, '_>, run: RunId, node: &Node) -> Result<Progress, Stop> {
    let mut at = ActIx(0);
    loop {
        let act = node
            .acts
            .get(usize::from(at.0))
            .ok_or_else(|| ViewError(format!("node {} has no {at:?}", node.name)))?;
        if at != ActIx(0) {
            turn.emit(Event::ActBegun { run, act: at })?;
        }
        let port = match &act.kind {
            // The agent owes an answer; nothing is opened for it, because nobody holds a lease on a turn.
            ActKind::Ask(_) => return Ok(Progress::Rests),
            ActKind::Do(ops) => operate(turn, ops)?,
        };
        let Some(port) = port else { return Ok(Progress::Rests) };
        match act.then.iter().find(|(known, _)| *known == port) {
            Some((_, next)) => at = *next,
            None => return Ok(Progress::Settled),
        }
    }
}

/// What ends an act, or nothing where it rests.
pub(crate) type Ends = Option<Port>;
