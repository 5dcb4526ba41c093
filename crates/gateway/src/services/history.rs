//! Reads a session's history.

use prost::Message;
use switchward_api::v1;
use switchward_machine::SessionId;
use switchward_query::{GetHistory, GetMachines, HistoryFrom, Reader};

use crate::auth::Caller;
use crate::convert;
use crate::error::Refusal;
use crate::pages::PAGE_BYTES_MAX;
use crate::refusals::unreadable;

/// The events of a session that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) session: SessionId,
    /// The first sequence.
    pub(super) from: u64,
    /// How many events at most.
    pub(super) max: usize,
}

/// Returns the first wanted events, about [`PAGE_BYTES_MAX`] bytes at most, and whether there may be more. Stops after at
/// least one event if `stop` returns true.
pub(super) fn read(
    rows: &Reader,
    caller: &Caller,
    wanted: Wanted,
    mut stop: impl FnMut() -> Result<bool, Refusal>,
) -> Result<(Vec<v1::SessionEvent>, bool), Refusal> {
    let (tenant, Wanted { session, from, max }) = (caller.tenant, wanted);
    let mut query = GetHistory { tenant, session, from: HistoryFrom::Event(from) };
    let (mut events, mut bytes) = (Vec::new(), 0);
    loop {
        let found = rows.answer(&query).map_err(unreadable)?;
        for row in &found {
            let machines = rows.answer(&GetMachines::of(tenant, session, &row.history.events));
            let shown = convert::events::of_history(row.first, &row.history, &machines.map_err(unreadable)?);
            for event in shown.into_iter().filter(|event| event.sequence >= from) {
                bytes += event.encoded_len();
                events.push(event);
            }
            let full = events.len() >= max || bytes >= PAGE_BYTES_MAX;
            if full || (stop()? && !events.is_empty()) {
                events.truncate(max);
                return Ok((events, true));
            }
        }
        match found.last() {
            Some(last) if found.len() == GetHistory::ROWS => query.from = HistoryFrom::After(last.first),
            Some(_) | None => return Ok((events, false)),
        }
    }
}
