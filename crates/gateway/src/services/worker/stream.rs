//! Work as it comes, no more at one time than the worker can do.

use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use switchward_api::v1;
use switchward_engine::work_view;
use switchward_machine::{OpenId, SessionId};
use switchward_shard::Failure;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::super::watch::begun;
use super::take::{News, Wanted, check_key, take};
use crate::auth::Caller;
use crate::door::{Call, Door, refusal, unreadable};
use crate::error::Refusal;

/// What the service sends.
pub(super) type Stream = BoxStream<'static, Result<v1::StreamWorkResponse, Status>>;

/// How long nothing may be said.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Starts to send work, so many items at one time.
pub(super) fn start(
    door: Door,
    caller: Caller,
    trace: Option<String>,
    wanted: Wanted,
    max: usize,
    lifetime_ms: Option<u64>,
) -> Stream {
    // One message waits for a slow reader at most: what it cannot take is left to others.
    let (sender, receiver) = mpsc::channel(1);
    let sending = Sending { door, caller, trace, wanted, max, out: Vec::new(), sender };
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
    door: Door,
    caller: Caller,
    trace: Option<String>,
    wanted: Wanted,
    max: usize,
    /// What was sent and is not known to be done.
    out: Vec<(SessionId, OpenId, u64)>,
    sender: mpsc::Sender<Result<v1::StreamWorkResponse, Status>>,
}

impl Sending {
    async fn run(mut self) {
        let mut news = News::of(&self.door.cluster);
        let mut revoked = self.door.revocations.told.subscribe();
        let mut draining = self.door.draining.subscribe();
        let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        loop {
            if let Err(refused) = self.send_ready().await {
                let _reader_gone = self.sender.send(Err(refused.into())).await;
                return;
            }
            let sign = tokio::select! {
                () = news.come() => false,
                _ = beat.tick() => true,
                told = revoked.changed() => told.is_err(),
                () = begun(&mut draining) => {
                    let _reader_gone = self.sender.send(Err(refusal(Failure::Draining).into())).await;
                    return;
                }
                () = self.sender.closed() => return,
            };
            if sign && self.sender.send(Ok(v1::StreamWorkResponse { item: None })).await.is_err() {
                return;
            }
        }
    }

    /// Sends what is ready, as far as the worker has room for it.
    async fn send_ready(&mut self) -> Result<(), Refusal> {
        check_key(&self.door, &self.caller)?;
        self.forget_done().await?;
        loop {
            let room = self.max.saturating_sub(self.out.len());
            if room == 0 {
                return Ok(());
            }
            // One at a time, so that nothing is leased for a reader that is gone.
            let permit = match self.sender.reserve().await {
                Ok(permit) => permit,
                Err(_) => return Ok(()),
            };
            // A slow reader may have kept this waiting for long.
            check_key(&self.door, &self.caller)?;
            let call = Call { door: &self.door, caller: self.caller.clone(), trace: self.trace.clone() };
            let Some(taken) = take(&call, &self.wanted, 1).await?.into_iter().next() else {
                return Ok(());
            };
            self.out.push((taken.session, taken.work, taken.fence));
            permit.send(Ok(v1::StreamWorkResponse { item: Some(taken.item) }));
        }
    }

    /// Forgets what is done, given back or lost.
    async fn forget_done(&mut self) -> Result<(), Refusal> {
        let mut out = Vec::new();
        for (session, work, fence) in std::mem::take(&mut self.out) {
            let view = self.door.cluster.shard_of(session.bucket()).read().await.map_err(refusal)?;
            let found =
                view.steady(|rows| work_view(rows, self.caller.tenant, session, work)).map_err(unreadable)?;
            if found.is_some_and(|found| found.owed.fence == fence && found.owed.lease.is_some()) {
                out.push((session, work, fence));
            }
        }
        self.out = out;
        Ok(())
    }
}
