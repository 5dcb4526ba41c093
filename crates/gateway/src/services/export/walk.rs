//! Walks through a tenant's rows, from the beginning of a page until it is full.

use prost::Message as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use switchward_api::v1::{self, export_record::Record};
use switchward_machine::{Bucket, SessionId, Time, limits::BUCKETS};
use switchward_shard::StateView;
use switchward_state::session::{Removed, Session, SessionEvent};
use switchward_state::{Event, Key, Kind, Row, TENANT_ITSELF, View, ViewError};

use super::position::{Position, Spot, Stage};
use super::records;
use crate::api::{Call, refusal, unreadable};
use crate::beside;
use crate::error::Refusal;
use crate::limits::{EXPORT_MS_MAX, EXPORT_PAGE_BYTES_MAX};
use crate::pages::LOOKED_AT_MAX;

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
pub(super) struct Found<'r> {
    /// `None` if the session began after the time of the export.
    pub(super) session: Option<&'r Session>,
    pub(super) removed: Option<&'r Removed>,
}

impl<'r> Found<'r> {
    pub(super) fn new(session: Option<&'r Row>, removed: Option<&'r Row>, at: Time) -> Self {
        let session = if let Some(Row::Session(session)) = session { Some(session) } else { None };
        let removed = if let Some(Row::Removed(removed)) = removed { Some(removed) } else { None };
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
        let catalogue = call.catalogue().await?;
        // Every shard's rows are then at least as new as the export's time.
        for shard in call.api.cluster.shards() {
            shard.read().await.map_err(refusal)?;
        }
        let _permit = call.api.shares.enter(call.caller.tenant, call.weight()).await?;
        beside::aside(|| self.look(&catalogue, position))
    }

    fn look(&mut self, catalogue: &StateView, position: Position) -> Result<Option<Position>, Refusal> {
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
        view: &StateView,
        number: &mut u64,
        records: &mut u32,
    ) -> Result<ControlFlow<()>, ViewError> {
        let tenant = self.call.caller.tenant;
        let prefix = Key::prefix_of_catalogue(tenant, Kind::TenantChange);
        let after = Key::tenant_change(tenant, number.saturating_sub(1));
        let mut flow = ControlFlow::Continue(());
        view.scan(&prefix, Some(after.as_bytes()), &mut |key, row| {
            let found = key.rest().try_into().ok().map(u64::from_be_bytes);
            let (Some(found), Row::TenantChange(change)) = (found, &**row) else {
                return ControlFlow::Continue(());
            };
            if change.at > self.at {
                return ControlFlow::Break(());
            }
            if found != *number {
                (*number, *records) = (found, 0);
            }
            let before = usize::try_from(*records).unwrap_or(usize::MAX);
            for record in records::change(found, change).into_iter().skip(before) {
                flow = self.put(record);
                if flow.is_break() {
                    return flow;
                }
                *records += 1;
            }
            (*number, *records) = (found + 1, 0);
            ControlFlow::Continue(())
        })?;
        Ok(flow)
    }

    fn sessions(&mut self, spot: &mut Spot) -> Result<ControlFlow<()>, ViewError> {
        loop {
            let Some(bucket) = Bucket::new(spot.bucket) else { return Ok(ControlFlow::Continue(())) };
            let view = self.call.api.cluster.shard_of(bucket).read_stale();
            if spot.stage == Stage::Over {
                match self.behind(&view, bucket, spot.session)? {
                    Some(next) => *spot = Spot::at(spot.bucket, next, Stage::Earlier),
                    None if spot.bucket + 1 == BUCKETS => return Ok(ControlFlow::Continue(())),
                    None => {
                        *spot = Spot::before(spot.bucket + 1);
                        continue;
                    }
                }
            }
            if self.session(&view, spot)?.is_break() || self.looked().is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Returns the next session of a bucket after another one that exists, or of which a removal remains.
    fn behind(
        &self,
        view: &StateView,
        bucket: Bucket,
        after: SessionId,
    ) -> Result<Option<SessionId>, ViewError> {
        let mut next: Option<SessionId> = None;
        for kind in [Kind::Session, Kind::Removed] {
            let prefix = Key::prefix_of_bucket(self.call.caller.tenant, bucket, kind);
            let after = [prefix.as_slice(), &after.0].concat();
            view.scan(&prefix, Some(&after), &mut |key, _| {
                next = [next, key.session_of()].into_iter().flatten().min();
                ControlFlow::Break(())
            })?;
        }
        Ok(next)
    }

    /// Exports the rest of one session; moves the position behind it at the end.
    fn session(&mut self, view: &StateView, spot: &mut Spot) -> Result<ControlFlow<()>, ViewError> {
        let (call, tenant, id) = (self.call, self.call.caller.tenant, spot.session);
        debug_assert_ne!(id, TENANT_ITSELF, "no session has this id");
        let (session, removed) = view.consistent(|rows| {
            Ok::<_, ViewError>((rows.row(&Key::session(tenant, id))?, rows.row(&Key::removed(tenant, id))?))
        })?;
        let found = Found::new(session.as_deref(), removed.as_deref(), self.at);
        if found.session.is_none() && found.removed.is_none() {
            spot.stage = Stage::Over;
        }
        while spot.stage != Stage::Over {
            let (flow, next) = match spot.stage {
                Stage::Earlier => (self.earlier(&found, spot), Stage::Itself),
                Stage::Itself => {
                    let flow = match found.session.filter(|session| !session.is_hidden()) {
                        Some(session) => self.itself(view, id, session)?,
                        None => ControlFlow::Continue(()),
                    };
                    (flow, Stage::History)
                }
                Stage::History => (self.history(view, spot)?, Stage::Removal),
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
    fn earlier(&mut self, found: &Found<'_>, spot: &mut Spot) -> ControlFlow<()> {
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
        view: &StateView,
        id: SessionId,
        session: &Session,
    ) -> Result<ControlFlow<()>, ViewError> {
        let first = view.row(&Key::history(self.call.caller.tenant, id, 0))?;
        let started = if let Some(Row::History(first)) = first.as_deref() { Some(first) } else { None };
        let started = started.filter(|first| {
            first.events.iter().any(|event| matches!(event, Event::Session(SessionEvent::Started { .. })))
        });
        let by = started.map(|first| &first.by);
        Ok(self.put(records::session(&self.call.caller, id, session, by, self.at)))
    }
}
