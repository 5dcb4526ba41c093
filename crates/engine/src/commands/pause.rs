//! A session stops in place, and goes on.

use switchward_machine::Status;

use crate::command::{Actor, Pause, Resume};
use crate::limits::NOTE_BYTES_MAX;
use crate::moves;
use crate::turn::{Stop, Turn, check_text, not_paused};
use crate::{Event, Reason, Rejection, Reply};

pub(super) fn pause(turn: &mut Turn<'_, '_>, pause: &Pause) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    not_paused(&session)?;
    check_text("reason", &pause.comment, NOTE_BYTES_MAX)?;
    drop(session);
    turn.emit(Event::Paused { comment: pause.comment.clone() })?;
    turn.moved()
}

pub(super) fn resume(turn: &mut Turn<'_, '_>, resume: &Resume) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    if session.status != Status::Suspended {
        return Err(Rejection::new(Reason::StateMismatch, "the session is not paused").into());
    }
    check_text("reason", &resume.comment, NOTE_BYTES_MAX)?;
    let leaf = turn.leaf()?;
    let due = turn.run(leaf)?.due.clone();
    drop(session);
    turn.emit(Event::Unpaused { comment: resume.comment.clone() })?;
    if let Some(due) = due {
        // Who resumes a session asks for nothing that it does then.
        turn.asker = Some(Actor::server().subject);
        moves::go_on(turn, leaf, due)?;
    }
    turn.moved()
}
