//! The listener, and the connections that other servers have dialled.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::dialer::report_end;
use crate::endpoint::Core;
use crate::frame::Op;
use crate::handshake::{Connection, Received, receive};
use crate::hello::Purpose;
use crate::limits::{ACCEPT_RETRY, CALL_CONNECTIONS_MAX, STREAM_PIECE_BYTES_MAX};
use crate::request::{Request, Traffic};
use crate::serve::serve;
use crate::stream::PeerStream;
use crate::wire::WireError;

/// Accepts connections until the transport is closed.
pub(crate) async fn accept(core: Arc<Core>, listener: TcpListener) {
    let all = Arc::new(Semaphore::new(core.limits.inbound_connections));
    let handshakes = Arc::new(Semaphore::new(core.limits.handshakes));
    let calls = Arc::new(Semaphore::new(CALL_CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = core.closed() => return,
        };
        let (tcp, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if core.reports.is_new("listener", &error.to_string()) {
                    tracing::error!("failed to accept a connection from another server: {error}");
                }
                sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let permits = [&all, &handshakes].map(|permits| Arc::clone(permits).try_acquire_owned().ok());
        let [Some(connection), Some(handshake)] = permits else {
            core.report_inbound(from, "there are too many connections");
            continue;
        };
        let served =
            one(Arc::clone(&core), tcp, from, Permits { connection, handshake, calls: Arc::clone(&calls) });
        core.runtime.spawn(served);
    }
}

/// What a connection holds: one of all connections, and one of the handshakes until its own is over.
struct Permits {
    connection: OwnedSemaphorePermit,
    handshake: OwnedSemaphorePermit,
    /// Connections for calls, which are counted apart: they must not take those of other servers.
    calls: Arc<Semaphore>,
}

/// Serves one connection until it ends or the transport is closed.
async fn one(core: Arc<Core>, tcp: TcpStream, from: SocketAddr, permits: Permits) {
    let wait = core.limits.handshake;
    let shaken = tokio::select! {
        shaken = timeout(wait, receive(&core, tcp)) => {
            shaken.unwrap_or_else(|_| Err(format!("the handshake took longer than {} ms", wait.as_millis())))
        }
        () = core.closed() => return,
    };
    drop(permits.handshake);
    let (connection, purpose) = match shaken {
        Ok(Received::Peer(connection, purpose)) => (connection, purpose),
        Ok(Received::Calls(caller, stream)) => {
            drop(permits.connection);
            let Ok(_permit) = permits.calls.try_acquire() else {
                return core.report_inbound(from, "there are too many connections for calls");
            };
            tokio::select! {
                () = core.handler.calls(caller, *stream) => {}
                () = core.closed() => {}
            }
            return;
        }
        Err(why) => return core.report_inbound(from, &why),
    };
    let (server, cell) = (connection.server, Arc::clone(&connection.cell));
    let error = tokio::select! {
        error = serve_purpose(&core, connection, purpose, permits.connection) => error,
        () = core.closed() => return,
        () = cell.ended() => return,
    };
    if let Some(error) = error {
        report_end(server, purpose, &error);
    }
}

/// Serves a connection. Returns why it ended; `None` for a stream that its handler has served.
async fn serve_purpose(
    core: &Arc<Core>,
    connection: Connection,
    purpose: Purpose,
    permit: OwnedSemaphorePermit,
) -> Option<WireError> {
    match purpose {
        Purpose::Requests(traffic) => Some(serve_requests(core, connection, traffic).await),
        Purpose::Stream => serve_stream(core, connection, permit).await.err(),
    }
}

async fn serve_requests(core: &Core, connection: Connection, traffic: Traffic) -> WireError {
    let replaced = connection.cell.begin_requests(traffic);
    tokio::select! {
        error = serve(core, connection, traffic) => error,
        _ = replaced => WireError::Closed,
    }
}

async fn serve_stream(
    core: &Arc<Core>,
    mut connection: Connection,
    permit: OwnedSemaphorePermit,
) -> Result<(), WireError> {
    connection.reader.max = core.limits.control_body_bytes;
    let opening = timeout(core.limits.handshake, connection.reader.next()).await;
    let frame = opening.map_err(|_| WireError::Idle(core.limits.handshake))??;
    if frame.op != Op::Request {
        return Err(WireError::unexpected(&frame));
    }
    connection.reader.max = STREAM_PIECE_BYTES_MAX;
    let from = connection.server;
    let request = Request { kind: frame.kind, group: frame.group, body: frame.body };
    let stream = PeerStream::begin(core, connection, permit);
    core.handler.stream(from, request, stream).await;
    Ok(())
}
