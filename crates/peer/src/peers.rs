//! A server's end of the transport.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::contact::Contact;
use crate::dialer::Dialer;
use crate::endpoint::Core;
use crate::error::PeerError;
use crate::frame::{Frame, Op};
use crate::handler::Handler;
use crate::handshake::dial;
use crate::hello::Purpose;
use crate::inbound::accept;
use crate::limits::{PEERS_MAX, STREAM_PIECE_BYTES_MAX};
use crate::options::PeerOptions;
use crate::reach::Reach;
use crate::request::{Request, Traffic};
use crate::stream::PeerStream;
use crate::tls::{TlsError, TlsPem};

/// A server's end of the transport: connections to all other servers, and a listener for theirs. Clones share it; it ends
/// with [`close`](Self::close), or when the last clone is dropped.
#[derive(Clone)]
pub struct Peers {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    address: SocketAddr,
    peers: Mutex<BTreeMap<u64, Dialled>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.core.close();
    }
}

/// A server that is dialled.
struct Dialled {
    address: String,
    control: HeldConnection,
    bulk: HeldConnection,
    commands: HeldConnection,
}

/// A connection that is kept connected until this is dropped.
struct HeldConnection {
    dialer: Arc<Dialer>,
    task: AbortHandle,
}

impl HeldConnection {
    fn new(core: &Arc<Core>, to: u64, address: &str, traffic: Traffic, reach: Arc<Reach>) -> Self {
        let dialer = Arc::new(Dialer::new(core, to, address.to_owned(), traffic, reach));
        let (kept, ends) = (Arc::clone(&dialer).keep(Arc::clone(core)), Arc::clone(core));
        let task = core.runtime_of(traffic).spawn(async move {
            tokio::select! {
                () = kept => {}
                () = ends.closed() => {}
            }
        });
        Self { dialer, task: task.abort_handle() }
    }
}

impl Drop for HeldConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peers {
    /// Listens, and serves the connections of other servers with `handler`. Nothing is dialled before
    /// [`set_address`](Self::set_address).
    ///
    /// # Errors
    ///
    /// The address cannot be listened on, or the certificates cannot be used.
    pub fn start(options: PeerOptions, handler: Arc<dyn Handler>) -> io::Result<Self> {
        let listener = TcpListener::bind(options.listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let core = Arc::new(
            Core::new(options, handler)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?,
        );
        let entered = core.runtime.enter();
        let listener = tokio::net::TcpListener::from_std(listener)?;
        drop(entered);
        core.runtime.spawn(accept(Arc::clone(&core), listener));
        Ok(Self { inner: Arc::new(Inner { core, address, peers: Mutex::default() }) })
    }

    /// The address that the listener has, with its port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.inner.address
    }

    /// Sets where another server listens, `host:port`, and keeps connections to it from now on. A changed address ends the
    /// connections to the old one. Beyond [`PEERS_MAX`](crate::limits::PEERS_MAX) servers it does nothing but log. For a
    /// server that was [removed](Self::remove) it does nothing.
    pub fn set_address(&self, server: u64, address: String) {
        let core = &self.inner.core;
        let mut peers = self.inner.peers.lock();
        if peers.get(&server).is_some_and(|known| known.address == address) {
            return;
        }
        if core.check_present(server).is_err() {
            return;
        }
        if server == core.hello().server || (peers.len() >= PEERS_MAX && !peers.contains_key(&server)) {
            tracing::error!(
                "server {server} at {address} is not dialled: it is this server, or there are too many"
            );
            return;
        }
        let reach = Arc::<Reach>::default();
        let [control, bulk, commands] = [Traffic::Control, Traffic::Bulk, Traffic::Commands]
            .map(|traffic| HeldConnection::new(core, server, &address, traffic, Arc::clone(&reach)));
        peers.insert(server, Dialled { address, control, bulk, commands });
    }

    /// Ends all connections with a server, in both directions, and forgets its address and its [`Contact`]. It can connect
    /// again unless [`Handler::admit`] refuses it.
    pub fn forget(&self, server: u64) {
        self.inner.peers.lock().remove(&server);
        self.inner.core.forget(server);
    }

