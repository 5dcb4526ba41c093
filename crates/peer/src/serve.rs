//! Serves a connection for requests that another server has dialled: requests come in, answers go out.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::endpoint::Core;
use crate::frame::{Frame, Op};
use crate::handler::Handler;
use crate::handshake::{Connection, reason};
use crate::limits::INBOUND_FACTOR;
use crate::pings::Pings;
use crate::queue::{Capacity, Out, Queue, write_queue};
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
    let mut requests = Requests {
        from: server,
        handler: Arc::clone(&core.handler),
        answer_max: body_max,
        capacity,
        queue,
        running: HashMap::new(),
        tasks: JoinSet::new(),
    };
    tokio::select! {
        error = write_queue(writer, frames) => error,
        error = requests.serve(&mut reader, &pings) => error,
        error = pings.send() => error,
    }
}

/// The requests of one connection.
struct Requests {
    from: u64,
    handler: Arc<dyn Handler>,
    answer_max: usize,
    capacity: Arc<Capacity>,
    queue: Queue,
    running: HashMap<u64, AbortHandle>,
    tasks: JoinSet<(u64, Out)>,
}

impl Requests {
    async fn serve(&mut self, reader: &mut Reader, pings: &Pings) -> WireError {
        loop {
            let handled = tokio::select! {
                frame = reader.next() => frame.and_then(|frame| self.handle(frame, pings)),
                Some(done) = self.tasks.join_next() => {
                    self.answered(done.ok());
                    Ok(())
                }
            };
            if let Err(error) = handled {
                return error;
            }
        }
    }

    fn handle(&mut self, frame: Frame, pings: &Pings) -> Result<(), WireError> {
        match frame.op {
            Op::Request => self.begin(frame)?,
            Op::Cancel => {
                if let Some(task) = self.running.remove(&frame.id) {
                    task.abort();
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

    fn begin(&mut self, frame: Frame) -> Result<(), WireError> {
        let Frame { kind, group, id, body, .. } = frame;
        if self.running.contains_key(&id) {
            return Err(WireError::Protocol(format!("the request {id} came twice")));
        }
        let held = self.capacity.take(body.len()).map_err(WireError::Protocol)?;
        let (handler, from, max) = (Arc::clone(&self.handler), self.from, self.answer_max);
        let task = self.tasks.spawn(async move {
            let frame = answer(handler.as_ref(), from, Request { kind, group, body }, max).await;
            (id, Out { frame: Frame { id, ..frame }, progress: None, _held: Some(held) })
        });
        self.running.insert(id, task);
        Ok(())
    }

    /// Sends the answer of a request that was not cancelled.
    fn answered(&mut self, done: Option<(u64, Out)>) {
        let Some((id, out)) = done else { return };
        if self.running.remove(&id).is_some() {
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
