//! The handshake, from both sides: connect, TLS, a greeting in each direction, and the dialling server's verdict.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_rustls::{LazyConfigAcceptor, TlsStream};

use crate::calls::{CallStream, caller};
use crate::contact::{PeerCell, StreamCount};
use crate::endpoint::Core;
use crate::error::PeerError;
use crate::frame::{Frame, Op};
use crate::hello::{Greeting, Hello, Purpose, check};
use crate::limits::{HELLO_BYTES_MAX, REASON_BYTES_MAX, WRITE_STALL};
use crate::name::PeerName;
use crate::tls::{TlsFailure, dialled_name, dials_other, failure, is_for_calls, names};
use crate::wire::{FrameReader, FrameWriter, Reader, WireError, Writer, move_to};

/// A connection after its handshake.
pub(crate) struct Connection {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) cell: Arc<PeerCell>,
    pub(crate) server: u64,
    /// Counts the stream that it is for, if the other side has dialled it.
    pub(crate) counted: Option<StreamCount>,
}

impl Connection {
    /// The same connection on another runtime.
    ///
    /// # Errors
    /// As of [`move_to`].
    pub(crate) fn on(self, runtime: &Handle) -> Result<Self, WireError> {
        let (reader, writer) = move_to(runtime, self.reader, self.writer)?;
        Ok(Self { reader, writer, ..self })
    }
}

/// How long a refused connection stays open so that the other side can read why.
const LINGER: Duration = Duration::from_secs(1);
/// How many bytes are read and dropped meanwhile.
const LINGER_BYTES_MAX: u64 = 64 * 1024;

/// Dials a server.
///
/// # Errors
/// [`PeerError::NotSent`] if it cannot be reached, [`PeerError::Refused`] if one side refuses the other.
pub(crate) async fn dial(
    core: &Core,
    to: u64,
    address: &str,
    purpose: Purpose,
) -> Result<Connection, PeerError> {
    let wait = core.limits.handshake;
    let not_sent = |why: String| PeerError::NotSent(why);
    let tcp = timeout(wait, TcpStream::connect(address))
        .await
        .map_err(|_| not_sent(format!("no connection within {} ms", wait.as_millis())))?
        .map_err(|error| not_sent(format!("no connection: {error}")))?;
    timeout(wait, greet(core, tcp, to, purpose))
        .await
        .map_err(|_| not_sent(format!("the handshake took longer than {} ms", wait.as_millis())))?
}

/// The dialling side of the handshake.
async fn greet(core: &Core, tcp: TcpStream, to: u64, purpose: Purpose) -> Result<Connection, PeerError> {
    let greeting = core.greeting(to, purpose);
    let own = &greeting.hello;
    let tls_failed = |error: &std::io::Error| match failure(error, Some(to), &own.cluster) {
        TlsFailure::Refused(why) => PeerError::Refused(why),
        TlsFailure::Failed(why) => PeerError::NotSent(why),
    };
    let failed = |error: WireError| {
        if let WireError::Io(io) = &error {
            return tls_failed(io);
        }
        PeerError::NotSent(format!("the handshake failed: {error}"))
    };
    // Only latency depends on it.
    let _set = tcp.set_nodelay(true);
    let name = dialled_name(&own.cluster, to).map_err(PeerError::Refused)?;
    let tls = core.tls().connector.connect(name, tcp).await.map_err(|error| tls_failed(&error))?;
    let tls = TlsStream::from(tls);
    let certificate = certificate(&tls);
    let (mut reader, mut writer) = halves(core, tls);
    send(&mut writer, Op::Hello, greeting.encode()).await.map_err(&failed)?;
    let theirs = read_greeting(&mut reader).await.map_err(&failed)?.map_err(PeerError::Refused)?;
    match judge(core, &theirs, certificate.as_ref(), Some(to)).await {
        Ok(cell) => {
            send(&mut writer, Op::Accept, Bytes::new()).await.map_err(&failed)?;
            reader.cell = Some(Arc::clone(&cell));
            Ok(Connection { reader, writer, cell, server: to, counted: None })
        }
        Err(why) => {
            refuse(writer, reader, &why).await;
            Err(PeerError::Refused(why))
        }
    }
}

