//! The server's end of calls that are passed on: the same port as for clients, over a connection of the cluster.

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::Failure;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use super::client_address::ClientAddress;
use super::delivery::{self, AnswersDelivery};
use super::facts::Facts;
use super::forward::Maps;
use super::head::{
    CLIENT, CREDENTIAL_PATH, EPOCH, FACTS_PATH, KEYED, MAP_PATH, OTHER_MAP, REMOVED, epochs_named, keyed,
    strip_internal,
};
use super::holder::{self, Holders};
use crate::calls::method_at;
use crate::connections::Connection;
use crate::limits::{
    DELIVERY_QUESTIONS_MAX, DRAIN_MS_MAX, EPOCH_KEPT_MS, KEEPALIVE_TIMEOUT_MS, PROXIED_CALLS_MAX,
    PROXIED_CONNECTION_WINDOW_BYTES, PROXY_PING_MS, STREAM_WINDOW_BYTES, TRANSPORT_HEADERS_BYTES_MAX,
};
use crate::port::Port;
use crate::refusals::refusal;
use crate::serve::{rarely, sent_with};

/// Marks a request that came over a connection of the cluster: it is not passed on once more. Only [`CallServer`] sets it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassedOn;

/// Answers calls that gateways and servers pass on. Cheap to clone.
#[derive(Clone)]
pub struct CallServer(Arc<Inner>);

struct Inner {
    /// The number of this server.
    own: u64,
    app: Port,
    holders: Arc<dyn Holders>,
    maps: Arc<dyn Maps>,
    facts: Arc<dyn Facts>,
    /// The epoch of the map, and when it was read.
    epoch: Mutex<Option<(Instant, HeaderValue)>>,
    /// When it began to stop.
    stopping: watch::Sender<Option<Instant>>,
    /// Connections that are open.
    open: watch::Sender<usize>,
}

/// Counts a connection while it lives.
struct Counted<'o>(&'o watch::Sender<usize>);

impl<'o> Counted<'o> {
    fn new(open: &'o watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

impl CallServer {
    /// Answers for the server of this number with the port that clients call, too, says whose credentials are, and shows these
    /// maps and facts.
    #[must_use]
    pub fn new(
        own: u64,
        app: Port,
        holders: Arc<dyn Holders>,
        maps: Arc<dyn Maps>,
        facts: Arc<dyn Facts>,
    ) -> Self {
        let (stopping, open) = (watch::Sender::new(None), watch::Sender::new(0));
        Self(Arc::new(Inner { own, app, holders, maps, facts, epoch: Mutex::default(), stopping, open }))
    }

    /// Takes no more calls. Those that are open go on.
    pub fn stop(&self) {
        self.0.stopping.send_if_modified(|stopping| {
            let first = stopping.is_none();
            stopping.get_or_insert_with(Instant::now);
            first
        });
    }

    /// Waits until the calls that were open when it began to stop are answered, at most as long as those of clients may go
    /// on.
    pub async fn ended(&self) {
        let began = self.0.stopping.borrow().unwrap_or_else(Instant::now);
        let mut open = self.0.open.subscribe();
        let all = open.wait_for(|open| *open == 0);
        if timeout_at(began + Duration::from_millis(DRAIN_MS_MAX), all).await.is_err() {
            tracing::warn!("closed connections for calls that did not finish in time");
        }
    }

    /// Serves one connection to its end. It must be one that only a process of the cluster can open: what it says about
    /// its clients is believed.
    pub async fn serve<I>(&self, io: I)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let answers = self.clone();
        let answer = move |request| {
            let answers = answers.clone();
            async move { answers.answer(request).await }
        };
        self.speak(io, PROXIED_CALLS_MAX, answer).await;
    }

    /// Serves one connection of a delivery process to its end: it gets the map, the facts, and answers to its questions, and
    /// passes no calls on.
    pub async fn serve_delivery<I>(&self, io: I, delivery: Arc<dyn AnswersDelivery>)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let answers = self.clone();
        let answer = move |request: Request<Incoming>| {
            let (answers, delivery) = (answers.clone(), Arc::clone(&delivery));
            async move {
                if let Some(response) = answers.of_cluster(request.uri().path()).await {
                    return response;
                }
                match answers.other_map(request.uri().path(), request.headers()).await {
                    Some(refused) => refused,
                    None => delivery::answer(delivery.as_ref(), request).await,
                }
            }
        };
        self.speak(io, DELIVERY_QUESTIONS_MAX, answer).await;
    }

