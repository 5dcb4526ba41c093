//! A time has come: a wait is over, or a node is tried again.

use switchward_machine::OpenId;
use switchward_state::Key;
use switchward_state::run::Deferral;
use switchward_state::work::{OpenItem, OpenItemBody, WorkEvent};

use crate::approval::resolve;
use crate::turn::{Stop, Turn};

/// Fires what is due behind a key; does nothing if it is gone or not due yet.
pub(crate) fn fire(turn: &mut Turn<'_, '_>, key: &Key, number: u64) -> Result<(), Stop> {
    let Some(item) = turn.rows.item_at(key)?.map(|item| OpenItem::clone(&item)) else { return Ok(()) };
    if item.due().is_none_or(|due| due > turn.now()) {
        return Ok(());
    }
    turn.follows(item.trace.as_ref());
    let (run, item_id) = (item.run, OpenId(number));
    let due = match item.body {
        OpenItemBody::Work { owed, .. } => return crate::work::leases::lapse(turn, item_id, &owed, run),
        OpenItemBody::Wait { late, .. } => Deferral::Ended(late),
        OpenItemBody::Timer { .. } => Deferral::Again,
    };
    turn.emit(WorkEvent::Closed { item: item_id, run })?;
    resolve::now_or_later(turn, run, due)
}
