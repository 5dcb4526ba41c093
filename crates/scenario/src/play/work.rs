//! A worker takes the oldest open work that matches, and finishes it.

use switchward_engine::{
    Actor, Body, CompleteWork, FailWork, LeaseWork, Reply, Role, SessionView, Thing, ThingBody,
};
use switchward_machine::OpenId;

use super::moves::no_session;
use super::{Moved, Player, Refusal};
use crate::script::Work;
use crate::world::Broken;

/// What the worker calls itself.
const WORKER: &str = "worker";
/// How long it takes the work for, milliseconds.
const LEASE_MS: u64 = 60_000;

impl Player<'_> {
    pub(super) fn work(&mut self, work: &Work) -> Moved {
        for _ in 0..work.lost {
            if let Err(refusal) = self.lease(work)? {
                return Ok(Err(refusal));
            }
            let over = self.world.now().after_ms(LEASE_MS);
            self.world.advance(over)?;
        }
        if !work.ends {
            return Ok(Ok(()));
        }
        let (thing, fence) = match self.lease(work)? {
            Ok(leased) => leased,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (cost, tokens) = (work.cost, work.tokens);
        let body = match work.came.clone() {
            Ok(result) => Body::CompleteWork(CompleteWork { thing, fence, result, cost, tokens }),
            Err(message) => Body::FailWork(FailWork { thing, fence, message, cost, tokens, unknown: false }),
        };
        Ok(self.about_session(worker(), body)?.map(|_| ()))
    }

    /// A worker takes the work; gives its number, and that of the lease.
    fn lease(&mut self, work: &Work) -> Result<Result<(OpenId, u64), Refusal>, Broken> {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let found = self.session_view(id)?.and_then(|view| oldest(&view, work));
        let Some(thing) = found else { return Ok(Err(self.nothing_takes(id, "work")?)) };
        let lease = Body::LeaseWork(LeaseWork { thing, worker: WORKER.into(), lease_ms: LEASE_MS });
        match self.about_session(worker(), lease)? {
            Ok(Reply::Leased { fence, .. }) => Ok(Ok((thing, fence))),
            Ok(other) => Err(Broken(format!("a lease was answered {other:?}"))),
            Err(refusal) => Ok(Err(refusal)),
        }
    }
}

fn worker() -> Actor {
    Actor { subject: WORKER.into(), role: Role::Worker }
}

fn oldest(view: &SessionView, work: &Work) -> Option<OpenId> {
    let fits = |thing: &Thing| match &thing.body {
        ThingBody::Work { kind, .. } => {
            let node = view.name_of(thing.run, thing.node);
            work.kind.is_none_or(|word| word == kind.word())
                && work.node.as_deref().is_none_or(|name| name == node)
        }
        ThingBody::Wait { .. } | ThingBody::Timer { .. } => false,
    };
    view.things.iter().find(|(_, thing)| fits(thing)).map(|(id, _)| *id)
}
