//! The connections on which calls are passed on: one to each server, dialled when it is needed.

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::head::REMOVED;
use super::map::RouteServer;
use crate::limits::{
    PROXIED_CALLS_MAX, PROXIED_STREAM_WINDOW_BYTES, PROXY_DIAL_MS_MAX, PROXY_PING_MS, PROXY_PING_WAIT_MS,
    PROXY_REST_MS, PROXY_TIMED_OUT_REST_MS, TRANSPORT_HEADERS_BYTES_MAX,
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

/// Why a server cannot be reached now. Nothing was sent to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unreachable(pub(super) String);

/// What a process of the cluster asks a server that no client asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    /// Where the server answers it.
    pub(super) path: &'static str,
    /// How long it may take to connect and to get the answer.
    pub(super) wait: Duration,
    /// The maximum size of the answer, bytes.
    pub(super) bytes_max: usize,
}

/// The connections by their servers.
pub(super) struct Links {
    dialer: Arc<dyn ServerDialer>,
    /// HTTP/2 flow control: what answers on one connection may have that nobody reads, bytes.
    window: u32,
    known: Mutex<HashMap<u64, Arc<Link>>>,
}

/// What there is to one server at one address.
struct Link {
    server: RouteServer,
    window: u32,
    state: Mutex<State>,
    /// Notified when a dial has ended.
    dialled: Notify,
    /// Set while the server cannot be reached, and the log says so.
    is_reported: AtomicBool,
}

enum State {
    /// Not dialled yet.
    New,
    /// A task dials it.
    Dialling,
    Open(SendRequest<Body>),
    /// It could not be reached, why, and until when it is not dialled again.
    Failed {
        why: String,
        until: Instant,
    },
}

impl Link {
    /// The connection, which `dialer` dials in a task if there is none. Waits until that has ended.
    async fn sender(
        self: &Arc<Self>,
        dialer: &Arc<dyn ServerDialer>,
    ) -> Result<SendRequest<Body>, Unreachable> {
        loop {
            // Before the look at the state, so that no end of a dial is missed.
            let mut dialled = std::pin::pin!(self.dialled.notified());
            dialled.as_mut().enable();
            if let Some(sender) = self.look(dialer)? {
                return Ok(sender);
            }
            dialled.await;
        }
    }

    /// The connection; `None` while it is dialled, which begins now if it is due.
    fn look(
        self: &Arc<Self>,
        dialer: &Arc<dyn ServerDialer>,
    ) -> Result<Option<SendRequest<Body>>, Unreachable> {
        let mut state = self.state.lock();
        match &*state {
            State::Open(sender) if !sender.is_closed() => return Ok(Some(sender.clone())),
            State::Failed { why, until } if Instant::now() < *until => {
                return Err(Unreachable(why.clone()));
            }
            State::Dialling => return Ok(None),
            State::New | State::Open(_) | State::Failed { .. } => {}
        }
        *state = State::Dialling;
        tokio::spawn(Arc::clone(self).dial(Arc::clone(dialer)));
        Ok(None)
    }

    async fn dial(self: Arc<Self>, dialer: Arc<dyn ServerDialer>) {
        let connected =
            timeout(Duration::from_millis(PROXY_DIAL_MS_MAX), connect(&*dialer, &self.server, self.window));
        let (error, rest_ms) = match connected.await {
            Ok(Ok(sender)) => {
                self.report_reached();
                return self.ended(State::Open(sender));
            }
            Ok(Err(error)) => (error.to_string(), PROXY_REST_MS),
            Err(_) => ("the connection took too long".to_owned(), PROXY_TIMED_OUT_REST_MS),
        };
        let why = format!("server {} at {}: {error}", self.server.number, self.server.address);
        self.report_unreached(&why);
        self.ended(State::Failed { why, until: Instant::now() + Duration::from_millis(rest_ms) });
    }

    /// Warns once of a server that cannot be reached, until it was reached again.
    fn report_unreached(&self, why: &str) {
        if self.is_reported.swap(true, Ordering::Relaxed) {
            tracing::debug!("failed to connect for calls again: {why}");
        } else {
            tracing::warn!("failed to connect for calls, and goes on trying: {why}");
        }
    }

