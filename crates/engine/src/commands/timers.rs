//! A time has come: a wait is over, or a node is tried again.

use switchward_machine::OpenId;

use crate::gates;
use crate::state::{Due, Thing, ThingBody};
use crate::turn::{Stop, Turn};
use crate::{Flow, Key};

/// Fires what is due behind a key; nothing happens where it is gone or not due yet.
pub(super) fn fire(turn: &mut Turn<'_, '_>, key: &Key, number: u64) -> Result<(), Stop> {
    let Some(thing) = turn.rows.thing_at(key)?.map(|thing| Thing::clone(&thing)) else { return Ok(()) };
    if thing.due().is_none_or(|due| due > turn.now()) {
        return Ok(());
    }
    turn.follows(thing.trace.as_ref());
    let (run, thing_id) = (thing.run, OpenId(number));
    let due = match thing.body {
        ThingBody::Work { owed, .. } => return super::work::lapse(turn, thing_id, &owed, run),
        ThingBody::Wait { late, .. } => Due::Ended(late),
        ThingBody::Timer { .. } => Due::Again,
    };
    turn.emit(Flow::ThingClosed { thing: thing_id, run })?;
    gates::now_or_later(turn, run, due)
}
