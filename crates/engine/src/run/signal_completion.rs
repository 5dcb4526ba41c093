//! The agent says that its work in this state is done. It is recorded, and moves nothing by itself.

use switchward_machine::Input;
use switchward_state::Reply;
use switchward_state::run::RunEvent;

use crate::run::inputs;
use crate::turn::{Stop, Turn};

pub(crate) fn run(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    turn.live_session()?;
    let leaf = turn.leaf()?;
    inputs::check(turn, leaf, Input::Signal)?;
    turn.emit(RunEvent::Signalled { run: leaf })?;
    turn.moved()
}
