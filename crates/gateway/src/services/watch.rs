//! A session's history as a stream that can be resumed.

use futures::StreamExt;
use futures::stream::BoxStream;
use prost::Message;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use switchward_api::v1;
use switchward_engine::limits::WEIGHT_DEFAULT;
use switchward_engine::{Key, Row, SessionView, View, ViewError, machines_of, session_view};
use switchward_machine::SessionId;
use switchward_shard::{Failure, StateView};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::sessions::history_prefix;
use crate::api::{Api, refusal, unreadable};
use crate::auth::{Caller, invalid, key_of};
use crate::convert;
use crate::error::Refusal;
use crate::pages::PAGE_BYTES_MAX;

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
                () = begun(&mut draining) => Ok(false),
                () = self.sender.closed() => return,
            };
            match waited {
                Ok(true) => {}
                // The stream says OK only after the event that ended the session.
                Ok(false) => return self.fail(refusal(Failure::Draining)).await,
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
            let view = self.api.cluster.shard_of(self.id.bucket()).read().await.map_err(refusal)?;
            let weight = self.caller.settings.quotas.weight.unwrap_or(WEIGHT_DEFAULT);
            let permit = self.api.shares.wait(self.caller.tenant, weight).await?;
            let found = view.consistent(|rows| session_view(rows, self.caller.tenant, self.id));
            let found = found.map_err(unreadable)?;
            let session = found.ok_or_else(|| Refusal::not_found("session", self.id.to_string()))?;
            self.newest = session.session.sequence;
            let stop = || Ok(false);
            let (events, more) = read(&view, &self.caller, &session, (self.next, READ_MAX), stop)?;
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

/// Returns the first events of a session from a sequence on, at most `max` and about [`PAGE_BYTES_MAX`], and whether there
/// may be more. Stops after at least one event if `stop` returns true.
pub(super) fn read(
    view: &StateView,
    caller: &Caller,
    session: &SessionView,
    (from, max): (u64, usize),
    mut stop: impl FnMut() -> Result<bool, Refusal>,
) -> Result<(Vec<v1::SessionEvent>, bool), Refusal> {
    let tenant = caller.tenant;
    let prefix = history_prefix(tenant, session.id);
    let mut after = before(view, &prefix, from).map_err(unreadable)?;
    let (mut events, mut bytes) = (Vec::new(), 0);
    loop {
        // Rows are converted after the scan, because that reads the rows of their runs.
        let rows = some_rows(view, &prefix, after.as_deref()).map_err(unreadable)?;
        for (first, row) in &rows {
            let Row::History(history) = &**row else { continue };
            let machines = view.consistent(|rows| machines_of(rows, tenant, session.id, &history.events));
            let shown = convert::events::of_history(*first, history, &machines.map_err(unreadable)?);
            for event in shown.into_iter().filter(|event| event.sequence >= from) {
                bytes += event.encoded_len();
                events.push(event);
            }
            let full = events.len() >= max || bytes >= PAGE_BYTES_MAX;
            if full || (stop()? && !events.is_empty()) {
                events.truncate(max);
                return Ok((events, true));
            }
        }
        match rows.last() {
            Some((last, _)) if rows.len() == ROWS_AT_ONCE => {
                after = Some([prefix.as_slice(), &last.to_be_bytes()].concat());
            }
            Some(_) | None => return Ok((events, false)),
        }
    }
}

/// Some rows of history, each with the sequence before its first event.
fn some_rows(
    view: &StateView,
    prefix: &[u8],
    after: Option<&[u8]>,
) -> Result<Vec<(u64, Arc<Row>)>, ViewError> {
    let mut rows = Vec::new();
    view.scan(prefix, after, &mut |key, row| {
        rows.extend(sequence_of(key).map(|first| (first, Arc::clone(row))));
        if rows.len() < ROWS_AT_ONCE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(rows)
}

/// Rows of history that are read at once.
const ROWS_AT_ONCE: usize = 64;

/// More events than most commands emit; a row of history holds the events of one command.
const EVENTS_OF_A_ROW: u64 = 32;

/// Returns a key before the row with this event; `None` if that may be the first row.
fn before(view: &dyn View, prefix: &[u8], from: u64) -> Result<Option<Vec<u8>>, ViewError> {
    let mut reach = EVENTS_OF_A_ROW;
    while let Some(before) = from.checked_sub(reach).filter(|before| *before > 0) {
        let start = [prefix, &before.to_be_bytes()].concat();
        let mut first = None;
        view.scan(prefix, Some(&start), &mut |key, _| {
            first = sequence_of(key);
            ControlFlow::Break(())
        })?;
        // Rows have no gaps between them, so one that begins before the event leads to it.
        if first.is_some_and(|first| first < from) {
            return Ok(Some(start));
        }
        reach = reach.saturating_mul(8);
    }
    Ok(None)
}

/// The sequence before the first event of a row of history.
pub(super) fn sequence_of(key: &Key) -> Option<u64> {
    key.rest().get(16..24)?.try_into().ok().map(u64::from_be_bytes)
}
