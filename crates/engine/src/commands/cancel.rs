//! A session stops for good.

use switchward_machine::{Ending, Outcome};

use crate::Reply;
use crate::command::Cancel;
use crate::limits::NOTE_BYTES_MAX;
use crate::moves;
use crate::turn::{Stop, Turn, check_text};

pub(super) fn run(turn: &mut Turn<'_, '_>, cancel: &Cancel) -> Result<Reply, Stop> {
    let root = turn.live_session()?.root;
    check_text("reason", &cancel.comment, NOTE_BYTES_MAX)?;
    moves::end(turn, root, Ending::plain(Outcome::Cancelled), cancel.comment.clone())?;
    turn.moved()
}
