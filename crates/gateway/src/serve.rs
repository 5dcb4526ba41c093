//! The transport: connections accepted on one listener, HTTP/1.1 and HTTP/2 distinguished by their first bytes, with or
//! without TLS, and drained at the end.

use axum::body::Body;
use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::{body::Incoming, service::Service};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use tokio_rustls::TlsAcceptor;

use crate::around::Answer;
use crate::connections::{Connection, ConnectionLimits, ConnectionPermit, Connections, Open};
use crate::heads::Heads;
use crate::limits::{
    CONNECTION_WINDOW_BYTES, DRAIN_MS_MAX, HANDSHAKE_MS_MAX, HTTP1_HEADERS_MAX, KEEPALIVE_INTERVAL_MS,
    KEEPALIVE_TIMEOUT_MS, STREAM_WINDOW_BYTES, STREAMS_MAX, TRANSPORT_HEADERS_BYTES_MAX,
};
use crate::port::Port;
use crate::proxy::{ClientAddress, strip_internal};

/// How long to wait after a failed accept: the usual cause is that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `app` on `listener` until `stop` is done; then no connection is accepted any more, open calls have
/// [`DRAIN_MS_MAX`] to finish, and what is left is cut off.
///
/// `tls` must offer `h2` and `http/1.1` by ALPN.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: Port,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let (stopping, stopped) = watch::channel(false);
    let limiter = Connections::new(limits);
    let connections = accept_until(&listener, tls, &app, &limiter, &stopped, stop).await;
    drop(listener);
    stopping.send_replace(true);
    drain(connections).await;
}

