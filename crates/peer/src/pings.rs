//! Pings: they keep a connection alive, and compare clocks.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::contact::{PeerCell, Sample};
use crate::endpoint::Core;
use crate::frame::{Frame, Op};
use crate::options::WallClock;
use crate::queue::{Capacity, Out, Queue};
use crate::wire::WireError;

/// Pings and pongs of one connection that wait to be written.
const WAITING_MAX: usize = 16;

/// The pings of one connection for requests, which both sides send.
pub(crate) struct Pings {
    cell: Arc<PeerCell>,
    clock: WallClock,
    every: Duration,
    queue: Queue,
    waiting: Arc<Capacity>,
    last: Mutex<Option<Sent>>,
}

#[derive(Clone, Copy)]
struct Sent {
    id: u64,
    at: Instant,
}

impl Pings {
    pub(crate) fn new(core: &Core, cell: &Arc<PeerCell>, queue: &Queue) -> Self {
        Self {
            cell: Arc::clone(cell),
            clock: Arc::clone(&core.clock),
            every: core.limits.ping_interval,
            queue: queue.clone(),
            waiting: Capacity::new(WAITING_MAX, usize::MAX),
            last: Mutex::new(None),
        }
    }

    /// Sends a ping at once, and then in intervals. Never returns.
    pub(crate) async fn send(&self) -> WireError {
        let mut tick = interval(self.every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut id = 0;
        loop {
            tick.tick().await;
            id += 1;
            let sent = Sent { id, at: Instant::now() };
            // A ping that finds no capacity is left out: others wait to be written.
            if self.put(Op::Ping, id, (self.clock)()).is_ok() {
                *self.last.lock() = Some(sent);
            }
        }
    }

    /// Answers a ping.
    ///
    /// # Errors
    /// The other side sends pings and reads no answers.
    pub(crate) fn ping(&self, frame: &Frame) -> Result<(), WireError> {
        self.put(Op::Pong, frame.id, (self.clock)())
            .map_err(|_| WireError::Protocol(format!("more than {WAITING_MAX} pings wait for their answers")))
    }

    /// Measures by the answer to the last ping; ignores other answers.
    pub(crate) fn pong(&self, frame: &Frame) {
        let Some(sent) = self.last.lock().take_if(|sent| sent.id == frame.id) else { return };
        let Some(theirs) = frame.body.first_chunk().copied().map(i64::from_be_bytes) else { return };
        self.cell.measured(Sample::of(sent.at, Instant::now(), theirs));
    }

    fn put(&self, op: Op, id: u64, clock_ms: i64) -> Result<(), String> {
        let held = Some(self.waiting.take(0)?);
        let body = Bytes::copy_from_slice(&clock_ms.to_be_bytes());
        // An error means that the connection ends.
        let _sent = self.queue.send(Out { frame: Frame::with_id(op, id, body), progress: None, _held: held });
        Ok(())
    }
}
