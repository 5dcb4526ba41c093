//! A time has come: a wait, a lease or the round of a gate is over, or a node is tried again. The end of a wait or delay
//! has no effect while a person is asked whether the state may be left; it takes effect if the run stays. See
//! `tests/corpus/conversation/sentences.tsv#003-g09`.

use switchward_machine::OpenId;
use switchward_state::run::PendingInput;
use switchward_state::work::WorkEvent;
use switchward_state::{Key, OpenItem, ReadRows as _};

use crate::approval::{frozen, resolve, rounds};
use crate::turn::{Stop, Turn};
use crate::work::leases;

/// Does what the time of an open item's key asks for; nothing if the item is gone or not due yet.
pub(crate) fn fall_due(turn: &mut Turn<'_, '_>, key: &Key, item: OpenId) -> Result<(), Stop> {
    let Some(row) = turn.rows.item_at(key)? else { return Ok(()) };
    if row.due().is_none_or(|due| due > turn.now() && !planted!(turn.rows, TimerUnchecked)) {
        return Ok(());
    }
    turn.follows(row.head().trace.as_ref());
    let run = row.head().run;
    let port = match &*row {
        OpenItem::Gate(_) => {
            drop(row);
            return rounds::fall_due(turn, key, item);
        }
        OpenItem::Work(open) => {
            let owed = open.body.owed.clone();
            drop(row);
            return leases::lapse(turn, item, &owed, run);
        }
        OpenItem::Wait(open) => Some(open.body.late.clone()),
        OpenItem::Timer(_) => None,
    };
    drop(row);
    turn.emit(WorkEvent::Closed { item, run })?;
    let held = turn.run(run)?.held;
    if let Some(held) = held {
        return frozen::keep(turn, run, held.gate, PendingInput::TimeOver { item, port });
    }
    resolve::now_or_later(turn, run, frozen::time_over(port))
}
