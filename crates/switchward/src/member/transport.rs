//! The transport between servers, as the shards use it.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use switchward_gateway::proxy::{AnswersDelivery, CallIo, CallServer, ServerDialer};
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
use switchward_state::catalogue::{ClusterMap, Server, ServerState};
use switchward_state::{Level, Levels};
use switchward_store::{DataDir, Id, SeenPeer};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::config::ServerClocks;

/// Carries the messages of the shards over the connections between servers.
pub(crate) struct ToPeers {
    peers: Peers,
    known: Mutex<Known>,
    /// The servers whose addresses stay as they were configured; those of a development cluster.
    fixed: BTreeSet<u64>,
    clocks: ServerClocks,
    removed: Arc<Removed>,
}

/// What is known of the addresses of others.
#[derive(Default)]
struct Known {
    /// The addresses that the cluster has named, by the servers' numbers.
    named: BTreeMap<u64, String>,
    /// The servers that are reached where the configuration says, until the cluster names another address than at first:
    /// what this server's rows say may be older than the configuration.
    configured: BTreeSet<u64>,
}

/// What follows from new names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    /// The servers to forget.
    removed: Vec<u64>,
    /// The servers that are reached elsewhere from now on.
    moved: Vec<(u64, String)>,
}

impl Known {
    /// Takes in the addresses that the cluster names now.
    fn take(&mut self, now: BTreeMap<u64, String>) -> Changes {
        let removed: Vec<u64> =
            self.named.keys().filter(|number| !now.contains_key(number)).copied().collect();
        for number in &removed {
            self.configured.remove(number);
        }
        let mut moved = Vec::new();
        for (number, address) in &now {
            match self.named.get(number) {
                Some(named) if named == address => {}
                None if self.configured.contains(number) => {}
                Some(_) | None => moved.push((*number, address.clone())),
            }
        }
        self.named = now;
        Changes { removed, moved }
    }
}

impl ToPeers {
    /// Over these connections, which have the addresses of the `configured` servers. The addresses of `fixed` servers are
    /// not changed when the cluster names others.
    pub(crate) fn over(
        peers: Peers,
        configured: BTreeSet<u64>,
        fixed: BTreeSet<u64>,
        clocks: ServerClocks,
        removed: Arc<Removed>,
    ) -> Self {
        let known = Known { named: BTreeMap::new(), configured };
        Self { peers, known: Mutex::new(known), fixed, clocks, removed }
    }

    /// Ends the connections with all servers that were removed, and refuses them from now on. Called when the cluster is
    /// known, and after each change of its servers.
    pub(crate) fn refuse_removed(&self) {
        for server in self.removed.read() {
            self.peers.remove(server);
        }
    }
}

/// The servers that were removed from the cluster, whose certificates are still valid.
pub(crate) struct Removed {
    /// What knows them, once the server is open.
    cluster: Arc<OnceLock<Cluster>>,
    known: RwLock<BTreeSet<u64>>,
}

impl Removed {
    /// The removed servers of this cluster.
    pub(crate) fn of(cluster: Arc<OnceLock<Cluster>>) -> Self {
        Self { cluster, known: RwLock::default() }
    }

    /// Reads them again. Returns those that were not known yet.
    fn read(&self) -> Vec<u64> {
        let Some(cluster) = self.cluster.get() else { return Vec::new() };
        match cluster.servers() {
            Ok(servers) => self.add(&servers),
            Err(error) => {
                tracing::warn!(%error, "failed to read the servers of the cluster");
                Vec::new()
            }
        }
    }

    fn add(&self, servers: &[Server]) -> Vec<u64> {
        let removed = servers.iter().filter(|server| server.state == ServerState::Removed);
        let mut known = self.known.write();
        removed.map(|server| server.number).filter(|number| known.insert(*number)).collect()
    }

