//! Streams between simulated servers: chunks in order, until the connection breaks.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use switchward_peer::{Request, Traffic, simulation as frames};
use switchward_shard::limits::STREAM_CHUNK_BYTES_MAX;
use switchward_shard::{PeerError, PeerRequest, PeerStream};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::network::{Blocked, Network, TRIES, TRY_AGAIN};
use crate::timeline::hash_of;

/// What arrives at one end.
enum Item {
    /// A chunk, as its frame while it is on its way.
    Chunk(Bytes),
    /// The other end sends nothing more.
    Finished,
    /// The other end is gone.
    Closed,
    /// The connection is broken.
    Broken,
}

/// One direction of a stream.
struct Direction {
    from: u64,
    to: u64,
    sent: VecDeque<Item>,
    arrives: UnboundedSender<Item>,
    /// When the last item is to arrive.
    last: u64,
}

struct Stream {
    network: Network,
    /// Away from the server that opened it, and back.
    directions: Mutex<[Direction; 2]>,
    broken: Mutex<bool>,
}

/// One end of a stream.
struct End {
    stream: Arc<Stream>,
    /// The direction that it sends on.
    direction: usize,
    finished: Mutex<bool>,
    receives: AsyncMutex<(UnboundedReceiver<Item>, bool)>,
}

/// Opens a stream: the other server serves it as soon as the request has arrived.
pub(crate) fn open(network: &Network, from: u64, to: u64, request: PeerRequest) -> Arc<dyn PeerStream> {
    let (there, arrived) = unbounded_channel();
    let (back, answers) = unbounded_channel();
    let direction = |from, to, arrives| Direction { from, to, sent: VecDeque::new(), arrives, last: 0 };
    let stream = Arc::new(Stream {
        network: network.clone(),
        directions: Mutex::new([direction(from, to, there), direction(to, from, back)]),
        broken: Mutex::new(false),
    });
    let end = |direction, receives| End {
        stream: Arc::clone(&stream),
        direction,
        finished: Mutex::new(false),
        receives: AsyncMutex::new((receives, false)),
    };
    let (near, far) = (end(0, answers), end(1, arrived));
    let delay = network.delay();
    let PeerRequest { kind, group, body } = request;
    let opening = frames::request(0, Request { kind, group, body });
    stream.directions.lock()[0].last = network.timeline.now() + delay;
    let (network, opened) = (network.clone(), Arc::clone(&stream));
    let timeline = network.timeline.clone();
    timeline.after(delay, move || {
        let endpoint = network.endpoint(to).filter(|_| network.passes(from, to).is_ok());
        let (_, Request { kind, group, body }) = frames::read_request(opening, Traffic::Control).unwrap();
        let request = PeerRequest { kind, group, body };
        network.timeline.note(format_args!("{from}>{to} opens {kind}/{group}"));
        match endpoint {
            Some(endpoint) => {
                let runtime = endpoint.runtime.clone();
                runtime.spawn(async move {
                    // A stream that is refused is closed.
                    let _refused = endpoint.handler.stream(from, request, Arc::new(far)).await;
                });
            }
            None => opened.end(),
        }
    });
    Arc::new(near)
}

fn broken() -> PeerError {
    PeerError::Unknown("the connection is gone".into())
}

impl Stream {
    /// Breaks the connection.
    fn end(&self) {
        let before = std::mem::replace(&mut *self.broken.lock(), true);
        if !before {
            for direction in &*self.directions.lock() {
                let _gone = direction.arrives.send(Item::Broken);
            }
        }
    }

    fn send(self: &Arc<Self>, direction: usize, item: Item) {
        let (delay, now) = (self.network.delay(), self.network.timeline.now());
        let wait = {
            let mut directions = self.directions.lock();
            let direction = &mut directions[direction];
            direction.last = direction.last.max(now + delay);
            direction.sent.push_back(item);
            direction.last - now
        };
        let stream = Arc::clone(self);
        self.network.timeline.after(wait, move || stream.arrive(direction, 0));
    }

    /// The first item of a direction arrives.
    fn arrive(self: Arc<Self>, direction: usize, tries: u32) {
        if *self.broken.lock() {
            return;
        }
        let (from, to) = {
            let directions = self.directions.lock();
            (directions[direction].from, directions[direction].to)
        };
        match self.network.passes(from, to) {
            Ok(()) => {}
            // It is sent again until it gets through.
            Err(Blocked::Silent) if tries < TRIES => {
                let stream = Arc::clone(&self);
                return self.network.timeline.after(TRY_AGAIN, move || stream.arrive(direction, tries + 1));
            }
            Err(Blocked::Silent | Blocked::Noticed) => return self.end(),
        }
        if self.network.breaks() {
            return self.end();
        }
        let Some(mut item) = self.directions.lock()[direction].sent.pop_front() else { return };
        let closed = matches!(item, Item::Closed);
        if let Item::Chunk(bytes) = &mut item {
            *bytes = frames::read_piece(std::mem::take(bytes)).unwrap();
            self.network.timeline.note(format_args!("{from}>{to} chunk {:x}", hash_of(bytes)));
        }
        // The receiver may be gone.
        let _gone = self.directions.lock()[direction].arrives.send(item);
        if closed {
            *self.broken.lock() = true;
        }
    }
}

#[async_trait]
impl PeerStream for End {
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError> {
        assert!(chunk.len() <= STREAM_CHUNK_BYTES_MAX, "a chunk has {} bytes", chunk.len());
        if *self.stream.broken.lock() || *self.finished.lock() {
            return Err(broken());
        }
        self.stream.send(self.direction, Item::Chunk(frames::piece(chunk)));
        Ok(())
    }

    async fn finish(&self) -> Result<(), PeerError> {
        if !std::mem::replace(&mut *self.finished.lock(), true) {
            self.stream.send(self.direction, Item::Finished);
        }
        Ok(())
    }

    async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
        let mut receives = self.receives.lock().await;
        if receives.1 {
            return Ok(None);
        }
        match receives.0.recv().await {
            Some(Item::Chunk(bytes)) => Ok(Some(bytes)),
            Some(Item::Finished | Item::Closed) | None => {
                receives.1 = true;
                Ok(None)
            }
            Some(Item::Broken) => {
                receives.1 = true;
                Err(broken())
            }
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.stream.send(self.direction, Item::Closed);
    }
}
