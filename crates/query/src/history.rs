//! Queries about the history of a session.

use minicbor::{CborLen, Decode, Encode};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_engine::{Machines, machines_of_runs};
use switchward_machine::{RunId, SessionId, TenantId};
use switchward_shard::StateView;
use switchward_state::{Event, History, Key, Kind, Row, SharedRow, View, ViewError};

use crate::ask::{Ask, Evaluate, Source};

/// More events than most commands emit; a row of history holds the events of one command.
const EVENTS_OF_A_ROW: u64 = 32;

/// A row of a history: the events of one command.
#[derive(Debug, Clone, Encode, Decode, CborLen)]
pub struct HistoryRow {
    /// The sequence before the row's first event.
    #[n(0)]
    pub first: u64,
    /// The events of the command, with its time and its caller.
    #[n(1)]
    pub history: SharedRow<History>,
}

impl HistoryRow {
    /// The row of a scan; `None` if it is not one of a history.
    pub(crate) fn of(key: &Key, row: &Arc<Row>) -> Option<Self> {
        let first = sequence_of(key)?;
        SharedRow::of(Arc::clone(row)).map(|history| Self { first, history })
    }
}

/// The first of the rows of a history that a query is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum HistoryFrom {
    /// The row with the event of this sequence, or an earlier one that is not far away.
    #[n(0)]
    Event(#[n(0)] u64),
    /// The row after the one whose first event follows this sequence.
    #[n(1)]
    After(#[n(0)] u64),
}

/// Rows of a session's history, oldest first: [`GetHistory::ROWS`], and fewer at the end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetHistory {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session whose history is read.
    #[n(1)]
    pub session: SessionId,
    /// The first row.
    #[n(2)]
    pub from: HistoryFrom,
}

impl GetHistory {
    /// The number of rows of an answer.
    pub const ROWS: usize = 64;
}

impl Evaluate for GetHistory {
    type Answer = Vec<HistoryRow>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_session(self.tenant, self.session, Kind::History);
        let after = match self.from {
            HistoryFrom::Event(sequence) => before(rows, &prefix, sequence)?,
            HistoryFrom::After(first) => Some([prefix.as_slice(), &first.to_be_bytes()].concat()),
        };
        some_rows(rows, &prefix, after.as_deref(), Self::ROWS)
    }
}

impl Ask for GetHistory {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// Reads up to `max` rows of history.
pub(crate) fn some_rows(
    view: &StateView,
    prefix: &[u8],
    after: Option<&[u8]>,
    max: usize,
) -> Result<Vec<HistoryRow>, ViewError> {
    let mut rows = Vec::new();
    view.scan(prefix, after, &mut |key, row| {
        rows.extend(HistoryRow::of(key, row));
        if rows.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(rows)
}

/// Returns a key before the row with this event; `None` if that may be the first row.
fn before(view: &StateView, prefix: &[u8], from: u64) -> Result<Option<Vec<u8>>, ViewError> {
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
fn sequence_of(key: &Key) -> Option<u64> {
    key.rest().get(16..24)?.try_into().ok().map(u64::from_be_bytes)
}

/// The rows of a session's history that begin within the last [`GetHistoryBefore::REACH`] sequences before `end`, oldest
/// first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetHistoryBefore {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session whose history is read.
    #[n(1)]
    pub session: SessionId,
    /// The sequence before which the rows begin.
    #[n(2)]
    pub end: u64,
}

impl GetHistoryBefore {
    /// Sequences that one answer goes back.
    pub const REACH: u64 = 512;
}

impl Evaluate for GetHistoryBefore {
    type Answer = Vec<HistoryRow>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_session(self.tenant, self.session, Kind::History);
        let begin = self.end.saturating_sub(Self::REACH);
        let after = begin.checked_sub(1).map(|before| [prefix.as_slice(), &before.to_be_bytes()].concat());
        let mut found = Vec::new();
        rows.scan(&prefix, after.as_deref(), &mut |key, row| {
            if sequence_of(key).is_none_or(|first| first >= self.end) {
                return ControlFlow::Break(());
            }
            found.extend(HistoryRow::of(key, row));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

impl Ask for GetHistoryBefore {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// The machines of runs of a session, by which events are shown.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetMachines {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session that the runs are of.
    #[n(1)]
    pub session: SessionId,
    /// The runs whose machines are wanted, in any order.
    #[n(2)]
    pub runs: Vec<RunId>,
}

impl GetMachines {
    /// Asks for the machines of all runs that these events are about.
    #[must_use]
    pub fn of(tenant: TenantId, session: SessionId, events: &[Event]) -> Self {
        let mut runs: Vec<RunId> = events.iter().filter_map(Event::run).collect();
        runs.dedup();
        Self { tenant, session, runs }
    }
}

impl Evaluate for GetMachines {
    type Answer = Machines;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| machines_of_runs(rows, self.tenant, self.session, self.runs.iter().copied()))
    }
}

impl Ask for GetMachines {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}
