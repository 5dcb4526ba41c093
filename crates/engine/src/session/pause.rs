//! A session stops in place, and goes on.

use switchward_machine::{RunId, Status};
use switchward_state::limits::NOTE_BYTES_MAX;
use switchward_state::run::Deferral;
use switchward_state::session::{Pause, Resume, SessionEvent};
use switchward_state::{Actor, ReadRows as _, Reason, Rejection, Reply};

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
    let due = due(turn, session.root)?;
    drop(session);
    turn.emit(SessionEvent::Unpaused { comment: resume.comment.clone() })?;
    for Due { run, next, requester } in due {
        // The caller who resumes is not the requester of what follows: that is the one who caused it before.
        let requester = requester.unwrap_or_else(|| Actor::server().subject);
        turn.go_if_there(run, next, Some(requester))?;
    }
    turn.moved()
}

/// What was settled about one run while its session was paused.
struct Due {
    run: RunId,
    next: Deferral,
    requester: Option<String>,
}

/// What was settled about the active runs meanwhile, about each before what was about the runs below it.
fn due(turn: &Turn<'_, '_>, root: RunId) -> Result<Vec<Due>, Stop> {
    let mut all = Vec::new();
    for run in turn.rows.active(turn.tenant(), turn.session_id()?, root)? {
        let at = turn.run(run)?;
        all.extend(at.due.clone().map(|next| Due { run, next, requester: at.requester.clone() }));
    }
    Ok(all)
}
