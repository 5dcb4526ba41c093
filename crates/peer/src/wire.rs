//! Reads and writes frames.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_rustls::TlsStream;

use crate::contact::PeerCell;
use crate::frame::{Frame, FrameError, HEAD_BYTES, take};
use crate::limits::WRITE_BYTES;

/// The reading half of a connection.
pub(crate) type Reader = FrameReader<ReadHalf<TlsStream<TcpStream>>>;
/// The writing half of a connection.
pub(crate) type Writer = FrameWriter<WriteHalf<TlsStream<TcpStream>>>;

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("nothing came for {} ms", .0.as_millis())]
    Idle(Duration),
    #[error("the other side took nothing for {} ms", .0.as_millis())]
    Stalled(Duration),
    #[error("the other side closed the connection")]
    Closed,
    #[error("{0}")]
    Io(io::Error),
    /// The other side does not keep to the protocol.
    #[error("{0}")]
    Protocol(String),
}

impl WireError {
    /// A frame that has no meaning at this point.
    pub(crate) fn unexpected(frame: &Frame) -> Self {
        Self::Protocol(format!("a frame of the type {:?} came, which has no meaning here", frame.op))
    }

    /// Returns true if the other side sent what it must not send.
    pub(crate) fn is_violation(&self) -> bool {
        match self {
            Self::Frame(_) | Self::Protocol(_) => true,
            Self::Idle(_) | Self::Stalled(_) | Self::Closed | Self::Io(_) => false,
        }
    }
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Closed } else { Self::Io(error) }
    }
}

/// Reads frames.
#[derive(Debug)]
pub(crate) struct FrameReader<R> {
    io: R,
    buffer: BytesMut,
    /// The largest body, bytes.
    pub(crate) max: usize,
    /// How long nothing may come.
    pub(crate) idle: Duration,
    /// Where to note that something came.
    pub(crate) cell: Option<Arc<PeerCell>>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(io: R, max: usize, idle: Duration) -> Self {
        Self { io, buffer: BytesMut::new(), max, idle, cell: None }
    }

    /// Waits for the next frame. Dropping the future loses nothing. A body's memory is taken as its bytes come.
    ///
    /// # Errors
    /// The connection has ended, nothing came for too long, or what came is not a frame.
    pub(crate) async fn next(&mut self) -> Result<Frame, WireError> {
        loop {
            let needed = match take(&mut self.buffer, self.max)? {
                Ok(frame) => return Ok(frame),
                Err(needed) => needed,
            };
            let missing = needed - self.buffer.len();
            self.buffer.reserve(missing.min(self.buffer.len()).max(WRITE_BYTES));
            let read = timeout(self.idle, self.io.read_buf(&mut self.buffer)).await;
            if read.map_err(|_| WireError::Idle(self.idle))?? == 0 {
                return Err(WireError::Closed);
            }
            if let Some(cell) = &self.cell {
                cell.seen();
            }
        }
    }
}

/// Writes frames.
#[derive(Debug)]
pub(crate) struct FrameWriter<W> {
    io: W,
    buffer: BytesMut,
    /// How long a write may make no progress.
    pub(crate) stall: Duration,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(crate) fn new(io: W, stall: Duration) -> Self {
        Self { io, buffer: BytesMut::new(), stall }
    }

    /// Writes a frame; a short one may stay in the buffer until [`flush`](Self::flush).
    ///
    /// # Errors
    /// The connection has ended, or the other side takes nothing.
    pub(crate) async fn send(&mut self, frame: &Frame) -> Result<(), WireError> {
        self.buffer.extend_from_slice(&frame.head());
        if frame.body.len() <= WRITE_BYTES - HEAD_BYTES {
            self.buffer.extend_from_slice(&frame.body);
            if self.buffer.len() >= WRITE_BYTES {
                self.write_buffer().await?;
            }
            return Ok(());
        }
        self.write_buffer().await?;
        for part in frame.body.chunks(WRITE_BYTES) {
            progress(self.stall, self.io.write_all(part)).await?;
        }
        Ok(())
    }

    /// Gives everything to the network.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(crate) async fn flush(&mut self) -> Result<(), WireError> {
        self.write_buffer().await?;
        progress(self.stall, self.io.flush()).await
    }

    /// Flushes, and ends this direction of the connection.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(crate) async fn shutdown(&mut self) -> Result<(), WireError> {
        self.flush().await?;
        progress(self.stall, self.io.shutdown()).await
    }

    async fn write_buffer(&mut self) -> Result<(), WireError> {
        progress(self.stall, self.io.write_all(&self.buffer)).await?;
        self.buffer.clear();
        Ok(())
    }
}

/// Moves an open connection to another runtime, whose threads learn from then on that it can be read or written.
///
/// # Errors
/// The system refuses it.
pub(crate) fn move_to(runtime: &Handle, reader: Reader, writer: Writer) -> io::Result<(Reader, Writer)> {
    let mut tls = reader.io.unsplit(writer.io);
    let (tcp, _) = tls.get_mut();
    let again = std::net::TcpStream::from(tcp.as_fd().try_clone_to_owned()?);
    let entered = runtime.enter();
    *tcp = TcpStream::from_std(again)?;
    drop(entered);
    let (read, write) = tokio::io::split(tls);
    Ok((FrameReader { io: read, ..reader }, FrameWriter { io: write, ..writer }))
}

async fn progress(stall: Duration, write: impl Future<Output = io::Result<()>>) -> Result<(), WireError> {
    Ok(timeout(stall, write).await.map_err(|_| WireError::Stalled(stall))??)
}
