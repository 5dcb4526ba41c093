//! A live connection for requests that this server has dialled: requests go out, answers come in.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::PeerError;
use crate::frame::{Frame, Op};
use crate::handshake::text;
use crate::pings::Pings;
use crate::queue::{Held, Out, Progress, Queue};
use crate::request::Request;
use crate::wire::{Reader, WireError};

/// A live connection for requests that this server has dialled.
#[derive(Debug)]
pub(crate) struct Link {
    queue: Queue,
    waiting: Mutex<Waiting>,
    next: AtomicU64,
}

/// The calls that wait for their answers, or why there are no more.
#[derive(Debug)]
enum Waiting {
    Open(HashMap<u64, Call>),
    Ended(String),
}

#[derive(Debug)]
struct Call {
    answer: oneshot::Sender<Result<Bytes, PeerError>>,
    progress: Arc<Progress>,
}

/// A call that waits for its answer. Dropped before it, it is cancelled.
pub(crate) struct Pending<'a> {
    link: &'a Link,
    id: u64,
    progress: Arc<Progress>,
    answer: oneshot::Receiver<Result<Bytes, PeerError>>,
    /// What the call holds until it is answered.
    _held: Arc<Held>,
}

impl Link {
    pub(crate) fn new(queue: Queue) -> Self {
        Self { queue, waiting: Mutex::new(Waiting::Open(HashMap::new())), next: AtomicU64::new(1) }
    }

    /// Puts a request into the queue.
    ///
    /// # Errors
    /// [`PeerError::NotSent`]: the connection has ended.
    pub(crate) fn send(&self, request: Request, held: Arc<Held>) -> Result<Pending<'_>, PeerError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let progress = Arc::new(Progress::default());
        let (sender, answer) = oneshot::channel();
        match &mut *self.waiting.lock() {
            Waiting::Open(calls) => {
                calls.insert(id, Call { answer: sender, progress: Arc::clone(&progress) });
            }
            Waiting::Ended(why) => return Err(PeerError::NotSent(why.clone())),
        }
        let frame =
            Frame { op: Op::Request, kind: request.kind, group: request.group, id, body: request.body };
        let out = Out { frame, progress: Some(Arc::clone(&progress)), _held: Some(Arc::clone(&held)) };
        // An error means that the connection ends; then `end` settles the call.
        let _queued = self.queue.send(out);
        Ok(Pending { link: self, id, progress, answer, _held: held })
    }

    /// Settles a call; one that was cancelled is ignored.
    fn settle(&self, id: u64, answer: Result<Bytes, PeerError>) {
        if let Some(call) = self.remove(id) {
            // An error means that the caller gives up just now.
            let _answered = call.answer.send(answer);
        }
    }

    fn remove(&self, id: u64) -> Option<Call> {
        match &mut *self.waiting.lock() {
            Waiting::Open(calls) => calls.remove(&id),
            Waiting::Ended(_) => None,
        }
    }

    /// Settles all calls after the connection has ended. Nothing is written any more.
    pub(crate) fn end(&self, why: &str) {
        let ended = std::mem::replace(&mut *self.waiting.lock(), Waiting::Ended(why.to_owned()));
        let Waiting::Open(calls) = ended else { return };
        for call in calls.into_values() {
            let never_written = call.progress.cancel();
            let why = why.to_owned();
            let error = if never_written { PeerError::NotSent(why) } else { PeerError::Unknown(why) };
            // As in `settle`.
            let _answered = call.answer.send(Err(error));
        }
    }

    /// Reads answers until the connection ends.
    pub(crate) async fn read(&self, reader: &mut Reader, pings: &Pings) -> WireError {
        loop {
            let handled = match reader.next().await {
                Ok(frame) => self.handle(frame, pings),
                Err(error) => return error,
            };
            if let Err(error) = handled {
                return error;
            }
        }
    }

    fn handle(&self, frame: Frame, pings: &Pings) -> Result<(), WireError> {
        match frame.op {
            Op::Answer | Op::Refusal | Op::Lost => self.settle(frame.id, answered(frame)?),
            Op::Ping => pings.ping(&frame)?,
            Op::Pong => pings.pong(&frame),
            Op::Hello | Op::Refuse | Op::Accept | Op::Request | Op::Cancel | Op::Piece | Op::End => {
                return Err(WireError::unexpected(&frame));
            }
        }
        Ok(())
    }
}

/// What a frame says that answers a request.
///
/// # Errors
/// It answers no request.
pub(crate) fn answered(frame: Frame) -> Result<Result<Bytes, PeerError>, WireError> {
    match frame.op {
        Op::Answer => Ok(Ok(frame.body)),
        Op::Refusal => Ok(Err(PeerError::Refused(text(&frame.body)))),
        Op::Lost => Ok(Err(PeerError::Unknown(text(&frame.body)))),
        Op::Hello
        | Op::Refuse
        | Op::Accept
        | Op::Request
        | Op::Cancel
        | Op::Ping
        | Op::Pong
        | Op::Piece
        | Op::End => Err(WireError::unexpected(&frame)),
    }
}

impl Pending<'_> {
    /// Waits for the answer.
    pub(crate) async fn answer(&mut self) -> Result<Bytes, PeerError> {
        (&mut self.answer)
            .await
            .unwrap_or_else(|_| Err(PeerError::Unknown("the connection has ended".to_owned())))
    }

    /// Gives up at the deadline.
    pub(crate) fn give_up(self) -> PeerError {
        if self.progress.cancel() {
            return PeerError::NotSent("the deadline passed before the request was written".to_owned());
        }
        PeerError::TimedOut
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let unanswered = self.link.remove(self.id).is_some();
        if unanswered && !self.progress.cancel() {
            // At most one for each request that was written. An error means that the connection ends.
            let frame = Frame::with_id(Op::Cancel, self.id, Bytes::new());
            let _sent = self.link.queue.send(Out { frame, progress: None, _held: None });
        }
    }
}
