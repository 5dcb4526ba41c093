//! One port, three ways in: the same calls by gRPC, gRPC-Web and JSON against a fake session service, and what happens
//! to requests that are not calls.

mod fake;
mod malformed;
mod port;
mod same;

use std::net::SocketAddr;
use std::sync::Arc;

use switchward_api::v1::session_service_server::SessionServiceServer;
use switchward_gateway::one_port::{OneService, one_port};
use switchward_gateway::routes::{Health, Services};
use switchward_gateway::serve::serve;
use switchward_gateway::{Admission, ConnectionLimits};
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

/// A server on a free port of this host.
struct Server {
    address: SocketAddr,
    health: Health,
    stuck: Arc<Notify>,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
}

impl Server {
    async fn start() -> Self {
        Self::limited(ConnectionLimits::default()).await
    }

    /// A server with these limits on connections.
    async fn limited(limits: ConnectionLimits) -> Self {
        let (services, health) = Services::new().await;
        let sessions = fake::Sessions::default();
        let stuck = Arc::clone(&sessions.stuck);
        let services = OneService::of(services.with(SessionServiceServer::new(sessions)));
        let app = one_port(services, health.pages(), Vec::new(), &Admission::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { stopped.await.unwrap_or_default() };
        let done = tokio::spawn(serve(listener, None, app, limits, stopped));
        Self { address, health, stuck, stop, done }
    }
}
