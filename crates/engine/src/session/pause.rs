//! A session stops in place, and goes on.

use switchward_machine::Status;
use switchward_state::limits::NOTE_BYTES_MAX;
use switchward_state::session::{Pause, Resume, SessionEvent};
use switchward_state::{Actor, Reason, Rejection, Reply};

use crate::turn::{Stop, Turn, check_text, not_paused};

pub(crate) fn pause(turn: &mut Turn<'_, '_>, pause: &Pause) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    not_paused(&session)?;
    check_text("reason", &pause.comment, NOTE_BYTES_MAX)?;
    drop(session);
    turn.emit(SessionEvent::Paused { comment: pause.comment.clone() })?;
    turn.moved()
}

pub(crate) fn resume(turn: &mut Turn<'_, '_>, resume: &Resume) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    if session.status != Status::Suspended {
        return Err(Rejection::new(Reason::StateMismatch, "the session is not paused").into());
    }
    check_text("reason", &resume.comment, NOTE_BYTES_MAX)?;
    let leaf = turn.leaf()?;
    let at = turn.run(leaf)?;
    let (due, requester) = (at.due.clone(), at.requester.clone());
    drop((session, at));
    turn.emit(SessionEvent::Unpaused { comment: resume.comment.clone() })?;
    if let Some(due) = due {
        // The caller who resumes is not the requester of what follows: that is the one who caused it before.
        turn.asker = Some(requester.unwrap_or_else(|| Actor::server().subject));
        turn.go(leaf, due);
    }
    turn.moved()
}
