//! The transport between servers, as the shards use it.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use switchward_gateway::proxy::{CallIo, CallServer, ServerDialer};
use switchward_gateway::{
    Api,
    mail::{QUARANTINE_QUESTION, serve_quarantine},
};
use switchward_peer::limits::IDLE_MAX;
use switchward_peer::{
    CallDialer, CallStream, Contact, Handler, Hello, PeerError as Failed, PeerName, Peers, Request, Traffic,
};
use switchward_shard::{
    ClockOffset, Cluster, MemberHandler, Peer, PeerConnection, PeerError, PeerRequest, PeerStream, Transport,
};
use switchward_state::catalogue::{Server, ServerState};
use switchward_store::{DataDir, Id};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Carries the messages of the shards over the connections between servers.
pub(crate) struct ToPeers {
    peers: Peers,
    /// The servers that the cluster has named, by their numbers.
    known: Mutex<BTreeMap<u64, String>>,
    /// The servers whose addresses stay as they were configured; those of a development cluster.
    fixed: BTreeSet<u64>,
}

impl ToPeers {
    /// Over these connections. The addresses of `fixed` servers are not changed when the cluster names others.
    pub(crate) fn over(peers: Peers, fixed: BTreeSet<u64>) -> Self {
        Self { peers, known: Mutex::default(), fixed }
    }
}

/// Answers the messages of other servers.
pub(crate) struct FromPeers {
    /// What answers them.
    pub(crate) handler: Arc<MemberHandler>,
    /// What remembers which folder each server has.
    pub(crate) data: DataDir,
    /// What answers about the quarantine, once the server is open.
    pub(crate) api: Arc<OnceLock<Api>>,
    /// What knows which servers were removed, once the server is open.
    pub(crate) cluster: Arc<OnceLock<Cluster>>,
    /// What answers calls of clients that others pass on, once the server is open.
    pub(crate) calls: Arc<OnceLock<CallServer>>,
}

/// Dials servers for calls of clients.
pub(crate) struct ToServers(pub(crate) CallDialer);

#[async_trait]
impl ServerDialer for ToServers {
    async fn dial(&self, server: u64, address: &str) -> io::Result<Box<dyn CallIo>> {
        Ok(Box::new(self.0.dial(server, address).await.map_err(io::Error::other)?))
    }
}

/// How far a server's clock is ahead; `None` if that is not known, or nothing came from the server lately.
fn offset(server: u64, contact: &Contact, now: Instant) -> Option<ClockOffset> {
    let is_reached = now.saturating_duration_since(contact.seen) <= IDLE_MAX;
    contact.clock_offset_ms.filter(|_| is_reached).map(|ms| ClockOffset { server, ms })
}

/// One of the transport's streams.
struct Stream(switchward_peer::PeerStream);

fn failed(error: Failed) -> PeerError {
    match error {
        Failed::NotSent(why) => PeerError::NotSent(why),
        Failed::Unknown(why) => PeerError::Unknown(why),
        Failed::Refused(why) => PeerError::Refused(why),
        Failed::TimedOut => PeerError::TimedOut,
    }
}

fn request(request: PeerRequest) -> Request {
    Request { kind: request.kind, group: request.group, body: request.body }
}

fn received(request: Request) -> PeerRequest {
    PeerRequest { kind: request.kind, group: request.group, body: request.body }
}

#[async_trait]
impl Transport for ToPeers {
    async fn call(
        &self,
        to: u64,
        over: PeerConnection,
        asked: PeerRequest,
        deadline: Duration,
    ) -> Result<Bytes, PeerError> {
        let traffic = match over {
            PeerConnection::Control => Traffic::Control,
            PeerConnection::Bulk => Traffic::Bulk,
        };
        self.peers.call(to, traffic, request(asked), deadline).await.map_err(failed)
    }

    fn know(&self, peers: &[Peer]) {
        let now: BTreeMap<u64, String> =
            peers.iter().map(|peer| (peer.number, peer.address.clone())).collect();
        let mut known = self.known.lock();
        for removed in known.keys().filter(|number| !now.contains_key(number)) {
            self.peers.forget(*removed);
        }
        let changed = now.iter().filter(|(number, address)| known.get(number) != Some(address));
        for (number, address) in changed.filter(|(number, _)| !self.fixed.contains(number)) {
            self.peers.set_address(*number, address.clone());
        }
        *known = now;
    }

    fn clock_offsets(&self) -> Option<Vec<ClockOffset>> {
        // A development cluster is on one machine, and its clocks are moved one after the other.
        if !self.fixed.is_empty() {
            return None;
        }
        let known = self.known.lock();
        let offset = |server: &u64| offset(*server, &self.peers.contact(*server)?, Instant::now());
        Some(known.keys().filter_map(offset).collect())
    }

    async fn stream(&self, to: u64, asked: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        let stream = self.peers.stream(to, request(asked)).await.map_err(failed)?;
        Ok(Arc::new(Stream(stream)))
    }
}

#[async_trait]
impl PeerStream for Stream {
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError> {
        self.0.send(chunk).await.map_err(failed)
    }

    async fn finish(&self) -> Result<(), PeerError> {
        self.0.finish().await.map_err(failed)
    }

