//! A stream of work items, limited to what the worker can do at one time.

use futures::{StreamExt as _, stream::BoxStream};
use std::time::Duration;
use switchward_api::v1;
use switchward_machine::{OpenId, SessionId};
use switchward_query::GetWork;
use switchward_shard::{ContactWatch, Failure, Shard};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::super::watch::begun;
use super::take::{AGAIN, Leases, Looked, News, Wanted, take};
use crate::api::{Api, Call};
use crate::auth::{Caller, check_key};
use crate::error::Refusal;
use crate::readable::is_unreachable;
use crate::refusals::refusal;

/// What the service sends.
pub(super) type Stream = BoxStream<'static, Result<v1::StreamWorkResponse, Status>>;

/// The interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Starts to send work, at most `max` items at one time.
pub(super) fn start(
    api: Api,
    caller: Caller,
    trace: Option<String>,
    wanted: Wanted,
    max: usize,
    lifetime_ms: Option<u64>,
) -> Stream {
    // At most one message waits for a slow reader: what it cannot take is left to others.
    let (sender, receiver) = mpsc::channel(1);
    let sending = Sending { api, caller, trace, wanted, max, out: Vec::new(), sender };
    let run = sending.run();
    tokio::spawn(async move {
        match lifetime_ms {
            // What was leased and not yet read stays the worker's until its lease lapses.
            Some(ms) => drop(tokio::time::timeout(Duration::from_millis(ms), run).await),
            None => run.await,
        }
    });
    ReceiverStream::new(receiver).boxed()
}

struct Sending {
    api: Api,
    caller: Caller,
    trace: Option<String>,
    wanted: Wanted,
    max: usize,
    /// Items that were sent and are not known to be finished.
    out: Vec<(SessionId, OpenId, u64)>,
    sender: mpsc::Sender<Result<v1::StreamWorkResponse, Status>>,
}

impl Sending {
    async fn run(mut self) {
        let mut news = News::of(&self.api.cluster);
        let mut credentials = self.api.cluster.catalogue().watch_credentials();
        let mut contacts: Vec<_> = self.api.cluster.shards().iter().map(Shard::watch_contact).collect();
        let mut draining = self.api.draining.subscribe();
        let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        loop {
            // Cancelled, it leaves no more than a lease that lapses, and the stream ends.
            let sent = tokio::select! {
                biased;
                () = all_lost(&mut contacts) => Err(refusal(Failure::Electing)),
                sent = self.send_ready() => sent,
            };
            let looked = match sent {
                Ok(looked) => looked,
                Err(refused) => {
                    let _reader_gone = self.sender.send(Err(refused.into())).await;
                    return;
                }
            };
            let heartbeat = tokio::select! {
                () = news.come() => false,
                _ = beat.tick() => true,
                () = tokio::time::sleep(AGAIN), if looked == Looked::AtSome => false,
                going_on = credentials.changed() => !going_on,
                // Another server may know of work: this one reaches no leader.
                () = all_lost(&mut contacts) => continue,
                () = begun(&mut draining) => {
                    let _reader_gone = self.sender.send(Err(refusal(Failure::Draining).into())).await;
                    return;
                }
                () = self.sender.closed() => return,
            };
            if heartbeat && self.sender.send(Ok(v1::StreamWorkResponse { item: None })).await.is_err() {
                return;
            }
        }
    }

    /// Sends what is ready, as far as the worker has free capacity. A shard that cannot answer delays no other.
    async fn send_ready(&mut self) -> Result<Looked, Refusal> {
        check_key(&self.api.cluster, &self.caller)?;
        self.forget_done().await?;
        loop {
            let free = self.max.saturating_sub(self.out.len());
            if free == 0 {
                return Ok(Looked::Everywhere);
            }
            // One at a time, so that nothing is leased for a reader that is gone.
            let permit = match self.sender.reserve().await {
                Ok(permit) => permit,
                Err(_) => return Ok(Looked::Everywhere),
            };
            // A slow reader may have delayed this for long.
            check_key(&self.api.cluster, &self.caller)?;
            let call = Call { api: &self.api, caller: self.caller.clone(), trace: self.trace.clone() };
            let Leases { items, looked, unknown: _ } = take(&call, &self.wanted, 1).await?;
            let Some(taken) = items.into_iter().next() else { return Ok(looked) };
            self.out.push((taken.session, taken.work, taken.fence));
            permit.send(Ok(v1::StreamWorkResponse { item: Some(taken.item) }));
        }
    }

    /// Forgets items that are finished, released or lost.
    async fn forget_done(&mut self) -> Result<(), Refusal> {
        let mut out = Vec::new();
        for (session, work, fence) in std::mem::take(&mut self.out) {
            let asked = self.api.ask(&GetWork { tenant: self.caller.tenant, session, work }).await;
            let found = match asked {
                Ok(found) => found,
                // Until its shard answers, it counts as not finished.
                Err(refused) if is_unreachable(&refused) => {
                    out.push((session, work, fence));
                    continue;
                }
                Err(refused) => return Err(refused),
            };
            if found.is_some_and(|found| found.owed.fence == fence && found.owed.lease.is_some()) {
                out.push((session, work, fence));
            }
        }
        self.out = out;
        Ok(())
    }
}

/// Waits until contact with the leaders of all shards is lost. Cancel safe.
async fn all_lost(contacts: &mut [ContactWatch]) {
    loop {
        for contact in contacts.iter_mut() {
            contact.lost().await;
        }
        if contacts.iter().all(ContactWatch::is_lost) {
            return;
        }
    }
}
