//! Serves a connection for requests that another server has dialled: requests come in, answers go out.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::endpoint::Core;
use crate::frame::{Frame, Op};
use crate::handler::Handler;
use crate::handshake::{Connection, reason};
use crate::limits::INBOUND_FACTOR;
use crate::pings::Pings;
use crate::queue::{Capacity, Held, Out, Queue, write_queue};
use crate::request::{Request, Traffic};
use crate::wire::{Reader, WireError};

/// Serves a connection until it ends. The futures of requests that are not answered are dropped then.
pub(crate) async fn serve(core: &Core, connection: Connection, traffic: Traffic) -> WireError {
    let Connection { mut reader, writer, cell, server, counted: _ } = connection;
    let (queue, frames) = mpsc::unbounded_channel();
    let pings = Pings::new(core, &cell, &queue);
    let body_max = core.body_max(traffic);
    reader.max = body_max;
    let capacity = Capacity::new(
        INBOUND_FACTOR * core.requests_max(traffic),
        INBOUND_FACTOR * core.limits.queued_bytes.max(body_max),
    );
    let answers = Answers {
        from: server,
        handler: Arc::clone(&core.handler),
        answer_max: body_max,
        queue,
        running: Mutex::default(),
    };
    let requests = Requests { answers: Arc::new(answers), capacity };
    tokio::select! {
        error = write_queue(writer, frames, traffic) => error,
        error = requests.serve(&mut reader, &pings) => error,
        error = pings.send() => error,
    }
}

/// The requests of one connection. Dropped, it ends those that are not answered.
struct Requests {
    answers: Arc<Answers>,
    capacity: Arc<Capacity>,
}

/// What answers the requests of one connection.
struct Answers {
    from: u64,
    handler: Arc<dyn Handler>,
    answer_max: usize,
    queue: Queue,
    /// The requests that are not answered, by their numbers.
    running: Mutex<HashMap<u64, Running>>,
}

/// A request that is not answered.
struct Running {
    task: AbortHandle,
    /// What it holds of the connection's capacity. Not in its task: a cancelled one ends only when its runtime gets to it,
    /// and the other side counts the request no longer.
    held: Arc<Held>,
}

impl Drop for Requests {
    fn drop(&mut self) {
        let running = std::mem::take(&mut *self.answers.running.lock());
        running.into_values().for_each(|request| request.task.abort());
    }
}

impl Requests {
    async fn serve(&self, reader: &mut Reader, pings: &Pings) -> WireError {
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
            Op::Request => self.begin(frame)?,
            Op::Cancel => {
                let cancelled = self.answers.running.lock().remove(&frame.id);
                if let Some(request) = cancelled {
                    request.task.abort();
                }
            }
            Op::Ping => pings.ping(&frame)?,
            Op::Pong => pings.pong(&frame),
            Op::Hello
            | Op::Refuse
            | Op::Accept
            | Op::Answer
            | Op::Refusal
            | Op::Lost
            | Op::Piece
            | Op::End => return Err(WireError::unexpected(&frame)),
        }
        Ok(())
    }

    /// Begins the task of a request, on the runtime that its handler wants.
    fn begin(&self, frame: Frame) -> Result<(), WireError> {
        let Frame { kind, group, id, body, .. } = frame;
        // Held until the task is in: a task that ends before takes itself out only then.
        let mut running = self.answers.running.lock();
        if running.contains_key(&id) {
            return Err(WireError::Protocol(format!("the request {id} came twice")));
        }
        let held = self.capacity.take(body.len()).map_err(WireError::Protocol)?;
        let answers = Arc::clone(&self.answers);
        let work = async move { answers.answer(id, Request { kind, group, body }).await };
        let task = match self.answers.handler.runtime(kind) {
            Some(runtime) => runtime.spawn(work),
            None => tokio::spawn(work),
        };
        running.insert(id, Running { task: task.abort_handle(), held });
        Ok(())
    }
}

impl Answers {
    /// Answers a request, unless it is cancelled meanwhile.
    async fn answer(&self, id: u64, request: Request) {
        let answered = answer(self.handler.as_ref(), self.from, request, self.answer_max).await;
        let wanted = self.running.lock().remove(&id);
        if let Some(Running { held, .. }) = wanted {
            let out = Out { frame: Frame { id, ..answered }, progress: None, _held: Some(held) };
            // An error means that the connection ends.
            let _sent = self.queue.send(out);
        }
    }
}

/// Asks the handler.
async fn answer(handler: &dyn Handler, from: u64, request: Request, max: usize) -> Frame {
    match AssertUnwindSafe(handler.call(from, request)).catch_unwind().await {
        Ok(answered) => answer_frame(answered, max),
        Err(_) => lost("the handler panicked"),
    }
}

/// The frame of what a handler has answered, as an answer to no request yet.
pub(crate) fn answer_frame(answered: Result<Bytes, String>, max: usize) -> Frame {
    match answered {
        Ok(body) if body.len() > max => {
            let length = body.len();
            lost(&format!("the answer has {length} bytes, and at most {max} are allowed"))
        }
        Ok(body) => Frame::of(Op::Answer, body),
        Err(why) => Frame::of(Op::Refusal, reason(&why)),
    }
}

fn lost(why: &str) -> Frame {
    Frame::of(Op::Lost, Bytes::copy_from_slice(why.as_bytes()))
}
