//! Replies that are remembered, so that a request that comes again is answered and not carried out again.

use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::catalogue::Role;
use switchward_state::limits::{REPLIES_BYTES_MAX, REPLIES_KEPT_MS, REPLIES_MAX};
use switchward_state::policy::PolicyCommand;
use switchward_state::session::{ReplySource, Reserve, Session, StoredReply};
use switchward_state::{
    Answered, Body, Command, Key, ReadRows, Reason, Rejection, Reply, RequestId, Scope, View, ViewError,
};

use crate::session::position;
use crate::turn::Stop;

/// Milliseconds.
const MINUTE_MS: u64 = 60_000;

/// The stored answer to the command's request id.
pub(crate) fn answered_in(rows: &dyn ReadRows, command: &Command) -> Result<Option<Answered>, ViewError> {
    let Some(request) = &command.request else { return Ok(None) };
    if planted!(rows, RequestForgotten) && matches!(command.scope, Scope::Session(_)) {
        return Ok(None);
    }
    if planted!(rows, ConfirmedTwice) && matches!(command.body, Body::Policy(PolicyCommand::Confirm(_))) {
        return Ok(None);
    }
    known(rows, command.tenant, &command.scope, request)
}

/// The stored answer to a request id, if one is kept still, with the rows that complete it.
///
/// # Errors
/// A row cannot be read.
pub fn answered(
    view: &dyn View,
    tenant: TenantId,
    scope: &Scope,
    request: &RequestId,
) -> Result<Option<Answered>, ViewError> {
    let Some(mut known) = known(view, tenant, scope, request)? else { return Ok(None) };
    position::load(view, tenant, scope, &mut known.reply)?;
    Ok(Some(known))
}

/// A session's replies stand in its history, unless a command changed nothing; all others under their request ids.
fn known(
    rows: &dyn ReadRows,
    tenant: TenantId,
    scope: &Scope,
    request: &RequestId,
) -> Result<Option<Answered>, ViewError> {
    let hash = request.hash();
    let Scope::Session(id) = *scope else {
        let known = rows.request_at(&Key::request(tenant, scope, hash))?;
        return Ok(known.map(|known| Answered { body: known.body, reply: known.reply.clone() }));
    };
    let session = rows.session(tenant, id)?;
    if session.as_ref().is_none_or(|session| session.removal.is_some()) {
        // Of a session whose data is removed, the request of the removal is known.
        let removed = rows.removed_at(&Key::removed(tenant, id))?;
        let of_removal = removed.as_ref().and_then(|removed| Some((removed.at, removed.request.as_ref()?)));
        if let Some((at, (_, body))) = of_removal.filter(|(_, (known, _))| *known == request.id) {
            return Ok(Some(Answered { body: *body, reply: Reply::Removed { at } }));
        }
    }
    match session {
        Some(session) => of_session(rows, tenant, id, &session, hash),
        None => Ok(None),
    }
}

/// The reply of a session to the request id of this hash.
fn of_session(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
    hash: [u8; 16],
) -> Result<Option<Answered>, ViewError> {
    let replies = &session.replies;
    // The list is in the session's row, so most new requests need no look at the disk.
    let listed = replies.listed().iter().rev().find(|known| known.hash == hash);
    let sequence = match listed {
        Some(known) => known.sequence,
        None if replies.chained().is_none() => return Ok(None),
        None => None,
    };
    let sequence = match sequence {
        Some(sequence) => sequence,
        None => match rows.reply_at(&Key::reply(tenant, id, hash))?.as_deref() {
            None => return Ok(None),
            Some(StoredReply { source: ReplySource::Here(answered), .. }) => {
                return Ok(Some(Answered::clone(answered)));
            }
            Some(StoredReply { source: ReplySource::History(sequence), .. }) => *sequence,
        },
    };
    let history = rows.history_at(&Key::history(tenant, id, sequence))?;
    Ok(history.and_then(|history| history.answered.clone()))
}

/// Refuses a command whose reply could not be remembered: its session has given as many within [`REPLIES_KEPT_MS`] as it
/// remembers. An older one of them would be forgotten, and carried out again if it came again.
///
/// # Errors
/// QUOTA_EXCEEDED, with the time until the oldest may be forgotten.
pub(crate) fn check_capacity(rows: &dyn ReadRows, command: &Command, now: Time) -> Result<(), Stop> {
    let (Scope::Session(id), Some(_)) = (&command.scope, &command.request) else { return Ok(()) };
    let Some(session) = rows.session(command.tenant, *id)? else { return Ok(()) };
    let reserve = reserve(command);
    let Some(wait) = session.replies.full_for_ms(now, reserve) else { return Ok(()) };
    let message = format!(
        "the session has answered {} requests within {} minutes, with {} bytes of replies beside its history, and remembers \
         no more replies",
        session.replies.count(),
        REPLIES_KEPT_MS / MINUTE_MS,
        session.replies.bytes()
    );
    let rejection = Rejection::new(Reason::QuotaExceeded, message).fact("limit", REPLIES_MAX);
    let rejection = rejection.fact("limit_bytes", REPLIES_BYTES_MAX);
    Err(rejection.retry_after_ms(Some(wait)).into())
}

/// What a command may use of what is reserved. An agent's key, like each key that a program has, cannot use up what people
/// need: by role, since many commands of programs end something, too.
fn reserve(command: &Command) -> Reserve {
    match command.actor.role {
        Role::Approver | Role::Operator | Role::Admin | Role::Author | Role::Server => Reserve::People,
        Role::Agent | Role::Worker | Role::Integration if command.body.fills() => Reserve::None,
        Role::Agent | Role::Worker | Role::Integration => Reserve::Ends,
    }
}

/// Returns true if the reply to a command that changes nothing is remembered, too: it has a request id, and its session has
/// not begun to be removed.
///
/// # Errors
/// A row cannot be read.
pub(crate) fn remembers_unchanged(rows: &dyn ReadRows, command: &Command) -> Result<bool, ViewError> {
    let (Scope::Session(id), Some(_)) = (&command.scope, &command.request) else {
        return Ok(command.request.is_some());
    };
    let session = rows.session(command.tenant, *id)?;
    Ok(session.is_some_and(|session| session.removal.is_none()))
}

/// Returns true if the command's request id has a reply that is still remembered.
///
/// # Errors
/// A row cannot be read.
pub fn is_remembered(view: &dyn View, command: &Command) -> Result<bool, ViewError> {
    Ok(answered_in(view, command)?.is_some())
}
