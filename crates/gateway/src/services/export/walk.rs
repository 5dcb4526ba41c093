//! Walks through a tenant's rows, from the beginning of a page until it is full.

use prost::Message as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use switchward_api::v1::{self, export_record::Record};
use switchward_machine::{Bucket, SessionId, Time, limits::BUCKETS};
use switchward_query::limits::LOOKED_AT_MAX;
use switchward_query::{GetNextSession, GetRemains, GetStarter, ListTenantChanges, Reader, Remains, Source};
use switchward_state::session::{Removed, Session};
use switchward_state::{NO_SESSION, ViewError};

use super::position::{Position, Spot, Stage};
use super::records;
use crate::api::Call;
use crate::beside;
use crate::error::Refusal;
use crate::limits::{EXPORT_MS_MAX, EXPORT_PAGE_BYTES_MAX};
use crate::refusals::{refusal, unreadable};

/// A page of an export while it is put together.
pub(super) struct Walk<'c> {
    pub(super) call: &'c Call<'c>,
    /// The time of the export.
    pub(super) at: Time,
    size: usize,
    records: Vec<v1::ExportRecord>,
    bytes: usize,
    looked: usize,
    /// When the walk began.
    since: Instant,
}

/// The session of an id, and what remains of it or of an earlier one, as far as they belong to the export.
pub(super) struct ExportedSession<'r> {
    /// `None` if the session began after the time of the export.
    pub(super) session: Option<&'r Session>,
    pub(super) removed: Option<&'r Removed>,
}

impl<'r> ExportedSession<'r> {
    pub(super) fn new(session: Option<&'r Session>, removed: Option<&'r Removed>, at: Time) -> Self {
        Self { session: session.filter(|session| session.created <= at), removed }
    }

    /// What remains of an earlier session of the same id.
    fn earlier(&self) -> Option<&'r Removed> {
        self.removed.filter(|removed| self.session.is_some_and(|session| session.created != removed.created))
    }

    /// What remains of the session itself.
    pub(super) fn own(&self) -> Option<&'r Removed> {
        self.removed.filter(|_| self.earlier().is_none())
    }
}

/// The bucket at which a page begins or ends; `None` is the end of the export.
fn bucket_of(position: Option<Position>) -> u16 {
    match position {
        Some(Position::Change { .. }) => 0,
        Some(Position::Session(spot)) => spot.bucket,
        None => BUCKETS - 1,
    }
}

impl<'c> Walk<'c> {
    pub(super) fn new(call: &'c Call<'c>, at: Time, size: usize) -> Self {
        Self { call, at, size, records: Vec::new(), bytes: 0, looked: 0, since: Instant::now() }
    }

    pub(super) fn into_records(self) -> Vec<v1::ExportRecord> {
        self.records
    }

    /// Continues from a position and returns where the next page begins; `None` at the end.
    pub(super) async fn from(&mut self, position: Position) -> Result<Option<Position>, Refusal> {
        let call = self.call;
        let _scan = call.api.scans.begin(call.caller.tenant).await?;
        let catalogue = call.api.reader(Source::Catalogue).await?;
        let map = call.api.cluster.map_epochs();
        // Every shard's rows are then at least as new as the export's time.
        for shard in call.api.cluster.shards() {
            Reader::linearizable(shard).await.map_err(refusal)?;
        }
        let permit = call.api.shares.enter(call.caller.tenant, call.weight()).await?;
        let next = beside::aside(|| self.look(&catalogue, position))?;
        drop(permit);
        // A bucket that has moved meanwhile may have been read at its former owner, or here before its rows have come. The
        // caller reads the page again by the same token.
        let walked = bucket_of(Some(position))..=bucket_of(next);
        call.api.cluster.confirm_owners(walked.filter_map(Bucket::new), map.newest).await.map_err(refusal)?;
        Ok(next)
    }

    fn look(&mut self, catalogue: &Reader, position: Position) -> Result<Option<Position>, Refusal> {
        self.since = Instant::now();
        let mut spot = match position {
            Position::Session(spot) => spot,
            Position::Change { mut number, mut records } => {
                if self.changes(catalogue, &mut number, &mut records).map_err(unreadable)?.is_break() {
                    return Ok(Some(Position::Change { number, records }));
                }
                Spot::before(0)
            }
        };
        let flow = self.sessions(&mut spot).map_err(unreadable)?;
        Ok(flow.is_break().then_some(Position::Session(spot)))
    }

    /// Adds a record, or breaks if the page is full.
    pub(super) fn put(&mut self, record: Record) -> ControlFlow<()> {
        if self.records.len() >= self.size {
            return ControlFlow::Break(());
        }
        let record = records::masked(record);
        let bytes = self.bytes + record.encoded_len();
        if !self.records.is_empty() && bytes > EXPORT_PAGE_BYTES_MAX {
            return ControlFlow::Break(());
        }
        self.bytes = bytes;
        self.records.push(record);
        ControlFlow::Continue(())
    }

