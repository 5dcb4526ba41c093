//! Replies that are remembered, so that a request that comes again is answered and not carried out again.

use switchward_machine::TenantId;
use switchward_state::{Answered, Command, Key, Reply, RequestId, Scope, View, ViewError, Working};

/// The stored answer to the command's request id.
pub(crate) fn answered_in(rows: &Working<'_>, command: &Command) -> Result<Option<Answered>, ViewError> {
    let Some(request) = &command.request else { return Ok(None) };
    known(rows, command.tenant, &command.scope, request)
}

/// The stored answer to a request id, if one is kept still.
///
/// # Errors
/// A row cannot be read.
pub fn answered(
    view: &dyn View,
    tenant: TenantId,
    scope: &Scope,
    request: &RequestId,
) -> Result<Option<Answered>, ViewError> {
    known(&Working::new(view), tenant, scope, request)
}

/// A session's replies stand in its history, the others under their request ids.
fn known(
    rows: &Working<'_>,
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
    let Some(session) = session else { return Ok(None) };
    // A session knows which replies are kept, so a new request needs no look at the disk.
    let Some(known) = session.requests.iter().rev().find(|known| known.hash == hash) else { return Ok(None) };
    let history = rows.history_at(&Key::history(tenant, id, known.sequence))?;
    Ok(history.and_then(|history| history.answered.clone()))
}

/// Whether the command's request id has a reply that is still remembered: their number and their time are bounded.
///
/// # Errors
/// A row cannot be read.
pub fn is_remembered(view: &dyn View, command: &Command) -> Result<bool, ViewError> {
    Ok(answered_in(&Working::new(view), command)?.is_some())
}
