//! The connections on which calls are passed on: one to each server, dialled when it is needed.

use axum::body::Body;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::map::RouteServer;
use crate::limits::{
    PROXIED_CALLS_MAX, PROXIED_CONNECTION_WINDOW_BYTES, PROXIED_STREAM_WINDOW_BYTES, PROXY_PING_MS,
    PROXY_PING_WAIT_MS, PROXY_REST_MS, TRANSPORT_HEADERS_BYTES_MAX,
};

/// A connection to a server, on which HTTP/2 begins.
pub trait CallIo: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> CallIo for T {}

/// Connects to servers for calls that are passed on.
#[tonic::async_trait]
pub trait ServerDialer: Send + Sync + 'static {
    /// Connects to the server of this number at this address. Takes seconds at most.
    ///
    /// # Errors
    /// It cannot be reached, or is not that server.
    async fn dial(&self, server: u64, address: &str) -> io::Result<Box<dyn CallIo>>;
}

/// Why a server gets no call now. Nothing was sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoLink {
    /// It cannot be reached.
    Unreachable(String),
    /// It has [`PROXIED_CALLS_MAX`] calls.
    Full,
}

/// A call's part of a connection.
pub(super) struct Line {
    pub(super) sender: SendRequest<Body>,
    pub(super) permit: OwnedSemaphorePermit,
}

/// The connections by their servers.
pub(super) struct Links {
    dialer: Arc<dyn ServerDialer>,
    known: Mutex<HashMap<u64, Arc<Link>>>,
}

/// What there is to one server at one address.
struct Link {
    address: String,
    calls: Arc<Semaphore>,
    state: AsyncMutex<State>,
}

enum State {
    /// Not dialled yet.
    New,
    Open(SendRequest<Body>),
    /// It could not be reached then, and why.
    Failed(Instant, String),
}

impl Links {
    pub(super) fn new(dialer: Arc<dyn ServerDialer>) -> Self {
        Self { dialer, known: Mutex::default() }
    }

    /// A call's part of the connection to a server, which is dialled if there is none.
    ///
    /// # Errors
    /// As [`NoLink`] says.
    pub(super) async fn line(&self, server: &RouteServer) -> Result<Line, NoLink> {
        let link = self.link(server);
        let permit = Arc::clone(&link.calls).try_acquire_owned().map_err(|_| NoLink::Full)?;
        let mut state = link.state.lock().await;
        match &*state {
            State::Open(sender) if !sender.is_closed() => {
                return Ok(Line { sender: sender.clone(), permit });
            }
            State::Failed(at, why) if at.elapsed() < Duration::from_millis(PROXY_REST_MS) => {
                return Err(NoLink::Unreachable(why.clone()));
            }
            State::New | State::Open(_) | State::Failed(..) => {}
        }
        match self.connect(server).await {
            Ok(sender) => {
                *state = State::Open(sender.clone());
                Ok(Line { sender, permit })
            }
            Err(error) => {
                let why = format!("server {} at {}: {error}", server.number, server.address);
                tracing::warn!("failed to connect for calls: {why}");
                *state = State::Failed(Instant::now(), why.clone());
                Err(NoLink::Unreachable(why))
            }
        }
    }

    fn link(&self, server: &RouteServer) -> Arc<Link> {
        let mut known = self.known.lock();
        if let Some(link) = known.get(&server.number).filter(|link| link.address == server.address) {
            return Arc::clone(link);
        }
        let link = Arc::new(Link {
            address: server.address.clone(),
            calls: Arc::new(Semaphore::new(PROXIED_CALLS_MAX)),
            state: AsyncMutex::new(State::New),
        });
        known.insert(server.number, Arc::clone(&link));
        link
    }

    async fn connect(&self, server: &RouteServer) -> io::Result<SendRequest<Body>> {
        let io = self.dialer.dial(server.number, &server.address).await?;
        let handshake = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(PROXIED_STREAM_WINDOW_BYTES)
            .initial_connection_window_size(PROXIED_CONNECTION_WINDOW_BYTES)
            .max_header_list_size(TRANSPORT_HEADERS_BYTES_MAX)
            .keep_alive_interval(Duration::from_millis(PROXY_PING_MS))
            .keep_alive_timeout(Duration::from_millis(PROXY_PING_WAIT_MS))
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(io))
            .await;
        let (sender, connection) = handshake.map_err(io::Error::other)?;
        let number = server.number;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, server = number, "a connection for calls ended");
            }
        });
        Ok(sender)
    }
}
