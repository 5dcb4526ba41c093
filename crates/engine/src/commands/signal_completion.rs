//! The agent says that its work in this state is done. It is recorded, and moves nothing by itself.

use crate::turn::{Stop, Turn};
use crate::{Flow, Reply};

pub(super) fn run(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    let root = turn.live_session()?.root;
    super::conversation(turn, root)?;
    turn.emit(Flow::Signalled { run: root })?;
    turn.moved()
}
