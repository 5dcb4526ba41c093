//! A session as calls show it: as it is, or where it stands after a command.

use switchward_api::v1;
use switchward_engine::{SessionView, gate_view, position_view, run_views, session_view};
use switchward_machine::SessionId;
use switchward_state::session::Position;
use switchward_state::{Body, Reply, RequestId, Scope, View};

use crate::api::{Call, named, refusal, unreadable};
use crate::error::Refusal;
use crate::{convert, names};

/// Carries out a command of a session, and shows the session afterwards.
pub(super) async fn moved(
    call: &Call<'_>,
    name: &str,
    request: Option<RequestId>,
    expected_sequence: Option<u64>,
    body: Body,
) -> Result<v1::Session, Refusal> {
    let id = names::session(&call.caller, "name", name)?;
    let reply = call.execute(Scope::Session(id), request, expected_sequence, body).await;
    stands(call, id, reply.map_err(|refusal| named(refusal, "session", name))?, name)
}

/// Where a session stands after a command, by the command's own reply.
pub(super) fn stands(
    call: &Call<'_>,
    id: SessionId,
    reply: Reply,
    name: &str,
) -> Result<v1::Session, Refusal> {
    let Some(position) = reply.into_position() else { return Err(Refusal::not_found("session", name)) };
    at(call, id, position, name)
}

/// The same, by the position itself.
pub(super) fn at(
    call: &Call<'_>,
    id: SessionId,
    position: Position,
    name: &str,
) -> Result<v1::Session, Refusal> {
    let view = position_view(&call.shard(id).read_stale(), call.caller.tenant, id, position);
    let view = view.map_err(unreadable)?.ok_or_else(|| Refusal::not_found("session", name))?;
    Ok(convert::positions::session(&call.caller, &view))
}

/// A session as it is now.
pub(super) async fn shown(call: &Call<'_>, id: SessionId, name: &str) -> Result<v1::Session, Refusal> {
    let view = call.shard(id).read().await.map_err(refusal)?;
    view.consistent(|rows| {
        let found = session_view(rows, call.caller.tenant, id).map_err(unreadable)?;
        message(call, rows, &found.ok_or_else(|| Refusal::not_found("session", name))?)
    })
}

/// A session in a view of its rows.
pub(super) fn message(
    call: &Call<'_>,
    view: &dyn View,
    session: &SessionView,
) -> Result<v1::Session, Refusal> {
    let mut gates = Vec::new();
    for open in &session.session.opens {
        let gate = gate_view(view, call.caller.tenant, session.id, *open).map_err(unreadable)?;
        gates.extend(gate.and_then(|gate| convert::sessions::open_gate(&call.caller, session, *open, &gate)));
    }
    let mut shown = convert::sessions::session(&call.caller, session, gates);
    let runs = run_views(view, call.caller.tenant, session).map_err(unreadable)?;
    shown.runs = convert::sessions::runs(&call.caller, runs);
    Ok(shown)
}
