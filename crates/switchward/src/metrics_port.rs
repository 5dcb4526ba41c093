//! The port of metrics and health. A thread with a runtime of its own serves it, so that it also answers while the runtime
//! of the public port is busy.

use anyhow::Context as _;
use axum::Router;
use std::pin::pin;
use std::thread::JoinHandle;
use std::time::Duration;
use switchward_gateway::{ConnectionLimits, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Connections of this port at one time.
const CONNECTIONS_MAX: usize = 64;
/// How long open requests may go on at the end. The calls of the public port have had their time before, and the process must
/// end within 20 seconds.
const END_MAX: Duration = Duration::from_secs(1);

/// The thread that serves the port; `None` if there is no such port.
pub(crate) struct MetricsPort(Option<JoinHandle<anyhow::Result<()>>>);

impl MetricsPort {
    /// Serves pages until the sender of `ended` is dropped.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn start(
        listener: Option<TcpListener>,
        pages: Router,
        ended: oneshot::Receiver<()>,
    ) -> anyhow::Result<Self> {
        let Some(listener) = listener else { return Ok(Self(None)) };
        // A listener belongs to the runtime that it was made in.
        let listener =
            listener.into_std().context("metrics.listen: failed to move the listener to its thread")?;
        let thread = std::thread::Builder::new().name("metrics".to_owned());
        let thread = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener)?;
                let (stopping, stop) = oneshot::channel::<()>();
                let stop = async move {
                    // The sender sends nothing: it is dropped.
                    let _dropped = stop.await;
                };
                let limits = ConnectionLimits {
                    all: CONNECTIONS_MAX,
                    of_peer: CONNECTIONS_MAX,
                    ..ConnectionLimits::default()
                };
                let mut serving = pin!(serve::serve(listener, None, pages.into(), limits, stop));
                tokio::select! {
                    () = &mut serving => return Ok(()),
                    _ = ended => drop(stopping),
                }
                if timeout(END_MAX, serving).await.is_err() {
                    tracing::debug!("closed connections for metrics and health that did not finish in time");
                }
                Ok(())
            })
        });
        Ok(Self(Some(thread.context("failed to start the thread of metrics and health")?)))
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// It has panicked, or it had no runtime.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let Some(thread) = self.0 else { return Ok(()) };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
        joined.map_err(|_| anyhow::anyhow!("the thread of metrics and health has panicked"))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;
    use switchward_gateway::limits::DRAIN_MS_MAX;
    use switchward_gateway::routes::Services;

    /// The runtime of this test has one thread, which waits for the answer and serves nothing meanwhile.
    #[tokio::test]
    async fn health_is_answered_while_the_runtime_of_the_public_port_is_busy() {
        let (_services, health) = Services::new().await;
        health.set_ready().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (ending, ended) = oneshot::channel();
        let port = MetricsPort::start(Some(listener), health.pages(), ended).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ready\n"), "{answer}");
        drop(ending);
        port.end().await.unwrap();
    }

    #[tokio::test]
    async fn a_request_that_does_not_end_does_not_hold_up_the_end_of_the_process() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begins, begun) = std::sync::mpsc::channel();
        let hangs = move || {
            let begins = begins.clone();
            async move {
                begins.send(()).unwrap();
                std::future::pending::<&'static str>().await
            }
        };
        let (ending, ended) = oneshot::channel();
        let pages = Router::new().route("/hangs", get(hangs));
        let port = MetricsPort::start(Some(listener), pages, ended).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /hangs HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        begun.recv_timeout(Duration::from_secs(60)).unwrap();
        let before = Instant::now();
        drop(ending);
        port.end().await.unwrap();
        let took = before.elapsed();
        assert!(took < Duration::from_millis(DRAIN_MS_MAX), "it took {took:?}");
    }
}
