//! A session as calls show it: as it is now. Where it stands after a command is shown by [`crate::convert::positions`].

use switchward_api::v1;
use switchward_machine::SessionId;
use switchward_query::{SessionShown, ShowSession};

use crate::api::Call;
use crate::auth::Caller;
use crate::convert;
use crate::error::Refusal;

/// A session as it is now.
pub(super) async fn shown(call: &Call<'_>, id: SessionId, name: &str) -> Result<v1::Session, Refusal> {
    let found = call.ask(&ShowSession { tenant: call.caller.tenant, session: id }).await?;
    Ok(message(&call.caller, found.ok_or_else(|| Refusal::not_found("session", name))?))
}

/// A session as a message, with its open gates and its runs.
pub(super) fn message(caller: &Caller, shown: SessionShown) -> v1::Session {
    let SessionShown { session, gates, runs } = shown;
    let gates =
        gates.iter().filter_map(|(open, gate)| convert::sessions::open_gate(caller, &session, *open, gate));
    let mut message = convert::sessions::session(caller, &session, gates.collect());
    message.runs = convert::sessions::runs(caller, runs);
    message
}