    /// Answers the requests of one connection, at most `requests_max` at one time, until it ends; once this process stops,
    /// those that are open.
    async fn speak<I, F, A>(&self, io: I, requests_max: usize, answer: F)
    where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn(Request<Incoming>) -> A + Send + Sync,
        A: Future<Output = Response<Body>> + Send + 'static,
    {
        let _counted = Counted::new(&self.0.open);
        let service = service_fn(|request| {
            let answered = answer(request);
            async move { Ok::<_, Infallible>(answered.await) }
        });
        let connection = http2(requests_max).serve_connection(TokioIo::new(io), service);
        let mut connection = std::pin::pin!(connection);
        let mut stopping = self.0.stopping.subscribe();
        let stop = async { stopping.wait_for(Option::is_some).await.is_ok() };
        // The branch only borrows the connection, which goes on below if the other branch finished first.
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            _ = rarely(stop) => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection for calls ended with an error");
        }
    }

    async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        let client = request.headers().get(CLIENT);
        // What a client sends is never a question of a process of the cluster.
        if client.is_none()
            && let Some(answer) = self.inform(request.uri().path(), request.headers()).await
        {
            return answer;
        }
        let client = client.and_then(ClientAddress::read);
        if let Some(refused) = self.other_map(request.uri().path(), request.headers()).await {
            return refused;
        }
        strip_internal(request.headers_mut());
        // Each call is its own: what one client does takes nothing from the others of its gateway.
        let open = Arc::new(Arc::new(Connection::default()).begin());
        let extensions = request.extensions_mut();
        extensions.insert(PassedOn);
        extensions.insert(Arc::clone(&open));
        if let Some(client) = client {
            extensions.insert(client);
        }
        let Ok(response) = self.0.app.answer(request).await;
        let keyed_by = open.connection.keyed_by();
        let mut response = sent_with(response, open);
        // What a service has set itself says nothing.
        strip_internal(response.headers_mut());
        if let Some(tenant) = keyed_by {
            response.headers_mut().insert(KEYED, keyed(tenant));
        }
        if let Some(epoch) = self.epoch() {
            response.headers_mut().insert(EPOCH, epoch);
        }
        response
    }

    /// The refusal of a request that was routed by another map than this server has; `None` if it may be answered. Nothing
    /// of it was begun.
    async fn other_map(&self, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        let theirs = epochs_named(headers)?;
        let maps = &self.0.maps;
        if maps.epochs().is_none_or(|own| own.overlap(theirs)) {
            return None;
        }
        let epoch = maps.agree(theirs).await.err()?;
        let failure = Failure::OtherMap { epoch };
        let mut response = if method_at(path).is_some() {
            Status::from(refusal(failure)).into_http()
        } else {
            let mut response = Response::new(Body::from(failure.to_string()));
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            response
        };
        response.headers_mut().insert(OTHER_MAP, HeaderValue::from(epoch));
        Some(response)
    }

    /// The answer to a question of a server or a gateway; `None` if the request is a call or a page.
    async fn inform(&self, path: &str, headers: &HeaderMap) -> Option<Response<Body>> {
        if path == CREDENTIAL_PATH {
            let found = self.0.holders.holder(headers).await;
            return Some(Response::new(Body::from(holder::encode(found))));
        }
        self.of_cluster(path).await
    }

    /// What any process of the cluster gets at a path; `None` at all others.
    async fn of_cluster(&self, path: &str) -> Option<Response<Body>> {
        match path {
            MAP_PATH => Some(self.map()),
            FACTS_PATH => Some(Response::new(Body::from(self.0.facts.facts().await.encode()))),
            _ => None,
        }
    }

    /// The map. A server that was removed has none that others may go by: nobody sends it a newer one.
    fn map(&self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        match self.0.maps.map() {
            Some(map) if map.removed.contains(&self.0.own) => *response.status_mut() = REMOVED,
            Some(map) => *response.body_mut() = Body::from(map.encode()),
            None => *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE,
        }
        response
    }

    /// The epoch of the map, read again after a second.
    fn epoch(&self) -> Option<HeaderValue> {
        let mut kept = self.0.epoch.lock();
        if let Some((at, epoch)) = &*kept
            && at.elapsed() < Duration::from_millis(EPOCH_KEPT_MS)
        {
            return Some(epoch.clone());
        }
        let epoch = HeaderValue::from(self.0.maps.map()?.epoch);
        *kept = Some((Instant::now(), epoch.clone()));
        Some(epoch)
    }
}

fn http2(requests_max: usize) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_millis(PROXY_PING_MS))
        .keep_alive_timeout(Duration::from_millis(KEEPALIVE_TIMEOUT_MS))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(PROXIED_CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(u32::try_from(requests_max).unwrap_or(u32::MAX))
        // Calls that many clients of a gateway cancel at one time must not end the connection of all.
        .max_pending_accept_reset_streams(PROXIED_CALLS_MAX)
        .max_local_error_reset_streams(None)
        .max_header_list_size(TRANSPORT_HEADERS_BYTES_MAX);
    builder
}
