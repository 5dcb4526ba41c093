//! A session stops for good.

use switchward_machine::{Ending, Outcome};
use switchward_state::Reply;
use switchward_state::limits::NOTE_BYTES_MAX;
use switchward_state::run::EndComment;
use switchward_state::session::{Cancel, CancelComment};

use crate::next::Next;
use crate::turn::{Stop, Turn, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, cancel: &Cancel) -> Result<Reply, Stop> {
    let root = turn.live_session()?.root;
    let comment = match &cancel.comment {
        CancelComment::Written(text) => {
            check_text("reason", text, NOTE_BYTES_MAX)?;
            EndComment::Written(text.clone())
        }
        CancelComment::RemovedAfterBackup => EndComment::RemovedAfterBackup,
    };
    turn.go(root, Next::End(Ending::plain(Outcome::Cancelled), comment));
    turn.moved()
}
