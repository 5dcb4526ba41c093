//! The listener beside the port: metrics and health, from a thread and a runtime of its own, so that they answer whatever
//! the port's callers do.

use anyhow::Context as _;
use axum::Router;
use std::thread::JoinHandle;
use switchward_gateway::{ConnectionLimits, serve};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Connections of the listener at one time.
const CONNECTIONS_MAX: usize = 64;

/// The thread; `None` where there is no listener.
pub(crate) struct Beside(Option<JoinHandle<anyhow::Result<()>>>);

impl Beside {
    /// Serves pages until the sender of `ended` is dropped.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(
        listener: Option<TcpListener>,
        pages: Router,
        ended: oneshot::Receiver<()>,
    ) -> anyhow::Result<Self> {
        let Some(listener) = listener else { return Ok(Self(None)) };
        // A listener belongs to the runtime that it was made in.
        let listener = listener.into_std().context("metrics.listen: failed to take the listener along")?;
        let thread = std::thread::Builder::new().name("beside".to_owned());
        let thread = thread.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener)?;
                let stop = async move {
                    // The sender says nothing: it is dropped.
                    let _dropped = ended.await;
                };
                let limits =
                    ConnectionLimits { all: CONNECTIONS_MAX, of_peer: CONNECTIONS_MAX, proxies: Vec::new() };
                serve::serve(listener, None, pages, limits, stop).await;
                Ok(())
            })
        });
        Ok(Self(Some(thread.context("failed to start the thread of metrics and health")?)))
    }

    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// It broke off.
    pub(crate) async fn end(self) -> anyhow::Result<()> {
        let Some(thread) = self.0 else { return Ok(()) };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
        joined.map_err(|_| anyhow::anyhow!("the thread of metrics and health broke off"))?
    }
}
