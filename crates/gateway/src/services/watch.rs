//! A session's history as a stream that can be resumed.

use futures::{StreamExt, stream::BoxStream};
use std::ops::ControlFlow;
use std::time::Duration;
use switchward_api::v1;
use switchward_engine::SessionView;
use switchward_machine::SessionId;
use switchward_query::{GetSession, Reader, Source};
use switchward_shard::{Cluster, ContactWatch, Failure, OwnerWatch, Shard};
use switchward_state::limits::WEIGHT_DEFAULT;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::history::{Wanted, read};
use crate::api::Api;
use crate::auth::{Caller, check_key};
use crate::convert;
use crate::error::Refusal;
use crate::refusals::{refusal, unreadable};

/// What the service sends.
pub(super) type Stream = BoxStream<'static, Result<v1::WatchSessionResponse, Status>>;

/// The interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Messages buffered for a slow reader; beyond it the stream waits, and later events are read from the history.
const AHEAD_MAX: usize = 64;
/// Events that are read at once.
const READ_MAX: usize = 256;

/// Starts to send the events of a session from a sequence on.
pub(super) fn start(api: Api, caller: Caller, view: &SessionView, from: u64) -> Stream {
    let (sender, receiver) = mpsc::channel(AHEAD_MAX);
    let newest = view.session.sequence;
    let watch = Watch { api, caller, id: view.id, next: from.max(1), newest, sender };
    tokio::spawn(watch.run());
    ReceiverStream::new(receiver).boxed()
}

/// The rows that a stream reads next.
#[derive(Debug, Clone, Copy)]
enum Rows {
    /// Everything that was acknowledged before.
    Confirmed,
    /// What this server has applied, after it has applied a change: every row is committed, and none is older than what was
    /// read before.
    Applied,
}

/// What a stream at this server depends on: once it is lost, the session goes on elsewhere.
struct Base {
    /// The shard that owned the session's bucket when the stream began.
    shard: Shard,
    contact: ContactWatch,
    owner: OwnerWatch,
}

impl Base {
    fn of(cluster: &Cluster, id: SessionId) -> Self {
        // Before the shard is looked for, so that no move falls between the two.
        let owner = cluster.watch_owner(id.bucket());
        let shard = cluster.shard_of(id.bucket()).clone();
        Self { contact: shard.watch_contact(), shard, owner }
    }

    /// Waits until other servers may know of changes that this one does not see: it reaches no leader, or the bucket has
    /// moved. Cancel safe.
    async fn lost(&mut self) -> Refusal {
        refusal(tokio::select! {
            () = self.contact.lost() => Failure::Electing,
            failure = self.owner.moved() => failure,
        })
    }
}

struct Watch {
    api: Api,
    caller: Caller,
    id: SessionId,
    /// The first sequence that was not sent.
    next: u64,
    /// The session's newest sequence, sent or not.
    newest: u64,
    sender: mpsc::Sender<Result<v1::WatchSessionResponse, Status>>,
}

impl Watch {
    async fn run(mut self) {
        // Watching begins before reading, so that no change falls between the two.
        let mut base = Base::of(&self.api.cluster, self.id);
        let shard = base.shard.clone();
        let mut watched = shard.watch(self.caller.tenant, self.id);
        let mut leadership = shard.watch_leadership();
        let mut credentials = self.api.cluster.catalogue().watch_credentials();
        let mut draining = self.api.draining.subscribe();
        let mut needed = Rows::Confirmed;
        loop {
            // Cancelled, the stream ends: what was not sent is read from the history when it is resumed.
            let sent = tokio::select! {
                biased;
                lost = base.lost() => Err(lost),
                sent = self.send_new(&shard, needed) => sent,
            };
            match sent {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(refusal) => return self.fail(refusal).await,
            }
            needed = Rows::Confirmed;
            // A change that comes while nobody waits is kept; a dropped wait loses nothing.
            let waited = tokio::select! {
                waited = tokio::time::timeout(HEARTBEAT, watched.changed()) => {
                    needed = Rows::Applied;
                    waited
                }
                going_on = credentials.changed() => Ok(going_on),
                // A replica that has failed is read in vain, which ends the stream.
                going_on = leadership.changed() => Ok(going_on),
                lost = base.lost() => return self.fail(lost).await,
                () = begun(&mut draining) => Ok(false),
                () = self.sender.closed() => return,
            };
            match waited {
                Ok(true) => {}
                // The stream says OK only after the event that ended the session.
                Ok(false) => return self.fail(refusal(Failure::Draining)).await,
                Err(_) => match self.confirmed(&mut base).await {
                    Ok(()) if self.heartbeat().await.is_ok() => {}
                    Ok(()) => return,
                    Err(refusal) => return self.fail(refusal).await,
                },
            }
        }
    }

