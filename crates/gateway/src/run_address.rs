//! Which run of a session a request is about, as its caller names it.

use switchward_api::v1;
use switchward_machine::limits::NAME_BYTES_MAX;
use switchward_machine::{OpenId, RunId, SessionId};
use switchward_state::run::RunAddress;

use crate::auth::Caller;
use crate::error::Refusal;
use crate::names;

/// The address in a request about this session; `None` if it names nothing.
///
/// # Errors
/// FIELD_INVALID for a state that cannot be the name of one; NOT_FOUND for work of another session or tenant.
pub(crate) fn of(
    caller: &Caller,
    session: SessionId,
    address: Option<v1::RunAddress>,
) -> Result<Option<RunAddress>, Refusal> {
    let Some(v1::RunAddress { run, state, work_item }) = address else { return Ok(None) };
    if state.len() > NAME_BYTES_MAX || names::has_control(&state) {
        return Err(Refusal::field("address.state", "is not the name of a state"));
    }
    let address = RunAddress {
        work: work(caller, session, &work_item)?,
        run: (run > 0).then_some(RunId(run)),
        node: (!state.is_empty()).then_some(state),
    };
    Ok((address != RunAddress::default()).then_some(address))
}

fn work(caller: &Caller, session: SessionId, name: &str) -> Result<Option<OpenId>, Refusal> {
    if name.is_empty() {
        return Ok(None);
    }
    let (of, work) = names::work(caller, "address.work_item", name)?;
    if of != session {
        return Err(Refusal::not_found("work", name));
    }
    Ok(Some(work))
}
