//! Queries about work and timers.

use minicbor::{CborLen, Decode, Encode};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use switchward_engine::{WorkView, work_view};
use switchward_machine::{OpenId, SessionId, TenantId, Time, WorkKind};
use switchward_shard::StateView;
use switchward_state::{Due, IndexKey, Key, Scope, View, ViewError};

use crate::ask::{Ask, Evaluate, Source};

/// A query about work and timers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum WorkQuery {
    /// Open work.
    #[n(0)]
    Get(#[n(0)] GetWork),
    /// Work of a tenant that is ready.
    #[n(1)]
    ListReady(#[n(0)] ListReady),
    /// The first timer that is due.
    #[n(2)]
    FirstTimer(#[n(0)] GetFirstTimer),
}

/// Open work of a session. Answers `None` if there is none of this number.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetWork {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session that the work is of.
    #[n(1)]
    pub session: SessionId,
    /// The work's number in the session.
    #[n(2)]
    pub work: OpenId,
}

impl Evaluate for GetWork {
    type Answer = Option<WorkView>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| work_view(rows, self.tenant, self.session, self.work))
    }
}

impl Ask for GetWork {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// The first items of one shard that are ready, for each kind and queue oldest first. Another call may take some of them at
/// the same moment, so up to twice as many are listed as are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListReady {
    /// The tenant whose workers ask.
    #[n(0)]
    pub tenant: TenantId,
    /// The wanted kinds.
    #[n(1)]
    pub kinds: Vec<WorkKind>,
    /// The wanted queues; empty: all.
    #[n(2)]
    pub queues: Vec<String>,
    /// The number of wanted items.
    #[n(3)]
    pub max: u32,
}

/// An item that is ready: since when, and which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub struct Ready {
    /// When it was opened.
    #[n(0)]
    pub at: Time,
    /// The session that the item is of.
    #[n(1)]
    pub session: SessionId,
    /// Its number there.
    #[n(2)]
    pub work: OpenId,
}

impl Evaluate for ListReady {
    type Answer = Vec<Ready>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let mut prefixes = Vec::new();
        for kind in &self.kinds {
            if self.queues.is_empty() {
                prefixes.push(IndexKey::ready(self.tenant, *kind, None));
            }
            prefixes.extend(self.queues.iter().map(|queue| IndexKey::ready(self.tenant, *kind, Some(queue))));
        }
        let (mut ready, max) = (Vec::new(), self.max.saturating_mul(2));
        for prefix in prefixes {
            let mut found = 0;
            rows.scan(&prefix, None, &mut |entry, _| {
                let item = IndexKey::ready_of(entry);
                ready.extend(item.map(|(at, session, work)| Ready { at, session, work }));
                found += 1;
                if found < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(ready)
    }
}

/// The first timer of a session in one shard that is due by a time and has not fired. Answers `None` if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetFirstTimer {
    /// Timers that are due later are left out.
    #[n(0)]
    pub by: Time,
    /// Those that have fired.
    #[n(1)]
    pub fired: FiredTimers,
}

/// Timers that have fired, each once for each of its times.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct FiredTimers(#[n(0)] BTreeSet<FiredTimer>);

/// A timer that has fired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
struct FiredTimer {
    /// When it was due.
    #[n(0)]
    at: Time,
    /// The row that it was about.
    #[n(1)]
    key: Key,
}

impl FiredTimer {
    fn of(due: &Due) -> Self {
        Self { at: due.at, key: due.key.clone() }
    }
}

impl FiredTimers {
    /// Adds a timer.
    pub fn insert(&mut self, due: &Due) {
        self.0.insert(FiredTimer::of(due));
    }

    /// The number of timers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if none has fired.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Evaluate for GetFirstTimer {
    type Answer = Option<Due>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let mut first = None;
        rows.scan(&IndexKey::due(), None, &mut |entry, _| {
            let Some(due) = IndexKey::due_of(entry).filter(|due| due.at <= self.by) else {
                return ControlFlow::Break(());
            };
            if !matches!(due.scope(), Scope::Session(_)) || self.fired.0.contains(&FiredTimer::of(&due)) {
                return ControlFlow::Continue(());
            }
            first = Some(due);
            ControlFlow::Break(())
        })?;
        Ok(first)
    }
}