    /// Returns when it is certain that this server has everything, so that it may say that there is nothing new. A server that
    /// is cut off from the catalogue would not learn that the bucket has moved.
    async fn confirmed(&self, base: &mut Base) -> Result<(), Refusal> {
        check_key(&self.api.cluster, &self.caller)?;
        let shard = base.shard.clone();
        tokio::select! {
            read = shard.read() => read.map(drop).map_err(refusal),
            lost = base.lost() => Err(lost),
        }
    }

    async fn fail(&self, refusal: Refusal) {
        let _reader_gone = self.sender.send(Err(refusal.into())).await;
    }

    /// Sends what is new. Breaks after the event that ended the session, or when nobody reads any more.
    async fn send_new(&mut self, shard: &Shard, mut needed: Rows) -> Result<ControlFlow<()>, Refusal> {
        check_key(&self.api.cluster, &self.caller)?;
        loop {
            let rows = match needed {
                Rows::Confirmed => self.api.reader(Source::session(self.id)).await?,
                Rows::Applied => Reader::stale(shard),
            };
            let weight = self.caller.settings.quotas.weight.unwrap_or(WEIGHT_DEFAULT);
            let permit = self.api.shares.wait(self.caller.tenant, weight).await?;
            let found = rows.answer(&GetSession { tenant: self.caller.tenant, session: self.id });
            let session = match (found.map_err(unreadable)?, needed) {
                (Some(session), _) => session,
                // Only the owner knows whether the session is gone: its bucket may have moved away.
                (None, Rows::Applied) => {
                    needed = Rows::Confirmed;
                    continue;
                }
                (None, Rows::Confirmed) => return Err(Refusal::not_found("session", self.id.to_string())),
            };
            self.newest = session.session.sequence;
            let stop = || Ok(false);
            let wanted = Wanted { session: self.id, from: self.next, max: READ_MAX };
            let (events, more) = read(&rows, &self.caller, wanted, stop)?;
            drop(permit);
            for event in events {
                let Ok(permit) = self.sender.reserve().await else { return Ok(ControlFlow::Break(())) };
                // A slow reader may have delayed this for long.
                check_key(&self.api.cluster, &self.caller)?;
                self.next = event.sequence + 1;
                let update = v1::watch_session_response::Update::Event(event);
                permit.send(Ok(v1::WatchSessionResponse { update: Some(update) }));
            }
            if !more {
                let ended = session.session.status.ended();
                return Ok(if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
            }
        }
    }

    async fn heartbeat(&self) -> Result<(), ()> {
        let time = Some(convert::timestamp(self.api.cluster.now()));
        let update =
            v1::watch_session_response::Update::Heartbeat(v1::Heartbeat { sequence: self.newest, time });
        self.sender.send(Ok(v1::WatchSessionResponse { update: Some(update) })).await.map_err(|_| ())
    }
}

/// Done when the server stops.
pub(super) async fn begun(draining: &mut watch::Receiver<bool>) {
    let _the_sender_is_gone = draining.wait_for(|draining| *draining).await.is_err();
}
