//! A session's history as a stream that can be resumed.

use futures::{StreamExt, stream::BoxStream};
use std::ops::ControlFlow;
use std::time::Duration;
use switchward_api::v1;
use switchward_engine::SessionView;
use switchward_machine::SessionId;
use switchward_shard::Failure;
use switchward_state::limits::WEIGHT_DEFAULT;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::history::{Wanted, read};
use crate::api::Api;
use crate::auth::{Caller, invalid, key_of};
use crate::convert;
use crate::error::Refusal;
use crate::query::{GetSession, Source};
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
        let shard = self.api.cluster.shard_of(self.id.bucket()).clone();
        let mut watched = shard.watch(self.caller.tenant, self.id);
        let mut leadership = shard.watch_leadership();
        let mut revoked = self.api.revocations.changed.subscribe();
        let mut draining = self.api.draining.subscribe();
        loop {
            match self.send_new().await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return,
                Err(refusal) => return self.fail(refusal).await,
            }
            // A change that comes while nobody waits is kept; a dropped wait loses nothing.
            let waited = tokio::select! {
                waited = tokio::time::timeout(HEARTBEAT, watched.changed()) => waited,
                revoked = revoked.changed() => Ok(revoked.is_ok()),
                // Reading fails unless this server leads: then another server has what is new.
                going_on = leadership.changed() => Ok(going_on),
                () = begun(&mut draining) => Ok(false),
                () = self.sender.closed() => return,
            };
            match waited {
                Ok(true) => {}
                // The stream says OK only after the event that ended the session.
                Ok(false) => return self.fail(refusal(Failure::Draining)).await,
                // A leader without a majority knows of nothing new, so it must not say that there is nothing.
                Err(_) if !shard.leads() => {}
                Err(_) => {
                    if self.heartbeat().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    async fn fail(&self, refusal: Refusal) {
        let _reader_gone = self.sender.send(Err(refusal.into())).await;
    }

    /// Sends what is new. Breaks after the event that ended the session, or when nobody reads any more.
    async fn send_new(&mut self) -> Result<ControlFlow<()>, Refusal> {
        let key = key_of(&self.api.cluster, &self.caller.key_id);
        if !key.is_some_and(|key| key.works(self.api.cluster.now())) {
            return Err(invalid());
        }
        loop {
            let rows = self.api.reader(Source::session(self.id)).await?;
            let weight = self.caller.settings.quotas.weight.unwrap_or(WEIGHT_DEFAULT);
            let permit = self.api.shares.wait(self.caller.tenant, weight).await?;
            let found = rows.answer(&GetSession { tenant: self.caller.tenant, session: self.id });
            let session = found
                .map_err(unreadable)?
                .ok_or_else(|| Refusal::not_found("session", self.id.to_string()))?;
            self.newest = session.session.sequence;
            let stop = || Ok(false);
            let wanted = Wanted { session: self.id, from: self.next, max: READ_MAX };
            let (events, more) = read(&rows, &self.caller, wanted, stop)?;
            drop(permit);
            for event in events {
                self.next = event.sequence + 1;
                let update = v1::watch_session_response::Update::Event(event);
                if self.sender.send(Ok(v1::WatchSessionResponse { update: Some(update) })).await.is_err() {
                    return Ok(ControlFlow::Break(()));
                }
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