/// What a connection is that another process has dialled.
pub(crate) enum Received {
    /// A server's, for requests or a stream.
    Peer(Connection, Purpose),
    /// For calls of clients that this server or gateway passes on, or for the reports of this delivery process.
    Calls(PeerName, Box<CallStream>),
}

/// Makes the handshake with a process that has connected; the caller limits its time. `permit` is given back when it is over,
/// before a refused process gets time to read why.
///
/// # Errors
/// One side refused the other, or the connection failed; the text is for the log.
pub(crate) async fn receive(
    core: &Core,
    tcp: TcpStream,
    permit: OwnedSemaphorePermit,
) -> Result<Received, String> {
    // Only latency depends on it.
    let _set = tcp.set_nodelay(true);
    let cluster = core.hello().cluster;
    let tls = match accept_tls(core, tcp, &cluster).await {
        Ok(tls) => tls,
        Err(NoTls { why, tcp }) => {
            drop(permit);
            if let Some(tcp) = tcp {
                linger(tcp).await;
            }
            return Err(why);
        }
    };
    let certificate = certificate(&tls);
    if is_for_calls(tls.get_ref().1.alpn_protocol()) {
        let from = caller(certificate.as_ref(), &cluster)?;
        core.handler.admit_calls(&from)?;
        if let PeerName::Server(server) = from {
            core.check_present(server)?;
        }
        return Ok(Received::Calls(from, Box::new(tls)));
    }
    let (mut reader, mut writer) = halves(core, tls);
    let failed = |error: WireError| format!("the handshake failed: {error}");
    let theirs = read_greeting(&mut reader).await.map_err(failed)??;
    let (server, purpose) = (theirs.hello.server, theirs.purpose);
    let judged = judge(core, &theirs, certificate.as_ref(), None).await;
    let (cell, counted) = match judged.and_then(|cell| count(core, cell, purpose)) {
        Ok(counted) => counted,
        Err(why) => {
            drop(permit);
            refuse(writer, reader, &why).await;
            return Err(why);
        }
    };
    send(&mut writer, Op::Hello, core.greeting(server, purpose).encode()).await.map_err(failed)?;
    let verdict = reader.next().await.map_err(failed)?;
    match verdict.op {
        Op::Accept => {
            reader.cell = Some(Arc::clone(&cell));
            Ok(Received::Peer(Connection { reader, writer, cell, server, counted }, purpose))
        }
        Op::Refuse => Err(format!("server {server} refused this server: {}", text(&verdict.body))),
        Op::Hello
        | Op::Request
        | Op::Answer
        | Op::Refusal
        | Op::Lost
        | Op::Cancel
        | Op::Ping
        | Op::Pong
        | Op::Piece
        | Op::End => Err(failed(WireError::unexpected(&verdict))),
    }
}

/// Why there is no TLS with a process that has connected, and its connection if it is still open.
struct NoTls {
    why: String,
    tcp: Option<TcpStream>,
}

/// Makes the TLS handshake with a process that has connected. The name that it dials comes first: a server of another cluster
/// refuses this server's certificate, and the alert alone would not say why.
async fn accept_tls(core: &Core, tcp: TcpStream, cluster: &[u8; 16]) -> Result<TlsStream<TcpStream>, NoTls> {
    let text = |error: &std::io::Error| match failure(error, None, cluster) {
        TlsFailure::Refused(why) | TlsFailure::Failed(why) => why,
    };
    let config = Arc::clone(core.tls().acceptor.config());
    let mut beginning = LazyConfigAcceptor::new(Acceptor::default(), tcp);
    let begun = match (&mut beginning).await {
        Ok(begun) => begun,
        Err(error) => return Err(NoTls { why: text(&error), tcp: beginning.take_io() }),
    };
    let dialled = begun.client_hello().server_name().and_then(PeerName::read);
    let tls = begun.into_stream(config).into_fallible().await;
    tls.map(TlsStream::from).map_err(|(error, tcp)| {
        let is_other = dialled.is_some_and(|(_, of)| of != *cluster);
        NoTls { why: if is_other { dials_other(cluster) } else { text(&error) }, tcp: Some(tcp) }
    })
}