    async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
        self.0.recv().await.map_err(failed)
    }
}

#[async_trait]
impl Handler for FromPeers {
    async fn call(&self, from: u64, request: Request) -> Result<Bytes, String> {
        if request.kind == QUARANTINE_QUESTION {
            let api = self.api.get().ok_or("this server is not open yet")?;
            return serve_quarantine(api, &request.body).await.map_err(|error| error.to_string());
        }
        self.handler.call(from, received(request)).await
    }

    async fn stream(&self, from: u64, request: Request, stream: switchward_peer::PeerStream) {
        let kind = request.kind;
        if let Err(why) = self.handler.stream(from, received(request), Arc::new(Stream(stream))).await {
            tracing::debug!(from, kind, why, "refused a stream of another server");
        }
    }

    async fn admit(&self, peer: &Hello) -> Result<(), String> {
        if let Some(cluster) = self.cluster.get() {
            refuse_removed(&cluster.servers().map_err(|error| error.to_string())?, peer.server)?;
        }
        // A synced file: the thread serves other connections meanwhile. Dropped, it is noted all the same, and not admitted.
        let (data, server, folder, boot) = (self.data.clone(), peer.server, Id(peer.folder), peer.boot);
        let noted = spawn_blocking(move || data.note_peer(server, folder, boot));
        noted.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    fn admit_calls(&self, from: &PeerName) -> Result<(), String> {
        let cluster = self.cluster.get().ok_or("this server is not open yet")?;
        match from {
            PeerName::Server(number) => {
                refuse_removed(&cluster.servers().map_err(|error| error.to_string())?, *number)
            }
            PeerName::Gateway(_) => Ok(()),
        }
    }

    async fn calls(&self, from: PeerName, stream: CallStream) {
        let Some(calls) = self.calls.get() else { return };
        tracing::debug!(%from, "a connection for calls");
        calls.serve(stream).await;
    }
}

/// Refuses a server that was removed from the cluster: its certificate is still valid.
fn refuse_removed(servers: &[Server], number: u64) -> Result<(), String> {
    let removed = |server: &Server| server.number == number && server.state == ServerState::Removed;
    if servers.iter().any(removed) {
        return Err(format!("server {number} was removed from the cluster"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};
    use switchward_machine::Time;
    use tokio::runtime::Builder;

    #[test]
    fn a_removed_server_is_refused_and_one_that_is_not_known_yet_is_not() {
        let server = |number, state| Server {
            number,
            folder: [3; 16],
            address: "node:7401".into(),
            state,
            level: 1,
            joined: Time(1),
            replaced_by: None,
        };
        let servers = [
            server(1, ServerState::Active),
            server(2, ServerState::Draining),
            server(3, ServerState::Removed),
        ];
        for admitted in [1, 2, 4] {
            assert_eq!(refuse_removed(&servers, admitted), Ok(()));
        }
        assert_eq!(refuse_removed(&servers, 3).unwrap_err(), "server 3 was removed from the cluster");
    }

    #[test]
    fn a_clock_counts_only_if_it_was_measured_and_its_server_has_sent_something_lately() {
        let seen = Instant::now();
        let hello = Hello {
            cluster: [1; 16],
            server: 2,
            folder: [2; 16],
            boot: 1,
            protocol: 1,
            level: 1,
            keys: [0; 32],
            clock_ms: 0,
        };
        let measured = Contact { seen, clock_offset_ms: Some(-2_500), hello };
        let expected = Some(ClockOffset { server: 2, ms: -2_500 });
        assert_eq!(offset(2, &measured, seen), expected);
        assert_eq!(offset(2, &measured, seen + IDLE_MAX), expected);
        assert_eq!(offset(2, &measured, seen + IDLE_MAX + Duration::from_millis(1)), None);
        let unmeasured = Contact { clock_offset_ms: None, ..measured };
        assert_eq!(offset(2, &unmeasured, seen), None);
    }

    #[test]
    fn a_peer_is_admitted_once_it_is_noted_and_its_thread_does_not_wait_for_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::open(folder.path()).expect("a new data folder");
        let handler = FromPeers {
            handler: Arc::default(),
            data: data.clone(),
            api: Arc::default(),
            cluster: Arc::default(),
            calls: Arc::default(),
        };
        let hello = Hello {
            cluster: [7; 16],
            server: 2,
            folder: [2; 16],
            boot: 1,
            protocol: switchward_peer::PROTOCOL,
            level: 1,
            keys: [0; 32],
            clock_ms: 0,
        };
        let runtime = Builder::new_current_thread().max_blocking_threads(1).build().expect("a runtime");
        runtime.block_on(async {
            // The only thread for work that blocks is busy.
            let (free, busy) = mpsc::channel::<()>();
            let _waiting = spawn_blocking(move || busy.recv());
            let mut admitted = pin!(handler.admit(&hello));
            let first = admitted.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(first.is_pending() && data.peers_seen().is_empty(), "nothing is written on this thread");
            drop(free);
            assert_eq!(admitted.await, Ok(()));
            assert_eq!(data.peers_seen().iter().map(|seen| seen.server).collect::<Vec<_>>(), [2]);
        });
    }
}
