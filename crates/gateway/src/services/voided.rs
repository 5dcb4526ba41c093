//! The gates that a call closes without a decision.

use switchward_engine::{GateView, gate_view};
use switchward_machine::{OpenId, SessionId};
use switchward_state::approval::Resolution;
use switchward_state::{Key, Row, View as _};

use crate::api::{Call, refusal, unreadable};
use crate::error::Refusal;
use crate::names;

/// Returns what is open in a session before a call changes it.
pub(super) fn opens(call: &Call<'_>, id: SessionId) -> Result<Vec<OpenId>, Refusal> {
    let row = call.shard(id).read_stale().row(&Key::session(call.caller.tenant, id)).map_err(unreadable)?;
    match row.as_deref() {
        Some(Row::Session(session)) => Ok(session.opens.clone()),
        Some(_) | None => Ok(Vec::new()),
    }
}

/// Returns the names of the gates among these that are void now.
pub(super) async fn since(call: &Call<'_>, id: SessionId, before: &[OpenId]) -> Result<Vec<String>, Refusal> {
    if before.is_empty() {
        return Ok(Vec::new());
    }
    let view = call.shard(id).read().await.map_err(refusal)?;
    let mut names = Vec::new();
    for open in before {
        let gate =
            view.consistent(|rows| gate_view(rows, call.caller.tenant, id, *open).map_err(unreadable))?;
        if let Some(GateView::Closed(closed, _)) = gate
            && closed.resolution == Resolution::Voided
        {
            names.push(names::of_gate(&call.caller, id, *open));
        }
    }
    Ok(names)
}