/// Decides about the other side's greeting. `dialled` is the number that this side has dialled.
async fn judge(
    core: &Core,
    theirs: &Greeting,
    certificate: Option<&CertificateDer<'_>>,
    dialled: Option<u64>,
) -> Result<Arc<PeerCell>, String> {
    let (own, hello) = (core.hello(), &theirs.hello);
    check(&own, hello)?;
    match dialled {
        Some(dialled) if dialled != hello.server => {
            return Err(wrong_number(dialled, hello));
        }
        None if theirs.to != own.server => return Err(wrong_number(theirs.to, &own)),
        Some(_) | None => {}
    }
    let certificate = certificate.ok_or_else(|| format!("server {} sent no certificate", hello.server))?;
    names(certificate, hello)?;
    core.handler.admit(hello).await?;
    core.shook_hands(hello)
}

/// Counts a stream that the other side opens.
fn count(
    core: &Core,
    cell: Arc<PeerCell>,
    purpose: Purpose,
) -> Result<(Arc<PeerCell>, Option<StreamCount>), String> {
    let counted = match purpose {
        Purpose::Requests(_) => None,
        Purpose::Stream => Some(cell.begin_stream(core.limits.streams_per_peer)?),
    };
    Ok((cell, counted))
}

fn wrong_number(dialled: u64, answered: &Hello) -> String {
    format!("server {dialled} was dialled, and server {} answered", answered.server)
}

/// Reads the other side's first frame: its greeting, or the reason why it refuses this side.
async fn read_greeting(reader: &mut Reader) -> Result<Result<Greeting, String>, WireError> {
    let frame = reader.next().await?;
    match frame.op {
        Op::Hello => match Greeting::decode(&frame.body) {
            Some(greeting) => Ok(Ok(greeting)),
            None => Err(WireError::Protocol("the first frame cannot be read".to_owned())),
        },
        Op::Refuse => Ok(Err(format!("the other side says: {}", text(&frame.body)))),
        Op::Accept
        | Op::Request
        | Op::Answer
        | Op::Refusal
        | Op::Lost
        | Op::Cancel
        | Op::Ping
        | Op::Pong
        | Op::Piece
        | Op::End => Err(WireError::unexpected(&frame)),
    }
}

/// The other side's own certificate.
fn certificate(tls: &TlsStream<TcpStream>) -> Option<CertificateDer<'static>> {
    let (_, session) = tls.get_ref();
    session.peer_certificates()?.first().map(|certificate| certificate.clone().into_owned())
}

fn halves(core: &Core, tls: TlsStream<TcpStream>) -> (Reader, Writer) {
    let (read, write) = tokio::io::split(tls);
    (FrameReader::new(read, HELLO_BYTES_MAX, core.limits.idle), FrameWriter::new(write, WRITE_STALL))
}

async fn send(writer: &mut Writer, op: Op, body: Bytes) -> Result<(), WireError> {
    writer.send(&Frame::of(op, body)).await?;
    writer.flush().await
}

/// Sends a refusal, and gives the other side a moment to read it.
async fn refuse(mut writer: Writer, mut reader: Reader, why: &str) {
    // Nothing depends on the other side's getting it: the connection ends.
    let _refused = timeout(LINGER, async {
        send(&mut writer, Op::Refuse, reason(why)).await?;
        writer.shutdown().await?;
        while reader.next().await.is_ok() {}
        Ok::<_, WireError>(())
    })
    .await;
}

/// Keeps a connection open until the other side has closed it: closed with bytes unread, it would drop what was sent last.
async fn linger(mut tcp: TcpStream) {
    // An error means that it is closed.
    let _closed = timeout(LINGER, async {
        tcp.shutdown().await?;
        tokio::io::copy(&mut (&mut tcp).take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await
    })
    .await;
}

/// A refusal's text as the body of a frame, cut to its maximum.
pub(crate) fn reason(why: &str) -> Bytes {
    let end = why.floor_char_boundary(REASON_BYTES_MAX);
    Bytes::copy_from_slice(&why.as_bytes()[..end])
}

/// A text from the other side, for one line of a log.
pub(crate) fn text(body: &[u8]) -> String {
    let end = body.len().min(REASON_BYTES_MAX);
    String::from_utf8_lossy(&body[..end]).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
