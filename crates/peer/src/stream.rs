//! Long transfers between two servers.

use std::any::Any;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use tokio::sync::{Mutex, mpsc};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{MissedTickBehavior, interval};

use crate::contact::PeerCell;
use crate::endpoint::Core;
use crate::error::PeerError;
use crate::frame::{Frame, Op};
use crate::handshake::Connection;
use crate::limits::{STREAM_PIECE_BYTES_MAX, STREAM_STALL};
use crate::wire::{Reader, WireError, Writer};

/// A connection of its own between two servers, on which each side sends pieces of bytes and then ends. TCP controls the
/// flow: a side that does not receive stops the other side's sending. Beside what TCP buffers, each side holds at most three
/// pieces.
///
/// A stream that is dropped before [`finish`](Self::finish) is broken off: the other side gets an error, never an end. One
/// that is dropped after it still delivers what was sent.
#[derive(Debug)]
pub struct PeerStream {
    outgoing: Mutex<Outgoing>,
    incoming: Mutex<Incoming>,
    writer: AbortHandle,
    reader: AbortHandle,
    /// Whether [`finish`](Self::finish) has sent everything.
    finished: AtomicBool,
}

/// What a stream sends; sending and receiving do not wait for each other.
#[derive(Debug)]
struct Outgoing {
    frames: Option<mpsc::Sender<Frame>>,
    writer: JoinHandle<Result<(), WireError>>,
}

/// What a stream receives.
#[derive(Debug)]
struct Incoming {
    pieces: mpsc::Receiver<Result<Option<Bytes>, String>>,
    /// Whether the other side has ended.
    ended: bool,
}

impl PeerStream {
    /// Begins a stream on a connection. `hold` is dropped when the connection has ended.
    pub(crate) fn begin(core: &Arc<Core>, connection: Connection, hold: impl Any + Send + Sync) -> Self {
        let Connection { reader, writer, cell, counted, .. } = connection;
        let (outgoing, frames) = mpsc::channel(1);
        let (pieces, incoming) = mpsc::channel(1);
        let hold: Arc<dyn Any + Send + Sync> = Arc::new((hold, counted));
        let shared = Shared { core: Arc::clone(core), cell, _hold: hold };
        let writes = shared.clone();
        let writer = core.runtime.spawn(async move {
            tokio::select! {
                written = write(&writes.core, writer, frames) => written,
                () = writes.over() => Err(WireError::Closed),
            }
        });
        let reads = shared;
        let reader = core.runtime.spawn(async move {
            tokio::select! {
                () = read(reader, pieces) => {}
                () = reads.over() => {}
            }
        });
        Self {
            writer: writer.abort_handle(),
            reader: reader.abort_handle(),
            outgoing: Mutex::new(Outgoing { frames: Some(outgoing), writer }),
            incoming: Mutex::new(Incoming { pieces: incoming, ended: false }),
            finished: AtomicBool::new(false),
        }
    }

    /// Sends a piece; waits while the other side is behind.
    ///
    /// # Errors
    ///
    /// [`PeerError::NotSent`] if the piece has more than
    /// [`STREAM_PIECE_BYTES_MAX`](crate::limits::STREAM_PIECE_BYTES_MAX) bytes, or after [`finish`](Self::finish);
    /// [`PeerError::Unknown`] if the connection has ended.
    pub async fn send(&self, piece: Bytes) -> Result<(), PeerError> {
        let length = piece.len();
        if length > STREAM_PIECE_BYTES_MAX {
            return Err(PeerError::NotSent(format!(
                "the piece has {length} bytes, and at most {STREAM_PIECE_BYTES_MAX} are allowed"
            )));
        }
        let outgoing = self.outgoing.lock().await;
        let frames = outgoing.frames.as_ref().ok_or_else(finished)?;
        frames.send(Frame::of(Op::Piece, piece)).await.map_err(|_| broken("it takes nothing more"))
    }