    fn report_reached(&self) {
        if self.is_reported.swap(false, Ordering::Relaxed) {
            tracing::info!(server = self.server.number, "calls can be passed on to this server again");
        }
    }

    fn ended(&self, state: State) {
        *self.state.lock() = state;
        self.dialled.notify_waiters();
    }
}

impl Links {
    /// Connections each of which may carry this many calls.
    pub(super) fn new(dialer: Arc<dyn ServerDialer>, calls: usize) -> Self {
        let calls = u32::try_from(calls.min(PROXIED_CALLS_MAX)).unwrap_or(u32::MAX);
        let window = calls.saturating_mul(PROXIED_STREAM_WINDOW_BYTES);
        Self { dialer, window, known: Mutex::default() }
    }

    /// The connection to a server, which is dialled if there is none. Waits for a dial for this long; the dial goes on for
    /// later calls.
    ///
    /// # Errors
    /// As [`Unreachable`] says.
    pub(super) async fn line(
        &self,
        server: &RouteServer,
        wait: Duration,
    ) -> Result<SendRequest<Body>, Unreachable> {
        let link = self.link(server);
        let sender = timeout(wait, link.sender(&self.dialer)).await;
        let late = |_| Unreachable(format!("server {} is still dialled", server.number));
        sender.map_err(late)?
    }

    /// Asks a server. Waits for the dial as calls do.
    ///
    /// # Errors
    /// It cannot be reached, was removed from the cluster, or gives no answer of that size in time; one line says why.
    pub(super) async fn get(&self, server: &RouteServer, question: Question) -> Result<Bytes, String> {
        let answer = timeout(question.wait, self.answer(server, question)).await;
        answer.unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }

    async fn answer(&self, server: &RouteServer, question: Question) -> Result<Bytes, String> {
        let Question { path, wait: _, bytes_max } = question;
        let dial = Duration::from_millis(PROXY_DIAL_MS_MAX);
        let request = Request::builder().method(Method::GET).uri(uri(server, path)).body(Body::empty());
        self.exchange(server, request.map_err(|error| error.to_string())?, dial, bytes_max).await
    }

    /// Sends a question to a server, whose dial is waited for this long, and returns its answer of at most `bytes_max`.
    ///
    /// # Errors
    /// It cannot be reached, was removed from the cluster, or refuses the question; one line says why.
    pub(super) async fn exchange(
        &self,
        server: &RouteServer,
        request: Request<Body>,
        dial: Duration,
        bytes_max: usize,
    ) -> Result<Bytes, String> {
        let mut sender = self.line(server, dial).await.map_err(|Unreachable(why)| why)?;
        let response =
            sender.try_send_request(request).await.map_err(|error| error.into_error().to_string())?;
        let status = response.status();
        let body = Limited::new(response.into_body(), bytes_max).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        match status {
            status if status.is_success() => Ok(body),
            REMOVED => Err("it was removed from the cluster".to_owned()),
            status if body.is_empty() => Err(format!("it answered {status}")),
            status => Err(format!("it answered {status}: {}", String::from_utf8_lossy(&body))),
        }
    }

    /// Ends the connections to all other servers as soon as their calls are answered.
    pub(super) fn keep(&self, is_kept: impl Fn(u64) -> bool) {
        self.known.lock().retain(|number, _| is_kept(*number));
    }

    fn link(&self, server: &RouteServer) -> Arc<Link> {
        let mut known = self.known.lock();
        if let Some(link) = known.get(&server.number).filter(|link| link.server == *server) {
            return Arc::clone(link);
        }
        let link = Arc::new(Link {
            server: server.clone(),
            window: self.window,
            state: Mutex::new(State::New),
            dialled: Notify::new(),
            is_reported: AtomicBool::new(false),
        });
        known.insert(server.number, Arc::clone(&link));
        link
    }
}

/// Where a server answers a question.
pub(super) fn uri(server: &RouteServer, path: &str) -> String {
    format!("https://server-{}{path}", server.number)
}