    /// Refuses a server that is known to be removed.
    fn check(&self, number: u64) -> Result<(), String> {
        if self.known.read().contains(&number) { Err(was_removed(number)) } else { Ok(()) }
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
    /// What is known of those without asking it for each request.
    pub(crate) removed: Arc<Removed>,
    /// What answers calls of clients that others pass on, once the server is open.
    pub(crate) calls: Arc<OnceLock<CallServer>>,
    /// What answers delivery processes, once the server is open.
    pub(crate) delivery: Arc<OnceLock<Arc<dyn AnswersDelivery>>>,
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
        // Held meanwhile, so that of two changes the later one stays.
        let mut known = self.known.lock();
        let Changes { removed, moved } = known.take(now);
        // Rows that are not complete yet name fewer servers. A fixed address would not be named again.
        let is_fixed = |number: &u64| self.fixed.contains(number);
        removed.into_iter().filter(|number| !is_fixed(number)).for_each(|number| self.peers.forget(number));
        for (number, address) in moved.into_iter().filter(|(number, _)| !is_fixed(number)) {
            self.peers.set_address(number, address);
        }
        drop(known);
        self.refuse_removed();
    }

    fn clock_offsets(&self) -> Option<Vec<ClockOffset>> {
        match self.clocks {
            ServerClocks::Compared => {}
            ServerClocks::MovedByHand => return None,
        }
        let known = self.known.lock();
        let offset = |server: &u64| offset(*server, &self.peers.contact(*server)?, Instant::now());
        Some(known.named.keys().filter_map(offset).collect())
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
        self.removed.check(from)?;
        if request.kind == QUARANTINE_QUESTION {
            let api = self.api.get().ok_or("this server is not open yet")?;
            return serve_quarantine(api, &request.body).await.map_err(|error| error.to_string());
        }
        self.handler.call(from, received(request)).await
    }

    async fn stream(&self, from: u64, request: Request, stream: switchward_peer::PeerStream) {
        let kind = request.kind;
        let served = async {
            self.removed.check(from)?;
            self.handler.stream(from, received(request), Arc::new(Stream(stream))).await
        };
        if let Err(why) = served.await {
            tracing::debug!(from, kind, why, "refused a stream of another server");
        }
    }

    async fn admit(&self, peer: &Hello) -> Result<(), String> {
        if let Some(cluster) = self.cluster.get() {
            refuse_removed(&cluster.servers().map_err(|error| error.to_string())?, peer.server)?;
            refuse_level(cluster.map().map_err(|error| error.to_string())?.as_ref(), peer)?;
        }
        // A synced file: the thread serves other connections meanwhile. Dropped, it is noted all the same, and not admitted.
        let data = self.data.clone();
        let seen = SeenPeer {
            server: peer.server,
            folder: Id(peer.folder),
            boot: peer.boot,
            boot_id: Id(peer.boot_id),
        };
        let noted = spawn_blocking(move || data.note_peer(seen));
        noted.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
    }

    fn lost(&self, server: u64) {
        let handler = Arc::clone(&self.handler);
        tokio::spawn(async move { handler.raft().lost(server).await });
    }

    fn admit_calls(&self, from: &PeerName) -> Result<(), String> {
        let cluster = self.cluster.get().ok_or("this server is not open yet")?;
        match from {
            PeerName::Server(number) => {
                refuse_removed(&cluster.servers().map_err(|error| error.to_string())?, *number)
            }
            PeerName::Gateway(_) | PeerName::Delivery(_) => Ok(()),
        }
    }

    async fn calls(&self, from: PeerName, stream: CallStream) {
        let Some(calls) = self.calls.get() else { return };
        tracing::debug!(%from, "a connection for calls");
        match from {
            PeerName::Server(_) | PeerName::Gateway(_) => calls.serve(stream).await,
            PeerName::Delivery(_) => {
                let Some(delivery) = self.delivery.get() else { return };
                calls.serve_delivery(stream, Arc::clone(delivery)).await;
            }
        }
    }
}

/// Refuses a server that was removed from the cluster: its certificate is still valid.
fn refuse_removed(servers: &[Server], number: u64) -> Result<(), String> {
    let removed = |server: &Server| server.number == number && server.state == ServerState::Removed;
    if servers.iter().any(removed) {
        return Err(was_removed(number));
    }
    Ok(())
}

/// Refuses a server that cannot take part at the cluster's feature level.
fn refuse_level(map: Option<&ClusterMap>, peer: &Hello) -> Result<(), String> {
    let Some(map) = map else { return Ok(()) };
    let levels = Levels { lowest: Level(peer.lowest_level), highest: Level(peer.highest_level) };
    levels.check(map.level).map_err(|why| format!("server {} is refused: {why}", peer.server))
}

