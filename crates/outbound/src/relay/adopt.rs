//! Leases without a job on the bus: the server that led before this one has taken them and was gone before it published, or a
//! round has failed in between. The server that leads now publishes that work under the same leases, and so under the same
//! names: a job that is on the bus already, or in progress, is not added again, and an outcome counts no matter which server has
//! published the job.
//!
//! Chosen: a relay takes a lease only as the leader, and never through another server. So each lease without a job is in the
//! log that a later leader has applied before it leads, and one look in each term finds them all. Rejected: a leader that
//! publishes what servers have leased with which it has lost contact. Each lease would have to name its server, and would
//! wait until contact counts as lost.

use futures::future::join_all;
use std::collections::BTreeMap;
use std::time::Duration;
use switchward_bus::{BusError, Stream};
use switchward_machine::OpenId;
use switchward_query::outgoing::{LeasedJob, ShardView};
use switchward_shard::{Failure, Shard};
use switchward_state::work::{ExtendLease, WorkCommand};
use switchward_state::{Body, Reply};

use super::{
    BusReach, Context, LEASE_MS, Leased, Out, TICK, TOGETHER, give_back, publish, refused, stream_of, submit,
    unreadable,
};

/// Entries of the index of what is due that are read at one time; other tasks run in between.
const LOOK_MAX: usize = 4_096;
/// The longest lease of a relay: one that was taken just before, and was then extended to twice its time.
const LEFT_MS_MAX: u64 = 2 * LEASE_MS;

/// Publishes what is leased and not known to be out, once in a term, and again after a round that has failed. Returns how
/// long to wait if the bus cannot be reached.
///
/// Servers with a bus for each leave the leases of others alone: the server that led before may still do the job, and its
/// bus does not know what is on this one.
pub(super) async fn leases(
    shard: &Shard,
    context: &Context,
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    let term = shard.term_led();
    if term.is_none() || out.adopted == term || context.reach == BusReach::Server {
        return Ok(None);
    }
    let mut wait = None;
    for (stream, found) in unknown(shard, context, out).await? {
        let mut found = found.into_iter();
        loop {
            let some: Vec<LeasedJob> = found.by_ref().take(TOGETHER).collect();
            if some.is_empty() {
                break;
            }
            let unpublished = again(shard, context, stream, some, out).await?;
            wait = unpublished.or(wait);
        }
    }
    if wait.is_none() {
        out.adopted = term;
    }
    Ok(wait)
}

/// Publishes such work. Returns how long to wait if the bus cannot be reached.
async fn again(
    shard: &Shard,
    context: &Context,
    stream: Stream,
    some: Vec<LeasedJob>,
    out: &mut Out,
) -> Result<Option<Duration>, Failure> {
    let ((leased, failed), mut wait) = (extended(shard, some).await, None);
    for (leased, error) in publish(shard, context.bus.as_ref(), stream, leased, out).await? {
        // A full bus does not have it. Otherwise nobody knows, and the lease stays.
        if let BusError::Full { .. } = error {
            give_back(shard, &leased).await?;
        } else {
            wait = Some(refused(&error).max(TICK));
        }
    }
    failed.map_or(Ok(wait), Err)
}

/// The leased work that is not known to be out, by the stream that it goes over.
async fn unknown(
    shard: &Shard,
    context: &Context,
    out: &Out,
) -> Result<BTreeMap<Stream, Vec<LeasedJob>>, Failure> {
    let view = ShardView::linearizable(shard).await?;
    let now = view.due_by(shard.now()).map_err(|error| unreadable(&error))?;
    let (mut found, mut from) = (BTreeMap::<_, Vec<_>>::new(), Some(ShardView::leases_after(now)));
    while let Some(after) = from {
        let part = view.leased_jobs(&after, now.after_ms(LEFT_MS_MAX), LOOK_MAX);
        let part = part.map_err(|error| unreadable(&error))?;
        for job in part.jobs {
            if context.kinds.contains(&job.kind) && !out.sent.contains_key(&job.name) {
                found.entry(stream_of(job.kind).0).or_default().push(job);
            }
        }
        from = part.next;
        tokio::task::yield_now().await;
    }
    Ok(found)
}

/// Extends these leases, so that each job has all of its time. Returns the work that is still leased, and one of the failures,
/// if there are any: the others go out all the same.
async fn extended(shard: &Shard, found: Vec<LeasedJob>) -> (Vec<Leased>, Option<Failure>) {
    let extending = found.into_iter().map(|job| async move {
        let LeasedJob { name: (tenant, session, item), destination, fence, until, .. } = job;
        // An extension by less than half of what it asks for would change nothing.
        let lease_ms = LEASE_MS.max(2 * until.since_ms(shard.now()).min(LEASE_MS));
        match submit(shard, tenant, session, extend(item, fence, lease_ms)).await {
            Ok(Reply::Leased { .. }) => {
                Ok(Some(Leased { name: (tenant, session, item), destination, fence }))
            }
            // Its outcome has come meanwhile, or the lease is over.
            Ok(_) | Err(Failure::Rejected(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    });
    let (mut leased, mut failed) = (Vec::new(), None);
    for extended in join_all(extending).await {
        match extended {
            Ok(found) => leased.extend(found),
            Err(failure) => failed = Some(failure),
        }
    }
    (leased, failed)
}

fn extend(item: OpenId, fence: u64, lease_ms: u64) -> Body {
    Body::Work(WorkCommand::Extend(ExtendLease { item, fence, lease_ms }))
}
