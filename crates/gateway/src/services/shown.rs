//! A session as calls show it: as it is, or where it stands after a command.

use switchward_api::v1;
use switchward_engine::PositionView;
use switchward_machine::SessionId;
use switchward_shard::Failure;
use switchward_state::Reply;
use switchward_state::session::Position;

use crate::api::{Call, Driven};
use crate::auth::Caller;
use crate::convert;
use crate::error::Refusal;
use crate::query::{Ask as _, CompletePosition, Reader, SessionShown, ShowSession};
use crate::refusals::{refusal, unreadable};

/// The session after a command.
pub(super) async fn driven(driven: Driven<'_>) -> Result<v1::Session, Refusal> {
    stands(&driven.call, driven.session, driven.reply, &driven.name).await
}

/// Where a session stands after a command, by the command's own reply.
pub(super) async fn stands(
    call: &Call<'_>,
    id: SessionId,
    reply: Reply,
    name: &str,
) -> Result<v1::Session, Refusal> {
    let Some(position) = reply.into_position() else { return Err(Refusal::not_found("session", name)) };
    at(call, id, position, name).await
}

/// The same, by the position itself. What it lacks is read from rows that hold what the command did.
///
/// # Errors
/// NOT_FOUND if the session is gone by now; OUTCOME_UNKNOWN if the rows cannot be read now: the command was carried out, so
/// nothing may tell the caller to send it again as another request.
pub(super) async fn at(
    call: &Call<'_>,
    id: SessionId,
    position: Position,
    name: &str,
) -> Result<v1::Session, Refusal> {
    let view = match PositionView::at_hand(id, position) {
        Ok(view) => Some(view),
        Err(position) => {
            let query = CompletePosition { tenant: call.caller.tenant, session: id, position };
            let rows = Reader::after_own_commands(query.source().shard(&call.api.cluster)).await;
            rows.map_err(|_| refusal(Failure::OutcomeUnknown))?.answer(&query).map_err(unreadable)?
        }
    };
    let view = view.ok_or_else(|| Refusal::not_found("session", name))?;
    Ok(convert::positions::session(&call.caller, &view))
}

/// A session as it is now.
pub(super) async fn shown(call: &Call<'_>, id: SessionId, name: &str) -> Result<v1::Session, Refusal> {
    let found = call.ask(&ShowSession { tenant: call.caller.tenant, session: id }).await?;
    Ok(message(&call.caller, found.ok_or_else(|| Refusal::not_found("session", name))?))
}

/// A session as a message.
pub(super) fn message(caller: &Caller, shown: SessionShown) -> v1::Session {
    let SessionShown { session, gates, runs } = shown;
    let gates =
        gates.iter().filter_map(|(open, gate)| convert::sessions::open_gate(caller, &session, *open, gate));
    let mut message = convert::sessions::session(caller, &session, gates.collect());
    message.runs = convert::sessions::runs(caller, runs);
    message
}
