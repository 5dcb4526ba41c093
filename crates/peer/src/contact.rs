//! What a server knows of another one from their connections.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::hello::Hello;
use crate::limits::OFFSET_SAMPLES;
use crate::request::Traffic;

/// What a server knows of another one from their connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// When the last bytes came from it, on any connection.
    pub seen: Instant,
    /// The other server's wall clock minus this one's, milliseconds, by the fastest of the last pings; `None` before the
    /// first ping was answered.
    pub clock_offset_ms: Option<i64>,
    /// The identity from its last handshake, with its feature level.
    pub hello: Hello,
}

/// What all connections with one other server share.
#[derive(Debug)]
pub(crate) struct PeerCell {
    known: Mutex<Known>,
    /// The connections that it has dialled for requests: dropping a sender ends one.
    inbound: Mutex<[Option<oneshot::Sender<()>>; 2]>,
    streams: AtomicUsize,
    gone: watch::Sender<bool>,
}

#[derive(Debug)]
struct Known {
    seen: Instant,
    hello: Hello,
    pings: VecDeque<Sample>,
}

/// What one ping has measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) round_trip: Duration,
    /// The other clock minus this one, milliseconds.
    pub(crate) offset_ms: i64,
}

impl PeerCell {
    pub(crate) fn new(hello: Hello) -> Self {
        let known = Known { seen: Instant::now(), hello, pings: VecDeque::with_capacity(OFFSET_SAMPLES) };
        Self {
            known: Mutex::new(known),
            inbound: Mutex::default(),
            streams: AtomicUsize::new(0),
            gone: watch::Sender::new(false),
        }
    }

    /// Notes a handshake. After a restart, what earlier pings have measured is dropped.
    pub(crate) fn shook_hands(&self, hello: &Hello) {
        let mut known = self.known.lock();
        if known.hello.boot != hello.boot {
            known.pings.clear();
        }
        known.hello = hello.clone();
        known.seen = Instant::now();
    }

    /// Notes that something came.
    pub(crate) fn seen(&self) {
        self.known.lock().seen = Instant::now();
    }

    /// Notes what a ping has measured.
    pub(crate) fn measured(&self, sample: Sample) {
        let pings = &mut self.known.lock().pings;
        if pings.len() == OFFSET_SAMPLES {
            pings.pop_front();
        }
        pings.push_back(sample);
    }

    pub(crate) fn contact(&self) -> Contact {
        let known = self.known.lock();
        let fastest = known.pings.iter().min_by_key(|sample| sample.round_trip);
        Contact {
            seen: known.seen,
            clock_offset_ms: fastest.map(|sample| sample.offset_ms),
            hello: known.hello.clone(),
        }
    }

    /// Registers a connection that the other server has dialled; an older one for the same traffic ends. The
    /// receiver completes when this one must end.
    pub(crate) fn begin_requests(&self, traffic: Traffic) -> oneshot::Receiver<()> {
        let (sender, ends) = oneshot::channel();
        let at = match traffic {
            Traffic::Control => 0,
            Traffic::Bulk => 1,
        };
        self.inbound.lock()[at] = Some(sender);
        ends
    }

    /// Counts a stream that the other server has opened, until the guard is dropped.
    ///
    /// # Errors
    /// It has `max` streams open.
    pub(crate) fn begin_stream(self: &Arc<Self>, max: usize) -> Result<StreamCount, String> {
        let counted = StreamCount(Arc::clone(self));
        if self.streams.fetch_add(1, Ordering::Relaxed) < max {
            return Ok(counted);
        }
        Err(format!("server {} has {max} streams open", self.known.lock().hello.server))
    }

    /// Ends all connections with this server.
    pub(crate) fn end(&self) {
        self.gone.send_replace(true);
    }

    /// Waits until [`end`](Self::end) is called.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as `self`.
        let mut gone = self.gone.subscribe();
        let _gone = gone.wait_for(|gone| *gone).await;
    }
}

/// A stream that is counted.
#[derive(Debug)]
pub(crate) struct StreamCount(Arc<PeerCell>);

impl Drop for StreamCount {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
