//! A time has come: a wait is over, or a node is tried again.

use switchward_machine::OpenId;

use crate::gates;
use crate::state::{Due, OpenItem, OpenItemBody};
use crate::turn::{Stop, Turn};
use crate::{Flow, Key};

/// Fires what is due behind a key; does nothing if it is gone or not due yet.
pub(super) fn fire(turn: &mut Turn<'_, '_>, key: &Key, number: u64) -> Result<(), Stop> {
    let Some(item) = turn.rows.item_at(key)?.map(|item| OpenItem::clone(&item)) else { return Ok(()) };
    if item.due().is_none_or(|due| due > turn.now()) {
        return Ok(());
    }
    turn.follows(item.trace.as_ref());
    let (run, item_id) = (item.run, OpenId(number));
    let due = match item.body {
        OpenItemBody::Work { owed, .. } => return super::work::lapse(turn, item_id, &owed, run),
        OpenItemBody::Wait { late, .. } => Due::Ended(late),
        OpenItemBody::Timer { .. } => Due::Again,
    };
    turn.emit(Flow::ItemClosed { item: item_id, run })?;
    gates::now_or_later(turn, run, due)
}
