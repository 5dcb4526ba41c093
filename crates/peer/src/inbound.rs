//! The listener, and the connections that other servers have dialled.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::calls::CallStream;
use crate::counts::{Counted, Counts};
use crate::dialer::report_end;
use crate::endpoint::Core;
use crate::frame::Op;
use crate::handshake::{Connection, Received, receive};
use crate::hello::Purpose;
use crate::limits::{ACCEPT_RETRY, CALL_CONNECTIONS_MAX, STREAM_PIECE_BYTES_MAX};
use crate::name::PeerName;
use crate::request::{Request, Traffic};
use crate::serve::serve;
use crate::stream::PeerStream;
use crate::wire::WireError;

/// Accepts connections until the transport is closed.
pub(crate) async fn accept(core: Arc<Core>, listener: TcpListener) {
    let all = Arc::new(Semaphore::new(core.limits.inbound_connections));
    let handshakes = Arc::new(Semaphore::new(core.limits.handshakes));
    let (addresses, calls) = (Counts::default(), CallCounts::default());
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
        let Some(address) = addresses.take(from.ip().to_canonical(), core.limits.handshakes_per_address)
        else {
            core.report_inbound(from, "there are too many connections from this address");
            continue;
        };
        let permits = Permits { connection, handshake, address, calls: calls.clone() };
        core.runtime.spawn(one(Arc::clone(&core), tcp, from, permits));
    }
}

/// What a connection holds: one of all connections, and one of the handshakes until its own is over. One that is refused
/// counts for its address until it ends.
struct Permits {
    connection: OwnedSemaphorePermit,
    handshake: OwnedSemaphorePermit,
    address: Counted<IpAddr>,
    calls: CallCounts,
}

/// Connections for calls, which are counted apart: they must not take those of other servers.
#[derive(Clone)]
struct CallCounts {
    all: Arc<Semaphore>,
    of_peer: Counts<PeerName>,
}

impl Default for CallCounts {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(CALL_CONNECTIONS_MAX)), of_peer: Counts::default() }
    }
}

/// Serves one connection until it ends or the transport is closed.
async fn one(core: Arc<Core>, tcp: TcpStream, from: SocketAddr, permits: Permits) {
    let wait = core.limits.handshake;
    let shaken = tokio::select! {
        shaken = timeout(wait, receive(&core, tcp, permits.handshake)) => {
            shaken.unwrap_or_else(|_| Err(format!("the handshake took longer than {} ms", wait.as_millis())))
        }
        () = core.closed() => return,
    };
    drop(permits.address);
    match shaken {
        Ok(Received::Peer(connection, purpose)) => {
            serve_peer(core, connection, purpose, permits.connection).await;
        }
        Ok(Received::Calls(caller, stream)) => {
            drop(permits.connection);
            serve_calls(&core, caller, *stream, from, &permits.calls).await;
        }
        Err(why) => core.report_inbound(from, &why),
    }
}

/// Serves a connection of another server, on the runtime of its traffic.
async fn serve_peer(core: Arc<Core>, connection: Connection, purpose: Purpose, permit: OwnedSemaphorePermit) {
    match purpose {
        Purpose::Requests(traffic @ Traffic::Commands) => {
            let (server, runtime) = (connection.server, core.runtime_of(traffic).clone());
            match connection.on(&runtime) {
                Ok(connection) => drop(runtime.spawn(serve_to_end(core, connection, purpose, permit))),
                Err(error) => report_end(server, purpose, &error),
            }
        }
        Purpose::Requests(Traffic::Control | Traffic::Bulk) | Purpose::Stream => {
            serve_to_end(core, connection, purpose, permit).await;
        }
    }
}

/// Serves a connection of another server until it ends or the transport is closed.
async fn serve_to_end(
    core: Arc<Core>,
    connection: Connection,
    purpose: Purpose,
    permit: OwnedSemaphorePermit,
) {
    let (server, cell) = (connection.server, Arc::clone(&connection.cell));
    let error = tokio::select! {
        error = serve_purpose(&core, connection, purpose, permit) => error,
        () = core.closed() => return,
        () = cell.ended() => return,
    };
    if let Some(error) = error {
        report_end(server, purpose, &error);
    }
}

/// Serves a connection for calls until it ends, its caller is removed or the transport is closed.
async fn serve_calls(
    core: &Core,
    caller: PeerName,
    stream: CallStream,
    from: SocketAddr,
    counts: &CallCounts,
) {
    let of_peer = counts.of_peer.take(caller.clone(), core.limits.call_connections_per_peer);
    let (Ok(_permit), Some(_counted)) = (counts.all.try_acquire(), of_peer) else {
        return core.report_inbound(from, &format!("there are too many connections for calls of {caller}"));
    };
    let name = caller.clone();
    tokio::select! {
        // One that was removed is not served at all.
        biased;
        () = core.removed(&name) => {}
        () = core.closed() => {}
        () = core.handler.calls(caller, stream) => {}
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
