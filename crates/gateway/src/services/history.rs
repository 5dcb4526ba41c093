//! Reads a session's history.

use prost::Message;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_api::v1;
use switchward_engine::{SessionView, machines_of};
use switchward_machine::{SessionId, TenantId};
use switchward_shard::StateView;
use switchward_state::{Key, Kind, Row, View, ViewError};

use crate::api::unreadable;
use crate::auth::Caller;
use crate::convert;
use crate::error::Refusal;
use crate::pages::PAGE_BYTES_MAX;

/// Rows of history that are read at once.
const ROWS_AT_ONCE: usize = 64;

/// More events than most commands emit; a row of history holds the events of one command.
const EVENTS_OF_A_ROW: u64 = 32;

/// The key prefix of a session's history.
pub(super) fn history_prefix(tenant: TenantId, id: SessionId) -> Vec<u8> {
    Key::prefix_of_session(tenant, id, Kind::History)
}

/// Returns the first events of a session from a sequence on, at most `max` and about [`PAGE_BYTES_MAX`], and whether there
/// may be more. Stops after at least one event if `stop` returns true.
pub(super) fn read(
    view: &StateView,
    caller: &Caller,
    session: &SessionView,
    (from, max): (u64, usize),
    mut stop: impl FnMut() -> Result<bool, Refusal>,
) -> Result<(Vec<v1::SessionEvent>, bool), Refusal> {
    let tenant = caller.tenant;
    let prefix = history_prefix(tenant, session.id);
    let mut after = before(view, &prefix, from).map_err(unreadable)?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    loop {
        // Rows are converted after the scan, because that reads the rows of their runs.
        let rows = some_rows(view, &prefix, after.as_deref()).map_err(unreadable)?;
        for (first, row) in &rows {
            let Row::History(history) = &**row else { continue };
            let machines = view.consistent(|rows| machines_of(rows, tenant, session.id, &history.events));
            let shown = convert::events::of_history(*first, history, &machines.map_err(unreadable)?);
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
        match rows.last() {
            Some((last, _)) if rows.len() == ROWS_AT_ONCE => {
                after = Some([prefix.as_slice(), &last.to_be_bytes()].concat());
            }
            Some(_) | None => return Ok((events, false)),
        }
    }
}

/// Some rows of history, each with the sequence before its first event.
fn some_rows(
    view: &StateView,
    prefix: &[u8],
    after: Option<&[u8]>,
) -> Result<Vec<(u64, Arc<Row>)>, ViewError> {
    let mut rows = Vec::new();
    view.scan(prefix, after, &mut |key, row| {
        rows.extend(sequence_of(key).map(|first| (first, Arc::clone(row))));
        if rows.len() < ROWS_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(rows)
}

/// Returns a key before the row with this event; `None` if that may be the first row.
fn before(view: &dyn View, prefix: &[u8], from: u64) -> Result<Option<Vec<u8>>, ViewError> {
    let mut reach = EVENTS_OF_A_ROW;
    while let Some(before) = from.checked_sub(reach).filter(|before| *before > 0) {
        let start = [prefix, &before.to_be_bytes()].concat();
        let mut first = None;
        view.scan(prefix, Some(&start), &mut |key, _| {
            first = sequence_of(key);
            ControlFlow::Break(())
        })?;
        // Rows have no gaps between them, so one that begins before the event leads to it.
        if first.is_some_and(|first| first < from) {
            return Ok(Some(start));
        }
        reach = reach.saturating_mul(8);
    }
    Ok(None)
}

/// The sequence before the first event of a row of history.
pub(super) fn sequence_of(key: &Key) -> Option<u64> {
    key.rest().get(16..24)?.try_into().ok().map(u64::from_be_bytes)
}
