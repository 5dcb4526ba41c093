//! What only conversations take.

use switchward_machine::RunId;
use switchward_state::{Reason, Rejection};

use crate::turn::{Stop, Turn};

/// What belongs to a conversation is refused in a process that is none.
pub(crate) fn conversation(turn: &Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    if machine.node(at.node).is_some_and(|node| node.records) {
        return Ok(());
    }
    Err(Rejection::new(Reason::StateMismatch, "nothing here takes this: the process is no conversation")
        .into())
}
