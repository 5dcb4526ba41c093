//! The data of a session that has ended is removed: at once for every reader, and in bounded steps on disk.

use minicbor::bytes::ByteVec;
use switchward_machine::{SessionId, Time};
use switchward_state::limits::REMOVE_ROWS_MAX;
use switchward_state::session::{Expiring, RemovalFact, Remove, RemoveStep, Removing, SessionEvent};
use switchward_state::{Key, Kind, REMOVED_KINDS, ReadRows as _, Reason, Rejection, Reply};

use crate::turn::{Stop, Turn, check_size};

/// It begins. What the session holds in ledgers is given back first.
pub(crate) fn begin(turn: &mut Turn<'_, '_>, remove: &Remove) -> Result<Reply, Stop> {
    let session = turn.session()?;
    let Some(ended) = session.ended else {
        let message = "the session has not ended: cancel it first, or wait for its end";
        return Err(Rejection::new(Reason::StateMismatch, message)
            .fact("status", session.status.word())
            .into());
    };
    let before = session.removal.as_ref().map(|removal| removal.how);
    // A removal that is under way cannot change: another kind would show again what is half gone.
    if session.is_hidden() && before != Some(remove.how) {
        return Err(Rejection::new(Reason::NotFound, "there is no such session").into());
    }
    let trims = remove.how == Removing::Trimmed;
    // A rule removes nothing that is still to arrive.
    let sends = remove.how == Removing::Expired && remove.ended_by.is_some() && session.is_sending();
    let late = sends || remove.ended_by.is_some_and(|by| ended > by);
    if late || before == Some(remove.how) || (trims && before.is_some()) {
        let at = session.removal.as_ref().map_or(session.updated, |removal| removal.at);
        return Ok(Reply::Removed { at });
    }
    let calls = if trims { Vec::new() } else { session.calls.clone() };
    drop(session);
    for number in calls {
        let key = Key::call(turn.tenant(), turn.session_id()?, number);
        crate::session::sweep::give_back(turn, &key, number)?;
    }
    let by = turn.command.actor.subject.clone();
    let request = turn.command.request.as_ref().map(|request| (request.id.clone(), request.body));
    turn.emit(SessionEvent::Removals(RemovalFact::Begun { how: remove.how, by, request }))?;
    Ok(Reply::Removed { at: turn.now() })
}

/// A step of it; does nothing if the removal is over.
pub(crate) fn step(turn: &mut Turn<'_, '_>, step: &RemoveStep) -> Result<Reply, Stop> {
    match step {
        RemoveStep::Rows { session, keys, last } => {
            let Some(row) = turn.rows.session(turn.tenant(), *session)? else { return Ok(Reply::Done) };
            let Some(removal) = row.removal.as_deref().filter(|removal| removal.under_way()) else {
                return Ok(Reply::Done);
            };
            let (trims, sequence) = (removal.how == Removing::Trimmed, row.sequence);
            drop(row);
            check_size("keys", keys.len(), REMOVE_ROWS_MAX, "rows")?;
            let gone = rows_of(turn, *session, keys, trims)?;
            let whole = *last == Some(sequence) && gone.len() == keys.len();
            if !gone.is_empty() {
                turn.emit(SessionEvent::Removals(RemovalFact::Rows { session: *session, keys: gone }))?;
            }
            if whole {
                turn.emit(SessionEvent::Removals(RemovalFact::Done { session: *session }))?;
            }
        }
        RemoveStep::Expire { sessions, ended_by } => expire(turn, sessions, *ended_by)?,
        RemoveStep::OfTenant { keys } => crate::catalogue::delete_tenant::step(turn, keys)?,
        RemoveStep::TenantGone => crate::catalogue::delete_tenant::done(turn)?,
        RemoveStep::Forget { keys, ended_by } => {
            check_size("keys", keys.len(), REMOVE_ROWS_MAX, "rows")?;
            let mut gone = Vec::with_capacity(keys.len());
            for key in keys.iter().filter(|key| key.is(Kind::Removed)) {
                let over = turn.rows.removed_at(key)?;
                if over.is_some_and(|row| row.outlasts_its_session() && row.ended <= *ended_by) {
                    gone.push(ByteVec::from(key.as_bytes().to_vec()));
                }
            }
            if !gone.is_empty() {
                turn.emit(SessionEvent::Removals(RemovalFact::Forgotten { keys: gone }))?;
            }
        }
    }
    Ok(Reply::Done)
}

/// The rows of a session that may go, of these. Effects for a ledger get there first.
///
/// # Errors
/// One is none of the session's, or of a kind that does not go.
fn rows_of(turn: &Turn<'_, '_>, session: SessionId, keys: &[Key], trims: bool) -> Result<Vec<ByteVec>, Stop> {
    let mut gone = Vec::with_capacity(keys.len());
    for key in keys {
        let of = key.tenant_of() == turn.tenant() && key.session_of() == Some(session);
        let kind = REMOVED_KINDS.into_iter().any(|kind| key.is(kind) && (!trims || kind == Kind::History));
        if !of || !kind {
            return Err(Rejection::new(Reason::FieldInvalid, "a row is none of the session's").into());
        }
        let inner =
            key.is(Kind::Outbox) && turn.rows.outbox_at(key)?.is_some_and(|effect| effect.body.inner());
        if !inner {
            gone.push(ByteVec::from(key.as_bytes().to_vec()));
        }
    }
    Ok(gone)
}

/// Sessions expire whole. One that has changed, that still holds something of a ledger or that is being removed stays.
fn expire(turn: &mut Turn<'_, '_>, sessions: &[Expiring], ended_by: Time) -> Result<(), Stop> {
    let rows = sessions.iter().map(|one| one.keys.len()).sum();
    check_size("keys", rows, REMOVE_ROWS_MAX, "rows")?;
    for Expiring { session, keys, sequence } in sessions {
        let Some(row) = turn.rows.session(turn.tenant(), *session)? else { continue };
        let over = row.ended.is_some_and(|ended| ended <= ended_by);
        let removing = row.removal.as_deref().is_some_and(|it| it.under_way() || it.how.hides());
        let same =
            over && !removing && row.sequence == *sequence && row.calls.is_empty() && !row.is_sending();
        drop(row);
        if !same {
            continue;
        }
        let gone = rows_of(turn, *session, keys, false)?;
        if gone.len() == keys.len() {
            let by = turn.command.actor.subject.clone();
            turn.emit(SessionEvent::Removals(RemovalFact::Expired { session: *session, by, keys: gone }))?;
        }
    }
    Ok(())
}
