//! Queries about what an export walks through.

use minicbor::{CborLen, Decode, Encode};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{Bucket, SessionId, TenantId};
use switchward_shard::StateView;
use switchward_state::catalogue::TenantChange;
use switchward_state::session::{Removed, Session, SessionEvent};
use switchward_state::{Actor, Event, Key, Kind, ReadRows as _, SharedRow, View, ViewError};

use crate::ask::{Ask, Evaluate, Source};
use crate::history::{HistoryRow, some_rows};

/// A query about what an export walks through.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ExportQuery {
    /// What was changed of the tenant itself, such as its directory.
    #[n(0)]
    ListTenantChanges(#[n(0)] ListTenantChanges),
    /// The next session of a bucket.
    #[n(1)]
    NextSession(#[n(0)] GetNextSession),
    /// A session, and what remains of one.
    #[n(2)]
    Remains(#[n(0)] GetRemains),
    /// Who has started a session.
    #[n(3)]
    Starter(#[n(0)] GetStarter),
    /// A part of a history.
    #[n(4)]
    Part(#[n(0)] GetExportPart),
}

/// The changes of a tenant from a number on, in order: [`ListTenantChanges::ROWS`], and fewer at the end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListTenantChanges {
    /// The tenant whose changes are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// The number of the first change, from 1.
    #[n(1)]
    pub from: u64,
}

impl ListTenantChanges {
    /// The number of changes of an answer.
    pub const ROWS: usize = 64;
}

/// A change of a tenant.
#[derive(Debug, Clone, Encode, Decode, CborLen)]
pub struct NumberedChange {
    /// Its number, from 1.
    #[n(0)]
    pub number: u64,
    /// What was changed, when, and by whom.
    #[n(1)]
    pub change: SharedRow<TenantChange>,
}

impl Evaluate for ListTenantChanges {
    type Answer = Vec<NumberedChange>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_catalogue(self.tenant, Kind::TenantChange);
        let after = Key::tenant_change(self.tenant, self.from.saturating_sub(1));
        let mut found = Vec::new();
        rows.scan(&prefix, Some(after.as_bytes()), &mut |key, row| {
            let number = key.rest().try_into().ok().map(u64::from_be_bytes);
            let shared = SharedRow::of(Arc::clone(row));
            found.extend(number.zip(shared).map(|(number, change)| NumberedChange { number, change }));
            if found.len() < Self::ROWS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(found)
    }
}

impl Ask for ListTenantChanges {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The next session of a bucket that exists, or of which a removal remains. Answers `None` if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetNextSession {
    /// The tenant that is exported.
    #[n(0)]
    pub tenant: TenantId,
    /// The bucket that is walked through.
    #[n(1)]
    pub bucket: Bucket,
    /// The session after which it comes.
    #[n(2)]
    pub after: SessionId,
}

impl Evaluate for GetNextSession {
    type Answer = Option<SessionId>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let mut next: Option<SessionId> = None;
        for kind in [Kind::Session, Kind::Removed] {
            let prefix = Key::prefix_of_bucket(self.tenant, self.bucket, kind);
            let after = [prefix.as_slice(), &self.after.0].concat();
            rows.scan(&prefix, Some(&after), &mut |key, _| {
                next = [next, key.session_of()].into_iter().flatten().min();
                ControlFlow::Break(())
            })?;
        }
        Ok(next)
    }
}

impl Ask for GetNextSession {
    fn source(&self) -> Source {
        Source::Bucket(self.bucket)
    }
}

/// The session of an id, and what remains of it or of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetRemains {
    /// The tenant that is exported.
    #[n(0)]
    pub tenant: TenantId,
    /// The id, also of a session that was removed.
    #[n(1)]
    pub session: SessionId,
}

/// The session of an id, and what remains of it or of an earlier one.
#[derive(Debug, Clone, Encode, Decode, CborLen)]
pub struct Remains {
    /// `None` if no session of the id exists now.
    #[n(0)]
    pub session: Option<SharedRow<Session>>,
    /// What remains.
    #[n(1)]
    pub removed: Option<SharedRow<Removed>>,
}

impl Evaluate for GetRemains {
    type Answer = Remains;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| {
            let session = rows.session(self.tenant, self.session)?;
            let removed = rows.removed_at(&Key::removed(self.tenant, self.session))?;
            Ok(Remains { session, removed })
        })
    }
}

impl Ask for GetRemains {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// Who has started a session. Answers `None` if the beginning of its history is gone.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetStarter {
    /// The tenant that is exported.
    #[n(0)]
    pub tenant: TenantId,
    /// The session whose first event is read.
    #[n(1)]
    pub session: SessionId,
}

impl Evaluate for GetStarter {
    type Answer = Option<Actor>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let first = rows.history_at(&Key::history(self.tenant, self.session, 0))?;
        let starts = |event: &Event| matches!(event, Event::Session(SessionEvent::Started { .. }));
        Ok(first.filter(|first| first.events.iter().any(starts)).map(|first| first.by.clone()))
    }
}

impl Ask for GetStarter {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// Rows of a session's history for an export, oldest first: [`GetExportPart::ROWS`], and fewer at the end.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetExportPart {
    /// The tenant that is exported.
    #[n(0)]
    pub tenant: TenantId,
    /// The session whose history is read.
    #[n(1)]
    pub session: SessionId,
    /// The sequence before the first event of the first row, or less.
    #[n(2)]
    pub row: u64,
}

impl GetExportPart {
    /// The number of rows of an answer.
    pub const ROWS: usize = 64;
}

/// A part of a history, with the session's rows at the same time.
#[derive(Debug, Clone, Encode, Decode, CborLen)]
pub struct ExportPart {
    /// `None` if the session does not exist any more.
    #[n(0)]
    pub session: Option<SharedRow<Session>>,
    /// What remains of it or of an earlier one.
    #[n(1)]
    pub removed: Option<SharedRow<Removed>>,
    /// Rows of history, oldest first.
    #[n(2)]
    pub rows: Vec<HistoryRow>,
}

impl Evaluate for GetExportPart {
    type Answer = ExportPart;

    /// The decisions that a removal keeps are read before and after the rows, so that no decision moves from one to the other
    /// unseen.
    fn evaluate(&self, view: &StateView) -> Result<Self::Answer, ViewError> {
        let (tenant, id) = (self.tenant, self.session);
        let prefix = Key::prefix_of_session(tenant, id, Kind::History);
        let after = self.row.checked_sub(1).map(|before| Key::history(tenant, id, before));
        let kept = || view.row(&Key::removed(tenant, id));
        let mut removed = kept()?;
        loop {
            let rows = some_rows(view, &prefix, after.as_ref().map(Key::as_bytes), Self::ROWS)?;
            let now = kept()?;
            if now == removed {
                let session = view.session(tenant, id)?;
                let removed = removed.and_then(SharedRow::of);
                return Ok(ExportPart { session, removed, rows });
            }
            removed = now;
        }
    }
}

impl Ask for GetExportPart {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}