    /// Counts a row that was read; breaks if that is enough for one call.
    pub(super) fn looked(&mut self) -> ControlFlow<()> {
        self.looked += 1;
        let in_time = self.since.elapsed() < Duration::from_millis(EXPORT_MS_MAX);
        if in_time && self.looked < LOOKED_AT_MAX {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn changes(
        &mut self,
        catalogue: &Reader,
        number: &mut u64,
        records: &mut u32,
    ) -> Result<ControlFlow<()>, ViewError> {
        loop {
            let query = ListTenantChanges { tenant: self.call.caller.tenant, from: *number };
            let found = catalogue.answer(&query)?;
            for one in &found {
                if one.change.at > self.at {
                    return Ok(ControlFlow::Continue(()));
                }
                if one.number != *number {
                    (*number, *records) = (one.number, 0);
                }
                let before = usize::try_from(*records).unwrap_or(usize::MAX);
                for record in records::change(one.number, &one.change).into_iter().skip(before) {
                    if self.put(record).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                    *records += 1;
                }
                (*number, *records) = (one.number + 1, 0);
            }
            if found.len() < ListTenantChanges::ROWS {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    fn sessions(&mut self, spot: &mut Spot) -> Result<ControlFlow<()>, ViewError> {
        loop {
            let Some(bucket) = Bucket::new(spot.bucket) else { return Ok(ControlFlow::Continue(())) };
            let rows = Reader::stale(self.call.api.cluster.shard_of(bucket));
            if spot.stage == Stage::Over {
                let (tenant, after) = (self.call.caller.tenant, spot.session);
                match rows.answer(&GetNextSession { tenant, bucket, after })? {
                    Some(next) => *spot = Spot::at(spot.bucket, next, Stage::Earlier),
                    None if spot.bucket + 1 == BUCKETS => return Ok(ControlFlow::Continue(())),
                    None => {
                        *spot = Spot::before(spot.bucket + 1);
                        continue;
                    }
                }
            }
            if self.session(&rows, spot)?.is_break() || self.looked().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Exports the rest of one session; moves the position behind it at the end.
    fn session(&mut self, rows: &Reader, spot: &mut Spot) -> Result<ControlFlow<()>, ViewError> {
        let (call, tenant, id) = (self.call, self.call.caller.tenant, spot.session);
        debug_assert_ne!(id, NO_SESSION, "no session has this id");
        let Remains { session, removed } = rows.answer(&GetRemains { tenant, session: id })?;
        let found = ExportedSession::new(session.as_deref(), removed.as_deref(), self.at);
        if found.session.is_none() && found.removed.is_none() {
            spot.stage = Stage::Over;
        }
        while spot.stage != Stage::Over {
            let (flow, next) = match spot.stage {
                Stage::Earlier => (self.earlier(&found, spot), Stage::Itself),
                Stage::Itself => {
                    let flow = match found.session.filter(|session| !session.is_hidden()) {
                        Some(session) => self.itself(rows, id, session)?,
                        None => ControlFlow::Continue(()),
                    };
                    (flow, Stage::History)
                }
                Stage::History => (self.history(rows, spot)?, Stage::Removal),
                Stage::Removal => {
                    let own = found.own().filter(|removed| removed.at <= self.at);
                    let flow = own.map(|removed| self.put(records::removal(&call.caller, id, removed)));
                    (flow.unwrap_or(ControlFlow::Continue(())), Stage::Over)
                }
                Stage::Over => return Ok(ControlFlow::Continue(())),
            };
            if flow.is_break() {
                return Ok(flow);
            }
            spot.stage = next;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// What remains of an earlier session of the same id.
    fn earlier(&mut self, found: &ExportedSession<'_>, spot: &mut Spot) -> ControlFlow<()> {
        if let Some(removed) = found.earlier() {
            self.kept(removed, spot)?;
            if removed.at <= self.at {
                self.put(records::removal(&self.call.caller, spot.session, removed))?;
            }
        }
        spot.decisions = 0;
        ControlFlow::Continue(())
    }

    /// Exports the decisions that a removal has kept, except those exported before.
    pub(super) fn kept(&mut self, removed: &Removed, spot: &mut Spot) -> ControlFlow<()> {
        let before = usize::try_from(spot.decisions).unwrap_or(usize::MAX);
        let (at, left) = (self.at, removed.decisions.iter().skip(before));
        for decision in left.take_while(|decision| decision.at <= at) {
            self.put(records::decision(&self.call.caller, spot.session, decision))?;
            spot.decisions += 1;
        }
        ControlFlow::Continue(())
    }

    fn itself(
        &mut self,
        rows: &Reader,
        id: SessionId,
        session: &Session,
    ) -> Result<ControlFlow<()>, ViewError> {
        let by = rows.answer(&GetStarter { tenant: self.call.caller.tenant, session: id })?;
        Ok(self.put(records::session(&self.call.caller, id, session, by.as_ref(), self.at)))
    }
}