async fn accept_until(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    app: &Port,
    limiter: &Connections,
    stopped: &watch::Receiver<bool>,
    stop: impl Future<Output = ()>,
) -> JoinSet<()> {
    let mut stop = std::pin::pin!(stop);
    let mut connections = JoinSet::new();
    loop {
        // Each branch may be dropped and restarted: no connection is lost between accepting it and spawning.
        let accepted = tokio::select! {
            () = &mut stop => return connections,
            Some(_) = connections.join_next() => continue,
            accepted = accept(listener, limiter) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let client = ClientAddress(permit.address.to_canonical());
        let app = Tracked { app: app.clone(), connection: Arc::clone(&permit.connection), client };
        let (tls, stopped) = (tls.clone(), stopped.clone());
        connections.spawn(async move {
            let overdue = Arc::clone(&permit.connection);
            tokio::select! {
                () = connection(stream, tls, app, stopped) => {}
                () = rarely(overdue.is_overdue()) => tracing::debug!("closed a connection without requests"),
            }
            drop(permit);
        });
    }
}

async fn accept(listener: &TcpListener, limiter: &Connections) -> Option<(TcpStream, ConnectionPermit)> {
    match listener.accept().await {
        Ok((stream, peer)) => match limiter.admit(peer.ip()) {
            Some(permit) => Some((stream, permit)),
            None => {
                tracing::debug!(%peer, "refused a connection: there are too many, and all have credentials");
                None
            }
        },
        Err(error) => {
            tracing::warn!(%error, "failed to accept a connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn drain(mut connections: JoinSet<()>) {
    let all_done = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(Duration::from_millis(DRAIN_MS_MAX), all_done).await.is_err() {
        tracing::warn!(open = connections.len(), "closed connections that did not finish in time");
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    app: Tracked,
    stopped: watch::Receiver<bool>,
) {
    // Small replies must not wait for others. A socket that refuses the option can still be served.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "failed to set TCP_NODELAY");
    }
    let Some(acceptor) = tls else { return speak(stream, app, stopped).await };
    let handshake = tokio::time::timeout(Duration::from_millis(HANDSHAKE_MS_MAX), acceptor.accept(stream));
    match handshake.await {
        Ok(Ok(stream)) => speak(stream, app, stopped).await,
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => tracing::debug!("TLS handshake took too long"),
    }
}

/// The service of one connection, which tracks its open requests.
struct Tracked {
    app: Port,
    connection: Arc<Connection>,
    client: ClientAddress,
}

impl Service<Request<Incoming>> for Tracked {
    type Response = Response<Sent>;
    type Error = Infallible;
    type Future = Answering;

    fn call(&self, mut request: Request<Incoming>) -> Answering {
        let open = Arc::new(self.connection.begin());
        request.extensions_mut().insert(Arc::clone(&open));
        request.extensions_mut().insert(self.client);
        // Only other processes of the cluster may send these.
        strip_internal(request.headers_mut());
        Answering { answer: self.app.answer(request), open }
    }
}

/// The answer to come of a request that is open.
struct Answering {
    answer: Answer,
    open: Arc<Open>,
}

impl Future for Answering {
    type Output = Result<Response<Sent>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(response) = ready!(self.answer.as_mut().poll(context));
        Poll::Ready(Ok(response.map(|body| Sent { body, _open: Arc::clone(&self.open) })))
    }
}

/// The answer to a request, which is open until the answer is sent.
pub(crate) fn sent_with(response: Response<Body>, open: Arc<Open>) -> Response<Body> {
    response.map(|body| Body::new(Sent { body, _open: open }))
}

/// The body of an answer, whose request is open until it is sent.
struct Sent {
    body: Body,
    _open: Arc<Open>,
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    // Without it an answer over HTTP/1.1 would have no length.
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves one connection to its end, finishing its open calls when the server stops.
async fn speak<I>(io: I, app: Tracked, mut stopped: watch::Receiver<bool>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let calls = Arc::clone(&app.connection);
    let builder = http();
    let connection = builder.serve_connection(TokioIo::new(Heads::new(io)), app);
    let mut connection = std::pin::pin!(connection);
    // Either the server stops or the sender is gone, which is the same.
    let stop = async { stopped.wait_for(|stopped| *stopped).await.is_ok() };
    // The branch only borrows the connection, which goes on below if the other branch finished first.
    let ended = tokio::select! {
        ended = after_ready_tasks(connection.as_mut(), &calls) => ended,
        _ = rarely(stop) => {
            connection.as_mut().graceful_shutdown();
            after_ready_tasks(connection, &calls).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended with an error");
    }
}

/// Polls a connection; while it has open calls, each time after the tasks that are ready. The task of a call that is
/// answered wakes the one of its connection, which would run next and write that answer alone. Now it writes the
/// answers of all calls that are ready.
async fn after_ready_tasks<C: Future + Unpin>(mut connection: C, calls: &Connection) -> C::Output {
    let mut has_waited = false;
    poll_fn(|context| {
        if !has_waited && calls.has_open() {
            has_waited = true;
            // Woken while it runs, a task is put behind those that are ready. Another thread may take it over, so that
            // it does not wait for one of them that takes long.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        has_waited = false;
        Pin::new(&mut connection).poll(context)
    })
    .await
}

/// Waits for something rare beside a connection. It is polled only after it was woken: otherwise it would be polled whenever
/// the connection has something to read or write, and take the locks of channels and timers each time.
pub(crate) async fn rarely<F: Future>(rare: F) -> F::Output {
    let mut woken: FuturesUnordered<F> = [rare].into_iter().collect();
    woken.next().await.expect("there is one future in it")
}

fn http() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    let headers_max = usize::try_from(TRANSPORT_HEADERS_BYTES_MAX).unwrap_or(usize::MAX);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(HANDSHAKE_MS_MAX))
        .max_headers(HTTP1_HEADERS_MAX)
        .max_buf_size(headers_max);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_millis(KEEPALIVE_INTERVAL_MS))
        .keep_alive_timeout(Duration::from_millis(KEEPALIVE_TIMEOUT_MS))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(TRANSPORT_HEADERS_BYTES_MAX);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::service::service_fn;
    use std::cell::Cell;
    use std::io;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{DuplexStream, ReadBuf, duplex};
    use tokio::sync::oneshot;

    /// Calls that are open at one time.
    const CALLS: usize = 10;

    /// A connection that counts its writes.
    struct Counted {
        io: DuplexStream,
        writes: Arc<AtomicUsize>,
    }

    impl AsyncRead for Counted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.io).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.io).poll_shutdown(context)
        }

        fn is_write_vectored(&self) -> bool {
            true
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut self.io).poll_write_vectored(context, bytes)
        }
    }

    /// Serves one connection. Each call is counted in `begun`, and gets a short answer once `answers` is true.
    async fn serve_short_answers(io: Counted, answers: watch::Receiver<bool>, begun: Arc<AtomicUsize>) {
        let answer = service_fn(move |_: Request<Incoming>| {
            begun.fetch_add(1, Ordering::Relaxed);
            let mut answers = answers.clone();
            async move {
                answers.wait_for(|answers| *answers).await.expect("the test goes on");
                Ok::<_, Infallible>(Response::new(Body::from(vec![0_u8; 900])))
            }
        });
        let builder = http();
        builder.serve_connection(TokioIo::new(Heads::new(io)), answer).await.expect("the client ends it");
    }

    #[tokio::test]
    async fn short_answers_that_are_ready_go_out_in_one_write() {
        let (near, far) = duplex(64 * 1024);
        let (writes, begun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (answer, answers) = watch::channel(false);
        let io = Counted { io: far, writes: Arc::clone(&writes) };
        tokio::spawn(serve_short_answers(io, answers, Arc::clone(&begun)));
        let (mut client, connection) = h2::client::handshake(near).await.expect("it speaks HTTP/2");
        tokio::spawn(async move { connection.await.expect("the client ends it") });
        let mut calls = Vec::new();
        for _ in 0..CALLS {
            client = client.ready().await.expect("it takes more calls");
            let request = Request::get("http://a.example/").body(()).expect("a request");
            calls.push(client.send_request(request, true).expect("it is sent").0);
        }
        while begun.load(Ordering::Relaxed) < CALLS {
            tokio::task::yield_now().await;
        }
        let before = writes.load(Ordering::Relaxed);
        answer.send_replace(true);
        for call in calls {
            let mut body = call.await.expect("it is answered").into_body();
            while let Some(data) = body.data().await {
                data.expect("the body is whole");
            }
        }
        assert_eq!(writes.load(Ordering::Relaxed) - before, 1);
    }

    #[tokio::test]
    async fn a_connection_with_open_calls_is_polled_after_the_tasks_that_are_ready() {
        let connection = Arc::new(Connection::default());
        assert_eq!(ready_before_it(&connection).await, 0);
        let _open = connection.begin();
        assert_eq!(ready_before_it(&connection).await, 2);
    }

    /// The number of ready tasks, of two, that run before a connection is polled, which was ready before them.
    async fn ready_before_it(connection: &Arc<Connection>) -> usize {
        let finished = Arc::new(AtomicUsize::new(0));
        let (calls, seen) = (Arc::clone(connection), Arc::clone(&finished));
        let polled = tokio::spawn(async move {
            let connection = pin!(async { seen.load(Ordering::Relaxed) });
            after_ready_tasks(connection, &calls).await
        });
        for _ in 0..2 {
            let finished = Arc::clone(&finished);
            tokio::spawn(async move { finished.fetch_add(1, Ordering::Relaxed) });
        }
        polled.await.expect("it does not panic")
    }

    #[tokio::test]
    async fn what_is_rare_is_polled_only_after_it_was_woken() {
        let polls = Cell::new(0);
        let (send, mut sent) = oneshot::channel();
        let mut rare = pin!(rarely(poll_fn(|context| {
            polls.set(polls.get() + 1);
            Pin::new(&mut sent).poll(context)
        })));
        for _ in 0..3 {
            assert!(futures::poll!(rare.as_mut()).is_pending());
        }
        assert_eq!(polls.get(), 1);
        send.send(()).expect("it is waited for");
        rare.await.expect("it was sent");
        assert_eq!(polls.get(), 2);
    }
}
