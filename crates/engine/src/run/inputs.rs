//! What a machine does not accept is refused.

use switchward_machine::{Input, RunId};
use switchward_state::{Reason, Rejection};

use crate::turn::{Stop, Turn};

/// Refuses an input that the run's machine does not accept.
pub(crate) fn check(turn: &Turn<'_, '_>, run: RunId, input: Input) -> Result<(), Stop> {
    if turn.machine(&*turn.run(run)?)?.accepts(input) {
        return Ok(());
    }
    Err(Rejection::new(Reason::StateMismatch, "nothing here takes this: the process is no conversation")
        .into())
}
