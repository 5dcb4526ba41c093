//! Questions about the leases of work that servers do by themselves.

use std::ops::ControlFlow;
use switchward_engine::holds_effects;
use switchward_machine::{Time, WorkKind};
use switchward_state::work::SERVER_WORKER;
use switchward_state::{Due, IndexKey, Key, OpenItem, Row, View as _, ViewError};

use super::ShardView;
use super::queues::WorkName;

/// Work that a server has leased for its delivery role.
pub struct LeasedJob {
    /// Its tenant, its session and its number there.
    pub name: WorkName,
    /// Says which channel carries it out.
    pub kind: WorkKind,
    /// Where it goes, as far as its input shows it.
    pub destination: String,
    /// The number of its lease.
    pub fence: u64,
    /// When the lease ends.
    pub until: Time,
}

/// The leases in a part of the index of what is due.
pub struct LeasedPart {
    /// The leased work, in the order in which the leases end.
    pub jobs: Vec<LeasedJob>,
    /// Where the next part begins; `None` if this is the last one.
    pub next: Option<Vec<u8>>,
}

impl ShardView {
    /// Where the leases begin that end after this time.
    pub fn leases_after(time: Time) -> Vec<u8> {
        [IndexKey::due().as_slice(), &time.0.to_be_bytes()].concat()
    }

    /// The leases of servers behind `after` that end no later than `until`, among at most `most` entries of the index. Leaves
    /// out tenants of which nothing may go out now.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn leased_jobs(&self, after: &[u8], until: Time, most: usize) -> Result<LeasedPart, ViewError> {
        let (mut part, mut looked) = (LeasedPart { jobs: Vec::new(), next: None }, 0);
        let mut failed = None;
        self.0.scan(&IndexKey::due(), Some(after), &mut |entry, _| {
            let Some(Due { at, key }) = IndexKey::due_of(entry) else { return ControlFlow::Continue(()) };
            if at > until {
                return ControlFlow::Break(());
            }
            match self.leased_job(&key) {
                Ok(job) => part.jobs.extend(job),
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            }
            looked += 1;
            if looked < most {
                return ControlFlow::Continue(());
            }
            part.next = Some(entry.as_bytes().to_vec());
            ControlFlow::Break(())
        })?;
        failed.map_or(Ok(part), Err)
    }

    /// The work of this row, if a server has leased it and it may go out.
    fn leased_job(&self, key: &Key) -> Result<Option<LeasedJob>, ViewError> {
        let (tenant, Some((session, item))) = (key.tenant_of(), key.item_of()) else { return Ok(None) };
        let row = self.0.row(key)?;
        let Some(Row::OpenItem(OpenItem::Work(work))) = row.as_deref() else { return Ok(None) };
        let owed = &work.body.owed;
        let Some(lease) = owed.lease.as_ref().filter(|lease| lease.worker == SERVER_WORKER) else {
            return Ok(None);
        };
        if holds_effects(&self.0, tenant)? {
            return Ok(None);
        }
        Ok(Some(LeasedJob {
            name: (tenant, session, item),
            kind: work.body.kind,
            destination: owed.destination(),
            fence: owed.fence,
            until: lease.until,
        }))
    }
}
