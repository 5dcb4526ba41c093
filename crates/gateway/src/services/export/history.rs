//! What happened in a session: its events, and what people decided in them.
//!
//! A history may be shortened while it is exported: its rows are deleted, the oldest first, and their decisions move to
//! those that the removal keeps, in the same order. So decisions are counted, and those that moved meanwhile come first.

use std::borrow::Cow;
use std::ops::ControlFlow;
use switchward_api::v1::export_record::Record;
use switchward_machine::SessionId;
use switchward_query::{GetExportPart, GetMachines, HistoryRow, Reader};
use switchward_state::session::{Removing, Session, decided, redacted};
use switchward_state::{History, ViewError};

use super::position::Spot;
use super::records;
use super::walk::{ExportedSession, Walk};
use crate::convert;

/// A record of one event: its sequence, whether it is the event's decision, and the record.
type Item = (u64, bool, Record);

impl Walk<'_> {
    /// Exports the remaining events and decisions of a session.
    pub(super) fn history(&mut self, rows: &Reader, spot: &mut Spot) -> Result<ControlFlow<()>, ViewError> {
        loop {
            let (tenant, session) = (self.call.caller.tenant, spot.session);
            let part = rows.answer(&GetExportPart { tenant, session, row: spot.row })?;
            let found = ExportedSession::new(part.session.as_deref(), part.removed.as_deref(), self.at);
            if let Some(own) = found.own()
                && self.kept(own, spot).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            let Some(session) = found.session.filter(|session| !is_deleted(session)) else {
                return Ok(ControlFlow::Continue(()));
            };
            for HistoryRow { first, history } in &part.rows {
                if history.at > self.at {
                    return Ok(ControlFlow::Continue(()));
                }
                let items = self.items(rows, spot.session, session, *first, history)?;
                if self.row(spot, *first, items).is_break() || self.looked().is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if part.rows.len() < GetExportPart::ROWS {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// The records of a row of history, in order.
    fn items(
        &self,
        rows: &Reader,
        id: SessionId,
        session: &Session,
        first: u64,
        history: &History,
    ) -> Result<Vec<Item>, ViewError> {
        let caller = &self.call.caller;
        // An erased session is erased at once, but its rows one after the other.
        let history =
            if session.is_erased() { Cow::Owned(redacted(history)) } else { Cow::Borrowed(history) };
        let mut items: Vec<Item> = Vec::new();
        if !session.is_hidden() {
            let machines = rows.answer(&GetMachines::of(caller.tenant, id, &history.events))?;
            let events = convert::events::of_history(first, &history, &machines).into_iter();
            items.extend(events.map(|event| (event.sequence, false, records::event(caller, id, event))));
        }
        items.extend(decided(&history).into_iter().map(|(at, decision)| {
            let sequence = first + 1 + u64::try_from(at).unwrap_or(0);
            (sequence, true, records::decision(caller, id, &decision))
        }));
        items.sort_by_key(|(sequence, decision, _)| (*sequence, *decision));
        Ok(items)
    }

    /// Takes the records of a row that are not exported yet.
    fn row(&mut self, spot: &mut Spot, first: u64, items: Vec<Item>) -> ControlFlow<()> {
        if spot.row != first {
            (spot.row, spot.sequence, spot.decided) = (first, 0, false);
        }
        let before = (spot.sequence, spot.decided);
        let left = items.into_iter().filter(|(sequence, decision, _)| (*sequence, *decision) > before);
        for (sequence, decision, record) in left {
            self.put(record)?;
            (spot.sequence, spot.decided) = (sequence, decision);
            spot.decisions += u64::from(decision);
        }
        (spot.row, spot.sequence, spot.decided) = (first + 1, 0, false);
        ControlFlow::Continue(())
    }
}

/// Returns true if nothing of a session may be shown any more, not even who decided what.
fn is_deleted(session: &Session) -> bool {
    session.removal.as_deref().is_some_and(|removal| removal.how == Removing::Deleted)
}
