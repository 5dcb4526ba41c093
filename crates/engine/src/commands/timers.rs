//! A time has come: a wait is over, or a node is tried again.

use switchward_machine::{OpenId, RunId, Status};

use crate::faults::Fault;
use crate::moves::{self, Next};
use crate::state::{Due, Thing, ThingBody};
use crate::turn::{Stop, Turn};
use crate::{Event, Flow, Key};

/// Fires what is due behind a key; nothing happens where it is gone or not due yet.
pub(super) fn fire(turn: &mut Turn<'_, '_>, key: &Key, number: u64) -> Result<(), Stop> {
    let Some(thing) = turn.rows.thing_at(key)?.map(|thing| Thing::clone(&thing)) else { return Ok(()) };
    if thing.due().is_none_or(|due| due > turn.now()) {
        return Ok(());
    }
    let (run, thing_id) = (thing.run, OpenId(number));
    let due = match thing.body {
        ThingBody::Work { owed, .. } => return super::work::lapse(turn, thing_id, &owed, run),
        ThingBody::Wait { late, .. } => Due::Ended(late),
        ThingBody::Timer { .. } => Due::Again,
    };
    turn.emit(Flow::ThingClosed { thing: thing_id, run })?;
    if turn.session()?.status == Status::Suspended {
        turn.emit(Event::Deferred { run, due })?;
        return Ok(());
    }
    go_on(turn, run, due)
}

/// What was due happens.
pub(super) fn go_on(turn: &mut Turn<'_, '_>, run: RunId, due: Due) -> Result<(), Stop> {
    let next = match due {
        Due::Take(exit) => Next::Take(exit),
        Due::End(ending) => Next::End(ending, String::new()),
        Due::Ended(port) => Next::Ended(port),
        Due::Again => Next::Again,
        Due::Judged => Next::Judged,
        Due::Fault { code, message } => Next::Fault(Fault::kept(&code, message)),
    };
    moves::drive(turn, run, next)
}