    /// Ends this side: the other side's [`recv`](Self::recv) returns `None` after the last piece. Waits until everything
    /// was given to the network. Receiving goes on.
    ///
    /// # Errors
    ///
    /// [`PeerError::NotSent`] if it was called before; [`PeerError::Unknown`] if the connection has ended.
    pub async fn finish(&self) -> Result<(), PeerError> {
        let mut outgoing = self.outgoing.lock().await;
        let frames = outgoing.frames.as_ref().ok_or_else(finished)?;
        let sent = frames.send(Frame::of(Op::End, Bytes::new())).await;
        sent.map_err(|_| broken("it takes nothing more"))?;
        outgoing.frames = None;
        self.finished.store(true, Ordering::Release);
        match (&mut outgoing.writer).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(broken(&error.to_string())),
            Err(error) => Err(broken(&error.to_string())),
        }
    }

    /// Waits for the next piece. Returns `None` after the other side has ended. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// [`PeerError::Unknown`] if the connection has ended before the other side did.
    pub async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
        let mut incoming = self.incoming.lock().await;
        if incoming.ended {
            return Ok(None);
        }
        match incoming.pieces.recv().await {
            Some(Ok(Some(piece))) => Ok(Some(piece)),
            Some(Ok(None)) => {
                incoming.ended = true;
                Ok(None)
            }
            Some(Err(why)) => Err(broken(&why)),
            None => Err(broken("the connection has ended")),
        }
    }
}

impl Drop for PeerStream {
    fn drop(&mut self) {
        // After `finish` both tasks go on: the connection is closed when the other side has read everything and closes it.
        if !self.finished.load(Ordering::Acquire) {
            self.writer.abort();
            self.reader.abort();
        }
    }
}

/// What both tasks of a stream need.
#[derive(Clone)]
struct Shared {
    core: Arc<Core>,
    cell: Arc<PeerCell>,
    _hold: Arc<dyn Any + Send + Sync>,
}

impl Shared {
    /// Waits until the transport is closed, or the other server is forgotten.
    async fn over(&self) {
        tokio::select! {
            () = self.core.closed() => {}
            () = self.cell.ended() => {}
        }
    }
}

fn finished() -> PeerError {
    PeerError::NotSent("this side of the stream has ended".to_owned())
}

fn broken(why: &str) -> PeerError {
    PeerError::Unknown(format!("the stream broke off: {why}"))
}

/// Writes pieces until the end of this side, and pings while there is nothing else to write.
async fn write(core: &Core, mut writer: Writer, mut frames: mpsc::Receiver<Frame>) -> Result<(), WireError> {
    writer.stall = STREAM_STALL;
    let mut tick = interval(core.limits.ping_interval);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let frame = tokio::select! {
            biased;
            frame = frames.recv() => frame.ok_or(WireError::Closed)?,
            _ = tick.tick() => Frame::of(Op::Ping, Bytes::new()),
        };
        writer.send(&frame).await?;
        if frame.op == Op::End {
            return writer.shutdown().await;
        }
        if frames.is_empty() {
            writer.flush().await?;
        }
    }
}

/// Reads pieces until the other side closes the connection. Pieces that nobody receives any more are dropped.
async fn read(mut reader: Reader, pieces: mpsc::Sender<Result<Option<Bytes>, String>>) {
    let mut ended = false;
    loop {
        let next = match reader.next().await {
            Ok(frame) if frame.op == Op::Ping => continue,
            Ok(frame) if frame.op == Op::Piece && !ended => Ok(Some(frame.body)),
            Ok(frame) if frame.op == Op::End && !ended => {
                ended = true;
                Ok(None)
            }
            Ok(frame) => Err(WireError::unexpected(&frame)),
            Err(error) => Err(error),
        };
        let over = next.is_err();
        if over && ended {
            return;
        }
        // An error means that nobody receives.
        let _received = pieces.send(next.map_err(|error| error.to_string())).await;
        if over {
            return;
        }
    }
}