async fn connect(
    dialer: &dyn ServerDialer,
    server: &RouteServer,
    window: u32,
) -> io::Result<SendRequest<Body>> {
    let io = dialer.dial(server.number, &server.address).await?;
    let handshake = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(PROXIED_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(window)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PROXY_DIAL_WAIT_MS;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A server that never answers the first dials, and refuses the others.
    struct Silent {
        silent: usize,
        dials: AtomicUsize,
    }

    #[tonic::async_trait]
    impl ServerDialer for Silent {
        async fn dial(&self, _: u64, _: &str) -> io::Result<Box<dyn CallIo>> {
            if self.dials.fetch_add(1, Ordering::SeqCst) < self.silent {
                std::future::pending::<()>().await;
            }
            Err(io::ErrorKind::ConnectionRefused.into())
        }
    }

    fn links(silent: usize) -> (Links, Arc<Silent>, RouteServer) {
        let dialer = Arc::new(Silent { silent, dials: AtomicUsize::default() });
        let links = Links::new(Arc::clone(&dialer) as Arc<dyn ServerDialer>, 64);
        (links, dialer, RouteServer { number: 1, address: "node-1:7401".to_owned() })
    }

    /// Why a call got no connection, and how long it waited, milliseconds.
    async fn refused(links: &Links, server: &RouteServer, wait: Duration) -> (String, u128) {
        let began = Instant::now();
        let Err(Unreachable(why)) = links.line(server, wait).await else { panic!("no connection") };
        (why, began.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_for_a_dial_as_long_as_they_can_and_one_that_timed_out_rests() {
        let (links, dialer, server) = links(1);
        let dials = || dialer.dials.load(Ordering::SeqCst);
        let (short, long) = (Duration::from_millis(PROXY_DIAL_WAIT_MS), Duration::from_secs(60));
        let began = Instant::now();
        for _ in 0..2 {
            let (why, waited) = refused(&links, &server, short).await;
            assert!(why.contains("still dialled"), "{why}");
            assert!(waited <= u128::from(PROXY_DIAL_WAIT_MS) + 1, "{waited}");
        }
        let (why, _) = refused(&links, &server, long).await;
        assert!(why.contains("took too long") && dials() == 1, "{why}");
        assert!(began.elapsed() >= Duration::from_millis(PROXY_DIAL_MS_MAX));
        tokio::time::advance(Duration::from_millis(PROXY_TIMED_OUT_REST_MS - 10)).await;
        let (_, waited) = refused(&links, &server, long).await;
        assert_eq!((waited, dials()), (0, 1), "it rests");
        tokio::time::advance(Duration::from_millis(20)).await;
        let (why, _) = refused(&links, &server, long).await;
        assert!(why.contains("refused") && dials() == 2, "{why}");
        refused(&links, &server, long).await;
        assert_eq!(dials(), 2, "it was refused a moment ago");
        tokio::time::advance(Duration::from_millis(PROXY_REST_MS)).await;
        refused(&links, &server, long).await;
        assert_eq!(dials(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_cannot_be_reached_is_reported_once() {
        let (links, dialer, server) = links(0);
        let link = links.link(&server);
        assert!(!link.is_reported.load(Ordering::SeqCst));
        for dials in 1..=3 {
            refused(&links, &server, Duration::from_secs(60)).await;
            assert_eq!(dialer.dials.load(Ordering::SeqCst), dials);
            assert!(link.is_reported.load(Ordering::SeqCst));
            tokio::time::advance(Duration::from_millis(PROXY_REST_MS)).await;
        }
        link.report_reached();
        assert!(!link.is_reported.load(Ordering::SeqCst), "the next failure is reported again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_ends_early_ends_no_dial() {
        let (links, dialer, server) = links(1);
        drop(links.line(&server, Duration::ZERO).await);
        let (why, _) = refused(&links, &server, Duration::from_secs(60)).await;
        assert!(why.contains("took too long"), "{why}");
        assert_eq!(dialer.dials.load(Ordering::SeqCst), 1);
        links.keep(|number| number != 1);
        assert!(links.known.lock().is_empty());
    }
}
