//! Work: something that an outside worker owes.

use switchward_machine::{RunId, Work};

use crate::moves::Next;
use crate::state::ThingBody;
use crate::turn::{Stop, Turn};

pub(super) fn begin(turn: &mut Turn<'_, '_>, run: RunId, work: &Work) -> Result<Next, Stop> {
    turn.open(run, ThingBody::Work { kind: work.kind })?;
    Ok(Next::Rest)
}
