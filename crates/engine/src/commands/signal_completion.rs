//! The agent says that its work in this state is done. It is recorded, and moves nothing by itself.

use crate::turn::{Stop, Turn};
use crate::{Flow, Reply};

pub(super) fn run(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    turn.live_session()?;
    let leaf = turn.leaf()?;
    super::conversation(turn, leaf)?;
    turn.emit(Flow::Signalled { run: leaf })?;
    turn.moved()
}
