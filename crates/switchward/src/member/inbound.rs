//! What comes in from the other processes of the cluster, and who answers it.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use switchward_gateway::proxy::{AnswersDelivery, CallServer};
use switchward_gateway::{
    Api,
    mail::{QUARANTINE_QUESTION, serve_quarantine},
};
use switchward_peer::{CallStream, Handler, Hello, PeerName, Request};
use switchward_shard::{Cluster, MemberHandler, PeerRequest, RaftHandler};
use switchward_state::catalogue::{ClusterMap, Server, ServerState};
use switchward_state::{Level, Levels};
use switchward_store::{DataDir, Id, SeenPeer};
use tokio::runtime::Handle;
use tokio::task::{JoinSet, spawn_blocking};

use super::transport::Stream;

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
    pub(super) fn read(&self) -> Vec<u64> {
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
    /// The runtime for what is not Raft's: requests and reads must not delay heartbeats.
    pub(crate) main: Handle,
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

fn received(request: Request) -> PeerRequest {
    PeerRequest { kind: request.kind, group: request.group, body: request.body }
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

    /// Raft's messages are answered where they come in.
    fn runtime(&self, kind: u8) -> Option<&Handle> {
        (!RaftHandler::serves(kind)).then_some(&self.main)
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
        let (Some(calls), Some(delivery)) = (self.calls.get().cloned(), self.delivery.get().cloned()) else {
            return;
        };
        tracing::debug!(%from, "a connection for calls");
        let served = on(&self.main, async move {
            match from {
                PeerName::Server(_) | PeerName::Gateway(_) => calls.serve(stream).await,
                PeerName::Delivery(_) => calls.serve_delivery(stream, delivery).await,
            }
        });
        if let Err(why) = served.await {
            tracing::warn!(why, "failed to serve a connection for calls");
        }
    }
}

/// Does something on another runtime, and waits for it. It is broken off if nobody waits any more.
///
/// # Errors
/// It panicked, or that runtime has ended.
async fn on<T: Send + 'static>(
    runtime: &Handle,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, String> {
    let mut tasks = JoinSet::new();
    tasks.spawn_on(work, runtime);
    match tasks.join_next().await {
        Some(done) => done.map_err(|error| error.to_string()),
        None => Err("nothing was begun".to_owned()),
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
    fn a_peer_is_admitted_once_it_is_noted_and_its_thread_does_not_wait_for_that() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = DataDir::open(folder.path()).expect("a new data folder");
        let runtime = Builder::new_current_thread().max_blocking_threads(1).build().expect("a runtime");
        let handler = FromPeers {
            main: runtime.handle().clone(),
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
        runtime.block_on(async {
            // The only thread for work that blocks is busy.
            let (free, busy) = mpsc::channel::<()>();
            let _waiting = spawn_blocking(move || busy.recv());
            let mut admitted = pin!(handler.admit(&hello));
            let first = admitted.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let peers = folder.path().join("PEERS");
            assert!(first.is_pending() && !peers.exists(), "nothing is written on this thread");
            drop(free);
            assert_eq!(admitted.await, Ok(()));
            assert!(std::fs::read_to_string(peers).expect("it is noted").starts_with("2 "));
        });
    }
}
