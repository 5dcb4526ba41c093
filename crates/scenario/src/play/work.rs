//! A worker takes the oldest open work that matches, and finishes it.

use switchward_engine::SessionView;
use switchward_machine::OpenId;
use switchward_state::catalogue::Role;
use switchward_state::work::{CompleteWork, FailWork, LeaseWork, WorkCommand, WorkFailure};
use switchward_state::{Actor, Body, OpenItem, Reply};

use super::moves::no_session;
use super::{Moved, Player, Refusal};
use crate::script::Work;
use crate::system::Broken;

/// The worker's name.
const WORKER: &str = "worker";
/// The duration of its lease, milliseconds.
const LEASE_MS: u64 = 60_000;

impl Player<'_> {
    pub(super) fn work(&mut self, work: &Work) -> Moved {
        for _ in 0..work.lost {
            if let Err(refusal) = self.lease(work)? {
                return Ok(Err(refusal));
            }
            let over = self.system.now().after_ms(LEASE_MS);
            self.system.advance(over)?;
        }
        if !work.ends {
            return Ok(Ok(()));
        }
        let (item, fence) = match self.lease(work)? {
            Ok(leased) => leased,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (cost, tokens) = (work.cost, work.tokens);
        let body = match work.came.clone() {
            Ok(result) => Body::Work(WorkCommand::Complete(CompleteWork {
                item,
                fence,
                result,
                cost,
                tokens,
                next: work.next.clone(),
            })),
            Err(text) => {
                let failure = WorkFailure::Reported { text };
                Body::Work(WorkCommand::Fail(FailWork { item, fence, failure, cost, tokens, unknown: false }))
            }
        };
        Ok(self.about_session(worker(), body)?.map(|_| ()))
    }

    /// A worker takes the work. Returns the item's number and the lease's fence.
    fn lease(&mut self, work: &Work) -> Result<Result<(OpenId, u64), Refusal>, Broken> {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let found = self.session_view(id)?.and_then(|view| oldest(&view, work));
        let Some(item) = found else { return Ok(Err(self.nothing_takes(id, "work")?)) };
        let lease =
            Body::Work(WorkCommand::Lease(LeaseWork { item, worker: WORKER.into(), lease_ms: LEASE_MS }));
        match self.about_session(worker(), lease)? {
            Ok(Reply::Leased { fence, .. }) => Ok(Ok((item, fence))),
            Ok(other) => Err(Broken(format!("a lease got the answer {other:?}"))),
            Err(refusal) => Ok(Err(refusal)),
        }
    }
}

fn worker() -> Actor {
    Actor { subject: WORKER.into(), role: Role::Worker }
}

fn oldest(view: &SessionView, work: &Work) -> Option<OpenId> {
    let fits = |item: &OpenItem| match item {
        OpenItem::Work(open) => {
            let node = view.name_of(open.head.run, open.head.node);
            work.kind.is_none_or(|word| word == open.body.kind.word())
                && work.node.as_deref().is_none_or(|name| name == node)
        }
        OpenItem::Gate(_) | OpenItem::Wait(_) | OpenItem::Timer(_) => false,
    };
    view.items.iter().find(|(_, item)| fits(item)).map(|(id, _)| *id)
}
