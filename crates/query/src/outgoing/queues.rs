//! Questions about the queues of destinations: of effects, and of work that the server does by itself.

use std::ops::ControlFlow;
use switchward_engine::holds_effects;
use switchward_machine::{OpenId, SessionId, TenantId, WorkKind};
use switchward_state::{IndexKey, Key, OpenItem, Row, View as _, ViewError};

use super::ShardView;

/// A work item, with its tenant and session.
pub type WorkName = (TenantId, SessionId, OpenId);

/// The queue of a destination, by its first entry.
pub struct Queue(pub(super) Key);

impl Queue {
    /// Stands behind all of this queue, and before the next one.
    pub fn end(&self) -> Vec<u8> {
        IndexKey::behind_destination(&self.0)
    }

    /// The kind of its work; `None` for a queue of effects.
    pub fn work_kind(&self) -> Option<WorkKind> {
        IndexKey::job_kind(&self.0)
    }
}

/// Stands behind all entries with this beginning: they go on with a time or the number of a tenant, and neither reaches so far.
pub(super) fn behind(beginning: &[u8]) -> Vec<u8> {
    [beginning, &[u8::MAX; 64]].concat()
}

impl ShardView {
    /// Returns true if nothing of the tenant of a queue may go out now.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn holds(&self, queue: &Queue) -> Result<bool, ViewError> {
        let tenant = IndexKey::tenant_of_queued(&queue.0);
        tenant.map_or(Ok(false), |tenant| holds_effects(&self.0, tenant))
    }

    /// The first queue of work between the ends of two others; from the first or to the last one if an end is not given.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn work_queue(
        &self,
        after: Option<&[u8]>,
        before: Option<&[u8]>,
    ) -> Result<Option<Queue>, ViewError> {
        let all = IndexKey::delivery_jobs();
        let end = behind(&all);
        let found = self.0.first_between(after.unwrap_or(&all), before.unwrap_or(&end))?;
        Ok(found.map(Queue))
    }

    /// Visits the work of a queue with its destination, the oldest first, until `visit` breaks off.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn each_work(
        &self,
        queue: &Queue,
        visit: &mut dyn FnMut(WorkName, String) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        let mut failed = None;
        self.0.scan(&IndexKey::destination(&queue.0), None, &mut |entry, _| {
            let (Some(name), Some(due)) = (IndexKey::job_of(entry), IndexKey::queued_of(entry)) else {
                return ControlFlow::Continue(());
            };
            match self.0.row(&due.key) {
                Ok(row) => match row.as_deref() {
                    Some(Row::OpenItem(OpenItem::Work(work))) => visit(name, work.body.owed.destination()),
                    Some(_) | None => ControlFlow::Continue(()),
                },
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed.map_or(Ok(()), Err)
    }
}
