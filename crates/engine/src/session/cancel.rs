//! A session stops for good.

use switchward_machine::{Ending, Outcome};
use switchward_state::Reply;
use switchward_state::limits::NOTE_BYTES_MAX;
use switchward_state::run::EndComment;
use switchward_state::session::Cancel;

use crate::next::Next;
use crate::turn::{Stop, Turn, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, cancel: &Cancel) -> Result<Reply, Stop> {
    let root = turn.live_session()?.root;
    check_text("reason", &cancel.comment, NOTE_BYTES_MAX)?;
    let comment = EndComment::Written(cancel.comment.clone());
    turn.go(root, Next::End(Ending::plain(Outcome::Cancelled), comment));
    turn.moved()
}
