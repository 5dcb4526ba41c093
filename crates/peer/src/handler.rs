//! What answers the requests of other servers.

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;

use crate::calls::CallStream;
use crate::hello::Hello;
use crate::name::PeerName;
use crate::request::Request;
use crate::stream::PeerStream;

/// Answers the requests of other servers. All methods are called by many connections at once.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Answers a request of the server `from`. The future is dropped if the caller gives up or the connection ends. If
    /// it panics, the caller gets [`PeerError::Unknown`](crate::PeerError::Unknown).
    ///
    /// # Errors
    ///
    /// The request is refused, and nothing was done: the caller gets
    /// [`PeerError::Refused`](crate::PeerError::Refused) with this text, cut to
    /// [`REASON_BYTES_MAX`](crate::limits::REASON_BYTES_MAX).
    async fn call(&self, from: u64, request: Request) -> Result<Bytes, String>;

    /// The runtime on which [`call`](Self::call) answers requests of this kind, where the tasks are that it waits for. By
    /// default, the one on which connections run. Must not block.
    fn runtime(&self, kind: u8) -> Option<&Handle> {
        let _unused = kind;
        None
    }

    /// Serves a stream that the server `from` has opened with this request. The future is dropped when
    /// [`Peers::close`](crate::Peers::close) is called; if the connection ends, only the stream's methods return errors.
    async fn stream(&self, from: u64, request: Request, stream: PeerStream);

    /// Decides whether a server may be a peer, after the transport's own checks of its [`Hello`]. Called once for each
    /// connection of either direction, before any request; the connection waits for the answer. It must not block its
    /// thread. What the answer depends on must be stored durably first. The future is dropped if the handshake takes too
    /// long.
    ///
    /// # Errors
    ///
    /// The connection is refused with this text; both servers log it.
    async fn admit(&self, peer: &Hello) -> Result<(), String>;

    /// Called when a server that is to be reached no longer can be: its connection has ended, and the first attempt to make
    /// it again has failed. Called again only after it was reached. Must not block.
    fn lost(&self, server: u64) {
        let _unused = server;
    }

    /// Decides whether a process may connect for calls of clients or for reports; its certificate is valid. By default,
    /// nobody may. Must not block.
    ///
    /// # Errors
    ///
    /// The connection is closed, and this text is logged.
    fn admit_calls(&self, from: &PeerName) -> Result<(), String> {
        Err(format!("{from} may not pass on calls to this server"))
    }

    /// Serves calls of clients that `from` passes on, over HTTP/2; of a delivery process its questions and reports, and no
    /// calls. The future is dropped when [`Peers::close`](crate::Peers::close) is called.
    async fn calls(&self, from: PeerName, stream: CallStream) {
        drop((from, stream));
    }
}