fn was_removed(number: u64) -> String {
    format!("server {number} was removed from the cluster")
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
    fn a_configured_address_holds_until_the_cluster_names_another_one_than_at_first() {
        let mut known = Known { named: BTreeMap::new(), configured: BTreeSet::from([2]) };
        let mut take = |servers: &[(u64, &str)]| -> (Vec<u64>, Vec<String>) {
            let now = servers.iter().map(|(number, address)| (*number, (*address).to_owned()));
            let Changes { removed, moved } = known.take(now.collect());
            (removed, moved.into_iter().map(|(number, address)| format!("{number} {address}")).collect())
        };
        let moved = |lines: &[&str]| -> (Vec<u64>, Vec<String>) {
            (vec![], lines.iter().map(|line| (*line).to_owned()).collect())
        };
        assert_eq!(take(&[(2, "old"), (3, "c")]), moved(&["3 c"]), "the rows may be older");
        assert_eq!(take(&[(2, "old"), (3, "c")]), moved(&[]));
        assert_eq!(take(&[(2, "new"), (3, "c")]), moved(&["2 new"]));
        assert_eq!(take(&[(2, "old"), (3, "c")]), moved(&["2 old"]));
        assert_eq!(take(&[(3, "c")]), (vec![2], vec![]));
        assert_eq!(take(&[(2, "old"), (3, "d")]), moved(&["2 old", "3 d"]), "its address was forgotten");
    }

    #[test]
    fn a_removed_server_is_refused_and_one_that_is_not_known_yet_is_not() {
        let server = |number, state| Server {
            number,
            folder: [3; 16],
            address: "node:7401".into(),
            state,
            levels: Levels::OF_PROGRAM,
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
        let removed = Removed::of(Arc::default());
        assert_eq!((removed.read(), removed.check(3)), (Vec::new(), Ok(())), "the cluster is not known yet");
        assert_eq!((removed.add(&servers), removed.add(&servers)), (vec![3], Vec::new()));
        assert_eq!(removed.check(3).unwrap_err(), "server 3 was removed from the cluster");
        assert_eq!(removed.check(1), Ok(()));
    }

    #[test]
    fn a_server_below_the_level_of_the_cluster_is_refused() {
        let map = ClusterMap::founded([1; 16], 1, 2, Level(2), 3);
        let peer = |lowest_level, highest_level| Hello {
            cluster: [1; 16],
            server: 3,
            folder: [3; 16],
            boot: 1,
            boot_id: [5; 16],
            protocol: 1,
            lowest_level,
            highest_level,
            keys: [0; 32],
            clock_ms: 0,
        };
        for (lowest, highest) in [(1, 2), (2, 2), (2, 5)] {
            assert_eq!(refuse_level(Some(&map), &peer(lowest, highest)), Ok(()));
        }
        let refused = refuse_level(Some(&map), &peer(1, 1)).unwrap_err();
        let expected = "server 3 is refused: the cluster writes feature level 2, and the server knows levels up to 1: run \
                        a newer version";
        assert_eq!(refused, expected);
        assert!(refuse_level(Some(&map), &peer(3, 3)).is_err());
        assert_eq!(refuse_level(None, &peer(1, 1)), Ok(()), "the cluster is not founded yet");
    }

    #[test]
    fn a_clock_counts_only_if_it_was_measured_and_its_server_has_sent_something_lately() {
        let seen = Instant::now();
        let hello = Hello {
            cluster: [1; 16],
            server: 2,
            folder: [2; 16],
            boot: 1,
            boot_id: [5; 16],
            protocol: 1,
            lowest_level: 1,
            highest_level: 1,
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
            removed: Arc::new(Removed::of(Arc::default())),
            calls: Arc::default(),
            delivery: Arc::default(),
        };
        let hello = Hello {
            cluster: [7; 16],
            server: 2,
            folder: [2; 16],
            boot: 1,
            boot_id: [5; 16],
            protocol: switchward_peer::PROTOCOL,
            lowest_level: 1,
            highest_level: 1,
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