    /// As [`forget`](Self::forget), and for good: the server is refused from now on, whatever [`Handler::admit`] says, and its
    /// connections for calls end, too.
    pub fn remove(&self, server: u64) {
        let mut peers = self.inner.peers.lock();
        self.inner.core.remove(server);
        peers.remove(&server);
    }

    /// Sends a request to a server, and waits for its answer until `deadline` has passed. While the server is connected
    /// for the first time, or again after a loss, the call waits; while it cannot be reached, the call fails at once.
    /// Dropping the future tells the other server to drop its handler's future.
    ///
    /// # Errors
    ///
    /// See [`PeerError`]. A deadline that passes before the request is written is [`PeerError::NotSent`].
    pub async fn call(
        &self,
        to: u64,
        traffic: Traffic,
        request: Request,
        deadline: Duration,
    ) -> Result<Bytes, PeerError> {
        let dialer = self.dialled(to, |dialled| match traffic {
            Traffic::Control => Arc::clone(&dialled.control.dialer),
            Traffic::Bulk => Arc::clone(&dialled.bulk.dialer),
            Traffic::Commands => Arc::clone(&dialled.commands.dialer),
        })?;
        dialer.call(request, deadline).await
    }

    /// Opens a stream to a server, on a connection of its own. Returns when the request was sent; whether the handler
    /// serves it is seen on the stream.
    ///
    /// # Errors
    ///
    /// [`PeerError::NotSent`] if the server cannot be reached; [`PeerError::Refused`] by the handshake.
    pub async fn stream(&self, to: u64, request: Request) -> Result<PeerStream, PeerError> {
        let core = &self.inner.core;
        let address = self.dialled(to, |dialled| dialled.address.clone())?;
        let (length, max) = (request.body.len(), core.limits.control_body_bytes);
        if length > max {
            let why = format!("the request has {length} bytes, and at most {max} are allowed");
            return Err(PeerError::NotSent(why));
        }
        if core.is_closed() {
            return Err(PeerError::NotSent("the transport was closed".to_owned()));
        }
        let mut connection = dial(core, to, &address, Purpose::Stream).await?;
        connection.reader.max = STREAM_PIECE_BYTES_MAX;
        let frame =
            Frame { op: Op::Request, kind: request.kind, group: request.group, id: 0, body: request.body };
        let failed = |error: crate::wire::WireError| PeerError::Unknown(error.to_string());
        connection.writer.send(&frame).await.map_err(failed)?;
        connection.writer.flush().await.map_err(failed)?;
        Ok(PeerStream::begin(core, connection, ()))
    }

    /// What is known of another server. Returns `None` before the first handshake with it.
    #[must_use]
    pub fn contact(&self, server: u64) -> Option<Contact> {
        let core = &self.inner.core;
        Some(core.cell(server)?.contact(Instant::now(), (core.clock)()))
    }

    /// Uses other certificates for new connections. Open connections stay. Certificates that cannot be used change nothing.
    ///
    /// # Errors
    ///
    /// They cannot be read, the key is another certificate's, or the certificate does not contain this server's name.
    pub fn set_tls(&self, tls: &TlsPem) -> Result<(), TlsError> {
        self.inner.core.set_tls(tls)
    }

    /// Sends another digest of key ids in handshakes from now on, and requires it of others. Open connections stay.
    pub fn set_keys(&self, keys: [u8; 32]) {
        self.inner.core.change_hello(|hello| hello.keys = keys);
    }

    /// Stops listening, ends all connections, and drops the futures of the handler. Calls that wait fail.
    pub fn close(&self) {
        self.inner.core.close();
    }

    /// What is known of a server that is dialled.
    fn dialled<T>(&self, server: u64, of: impl FnOnce(&Dialled) -> T) -> Result<T, PeerError> {
        let peers = self.inner.peers.lock();
        let dialled = peers.get(&server);
        dialled.map(of).ok_or_else(|| PeerError::NotSent(format!("server {server} has no address")))
    }
}
