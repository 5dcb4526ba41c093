//! Sessions and remains whose retention is over and that have not expired yet.
//!
//! Entries that were removed from an index slow down a scan over their range until the files are merged. So a scan
//! continues after the last entry that was found, and starts over only when nothing is left.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::session::{Removing, Retention};
use switchward_state::{IndexKey, Key, Row, View, ViewError};

use crate::limits::{EXPIRE_AT_ONCE, EXPIRY_QUEUES_MAX, REMOVE_STEP_ROWS};
use crate::view::StateView;

/// A session whose retention, or whose history's retention, is over.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) tenant: TenantId,
    pub(super) id: SessionId,
    pub(super) how: Removing,
    /// The latest end time that is overdue.
    pub(super) ended_by: Time,
}

/// The remains of sessions of one tenant whose retention is over.
#[derive(Debug)]
pub(super) struct Remains {
    pub(super) tenant: TenantId,
    pub(super) keys: Vec<Key>,
    /// The latest end time that is overdue.
    pub(super) ended_by: Time,
}

/// The result of a scan.
#[derive(Debug, Default)]
pub(super) struct Overdue {
    pub(super) sessions: Vec<Late>,
    pub(super) remains: Vec<Remains>,
}

impl Overdue {
    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.remains.is_empty()
    }
}

/// The queues that had something overdue at the last full scan, with each scan's position. They take turns.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    queues: VecDeque<ExpiryQueue>,
}

/// What an entry of a queue expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// The session, or only its history.
    Session(Removing),
    /// The remains of a session.
    Remains,
}

/// One definition's entries in one of a tenant's indices, the earliest first.
#[derive(Debug)]
struct ExpiryQueue {
    tenant: TenantId,
    ends: Ends,
    mark: [u8; 8],
    /// The common prefix of the entries.
    prefix: Vec<u8>,
    /// The last entry that was found.
    after: Option<Vec<u8>>,
}

impl Backlog {
    /// Returns what is overdue: at most [`EXPIRE_AT_ONCE`] sessions. Empty only if nothing is overdue.
    ///
    /// # Errors
    /// A row cannot be read.
    pub(super) fn next(&mut self, view: &StateView, now: Time) -> Result<Overdue, ViewError> {
        let found = self.go_on(view, now)?;
        if !found.is_empty() {
            return Ok(found);
        }
        self.queues = queues(view)?;
        self.go_on(view, now)
    }

    /// Returns true if the known queues are exhausted.
    pub(super) fn is_done(&self) -> bool {
        self.queues.is_empty()
    }

    /// Takes from the queues in turn. Exhausted ones are dropped.
    fn go_on(&mut self, view: &StateView, now: Time) -> Result<Overdue, ViewError> {
        let mut found = Overdue::default();
        for _ in 0..self.queues.len() {
            let left = EXPIRE_AT_ONCE.saturating_sub(found.sessions.len());
            let share = left.min(EXPIRE_AT_ONCE.div_ceil(self.queues.len()));
            if share == 0 {
                break;
            }
            let Some(mut queue) = self.queues.pop_front() else { break };
            if queue.take(view, now, share, &mut found)? {
                self.queues.push_back(queue);
            }
        }
        Ok(found)
    }
}

impl ExpiryQueue {
    /// Takes at most `max` entries. Returns true if there may be more.
    fn take(
        &mut self,
        view: &StateView,
        now: Time,
        max: usize,
        found: &mut Overdue,
    ) -> Result<bool, ViewError> {
        let row = view.row(&Key::tenancy(self.tenant))?;
        let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(false) };
        let Some(ended_by) = self.ended_by(&tenancy.retention, now) else { return Ok(false) };
        let max = if self.ends == Ends::Remains { REMOVE_STEP_ROWS } else { max };
        let mut entries = Vec::new();
        view.scan(&self.prefix, self.after.as_deref(), &mut |entry, _| {
            if IndexKey::lasting_of(entry).is_none_or(|(_, ended, _)| ended > ended_by) {
                return ControlFlow::Break(());
            }
            entries.push(entry.clone());
            if entries.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let Some(last) = entries.last() else { return Ok(false) };
        self.after = Some(last.as_bytes().to_vec());
        let (tenant, more) = (self.tenant, entries.len() == max);
        let ids = entries.iter().filter_map(|entry| IndexKey::lasting_of(entry).map(|(_, _, id)| id));
        match self.ends {
            Ends::Session(how) => {
                found.sessions.extend(ids.map(|id| Late { tenant, id, how, ended_by }));
            }
            Ends::Remains => {
                let keys = ids.map(|id| Key::removed(tenant, id)).collect();
                found.remains.push(Remains { tenant, keys, ended_by });
            }
        }
        Ok(more)
    }

    /// The latest end time of an overdue entry. Returns `None` if entries are kept forever.
    fn ended_by(&self, retention: &Retention, now: Time) -> Option<Time> {
        let rule = retention.of(self.mark);
        let kept = match self.ends {
            Ends::Session(Removing::Trimmed) => rule.history_ms,
            Ends::Session(_) => rule.sessions_ms,
            Ends::Remains => rule.decisions_ms,
        };
        kept.and_then(|ms| now.0.checked_sub(ms)).map(Time)
    }
}

/// The queues of all tenants that have a retention rule.
fn queues(view: &StateView) -> Result<VecDeque<ExpiryQueue>, ViewError> {
    let (mut queues, mut next, end) = (VecDeque::new(), 1, Key::behind_tenants());
    while queues.len() < EXPIRY_QUEUES_MAX
        && let Some(found) = view.first_between(&Key::before_tenant(TenantId(next)), &end)?
    {
        let tenant = found.tenant_of();
        let row = view.row(&Key::tenancy(tenant))?;
        if matches!(row.as_deref(), Some(Row::Tenancy(tenancy)) if !tenancy.retention.rules.is_empty()) {
            of_tenant(view, tenant, &mut queues)?;
        }
        let Some(after) = tenant.0.checked_add(1) else { break };
        next = after;
    }
    Ok(queues)
}

fn of_tenant(
    view: &StateView,
    tenant: TenantId,
    queues: &mut VecDeque<ExpiryQueue>,
) -> Result<(), ViewError> {
    for (index, ends) in [
        (IndexKey::ended(tenant), Ends::Session(Removing::Expired)),
        (IndexKey::histories(tenant), Ends::Session(Removing::Trimmed)),
        (IndexKey::remains(tenant), Ends::Remains),
    ] {
        let end = IndexKey::behind_lasting(&index, [u8::MAX; 8], None);
        let mut after = index.clone();
        while let Some(entry) = view.first_between(&after, &end)? {
            let Some((mark, _, _)) = IndexKey::lasting_of(&entry) else { break };
            queues.push_back(ExpiryQueue {
                tenant,
                ends,
                mark,
                prefix: [&index[..], &mark].concat(),
                after: None,
            });
            after = IndexKey::behind_lasting(&index, mark, None);
        }
    }
    Ok(())
}
