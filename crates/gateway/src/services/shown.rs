//! A session as calls show it, after a command or as it is.

use switchward_api::v1;
use switchward_engine::{SessionView, gate_view, run_views, session_view};
use switchward_machine::SessionId;
use switchward_state::{Body, RequestId, Scope, View};

use super::voided;
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
    let before = voided::opens(call, id)?;
    let reply = call.execute(Scope::Session(id), request, expected_sequence, body).await;
    reply.map_err(|refusal| named(refusal, "session", name))?;
    let mut session = shown(call, id, name).await?;
    session.voided_gates = voided::since(call, id, &before).await?;
    Ok(session)
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
