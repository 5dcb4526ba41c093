//! A network between servers in one process, whose links can be cut one way or both.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::limits::{CONTROL_BYTES_MAX, STREAM_CHUNK_BYTES_MAX};
use switchward_shard::{
    Group, MemberHandler, PeerConnection, PeerError, PeerRequest, PeerStream, RaftNetwork, RaftPeers,
    Transport,
};
use switchward_store::GroupId;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

/// Chunks that are under way in one direction of a stream.
const CHUNKS: usize = 4;

/// All links between the servers of a test.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<Switchboard>>);

#[derive(Default)]
struct Switchboard {
    reached: BTreeMap<u64, (Arc<MemberHandler>, Handle)>,
    /// Pairs of sender and receiver whose link is cut.
    cut: BTreeSet<(u64, u64)>,
    /// Snapshots that servers received which are gone.
    snapshots: u64,
    streams: usize,
}

impl Network {
    /// The transport of a server.
    pub(crate) fn transport(&self, node: u64) -> Arc<dyn Transport> {
        Arc::new(Links { network: self.clone(), node })
    }

    /// The network from the perspective of one group of one server.
    pub(crate) fn of(&self, node: u64, group: GroupId) -> RaftNetwork {
        RaftPeers::new(node, self.transport(node)).network(group)
    }

    /// Makes a server's group reachable. Called on the server's runtime.
    pub(crate) fn join(&self, node: u64, id: GroupId, group: &Group) {
        let mut board = self.0.lock();
        let (handler, _) = board.reached.entry(node).or_insert_with(|| (Arc::default(), Handle::current()));
        handler.raft().register(id, group);
    }

    /// Makes a server reachable whose messages this handler answers on this runtime.
    pub(crate) fn attach(&self, node: u64, handler: Arc<MemberHandler>, runtime: Handle) {
        self.0.lock().reached.insert(node, (handler, runtime));
    }

    /// Removes a server that is gone.
    pub(crate) fn leave(&self, node: u64) {
        let mut board = self.0.lock();
        let left = board.reached.remove(&node);
        board.snapshots += left.map_or(0, |(handler, _)| handler.raft().snapshots_received());
    }

    /// Cuts a server off from the others, both ways.
    pub(crate) fn isolate(&self, node: u64, others: &[u64]) {
        let mut board = self.0.lock();
        board.cut.extend(others.iter().flat_map(|other| [(node, *other), (*other, node)]));
    }

    /// Mends all links.
    pub(crate) fn heal(&self) {
        self.0.lock().cut.clear();
    }

    /// The number of snapshots that have arrived.
    pub(crate) fn snapshots(&self) -> u64 {
        let board = self.0.lock();
        let received = board.reached.values().map(|(handler, _)| handler.raft().snapshots_received());
        board.snapshots + received.sum::<u64>()
    }

    /// The number of streams that were opened.
    pub(crate) fn streams(&self) -> usize {
        self.0.lock().streams
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        self.0.lock().cut.contains(&(from, to))
    }
}

/// The links from a server.
struct Links {
    network: Network,
    node: u64,
}

impl Links {
    fn peer(&self, to: u64) -> Result<(Arc<MemberHandler>, Handle), PeerError> {
        let gone = || PeerError::NotSent("the server cannot be reached".into());
        let board = self.network.0.lock();
        // A server that is gone may still have tasks.
        if board.cut.contains(&(self.node, to)) || !board.reached.contains_key(&self.node) {
            return Err(gone());
        }
        board.reached.get(&to).cloned().ok_or_else(gone)
    }
}

#[async_trait]
impl Transport for Links {
    async fn call(
        &self,
        to: u64,
        over: PeerConnection,
        request: PeerRequest,
        deadline: Duration,
    ) -> Result<Bytes, PeerError> {
        let short = request.body.len() <= CONTROL_BYTES_MAX;
        assert!(over == PeerConnection::Bulk || short, "a long message takes the connection for short ones");
        let (handler, runtime) = self.peer(to)?;
        let from = self.node;
        let served = runtime.spawn(async move { handler.call(from, request).await });
        let answer = tokio::time::timeout(deadline, served).await;
        // The direction of the answer may be cut although the request's was not.
        if self.network.is_cut(to, self.node) {
            return Err(PeerError::Unknown("the connection is gone".into()));
        }
        let served = answer.map_err(|_| PeerError::TimedOut)?;
        // A server that is killed takes its tasks along.
        served.map_err(|error| PeerError::Unknown(error.to_string()))?.map_err(PeerError::Refused)
    }

    async fn stream(&self, to: u64, request: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        let (handler, runtime) = self.peer(to)?;
        let (there, arrives) = mpsc::channel(CHUNKS);
        let (back, answers) = mpsc::channel(CHUNKS);
        let end = |from, to, sends, receives| Chunks {
            network: self.network.clone(),
            from,
            to,
            sends: Mutex::new(Some(sends)),
            receives: AsyncMutex::new(receives),
        };
        let (near, far) = (end(self.node, to, there, answers), end(to, self.node, back, arrives));
        self.network.0.lock().streams += 1;
        let from = self.node;
        runtime.spawn(async move {
            let served = handler.stream(from, request, Arc::new(far)).await;
            served.expect("only Raft opens streams");
        });
        Ok(Arc::new(near))
    }
}

/// One end of a stream.
struct Chunks {
    network: Network,
    from: u64,
    to: u64,
    sends: Mutex<Option<mpsc::Sender<Bytes>>>,
    receives: AsyncMutex<mpsc::Receiver<Bytes>>,
}

impl Chunks {
    fn broken() -> PeerError {
        PeerError::Unknown("the connection is gone".into())
    }
}

#[async_trait]
impl PeerStream for Chunks {
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError> {
        assert!(chunk.len() <= STREAM_CHUNK_BYTES_MAX, "a chunk has {} bytes", chunk.len());
        let sends = self.sends.lock().clone().ok_or_else(Self::broken)?;
        if self.network.is_cut(self.from, self.to) {
            return Err(Self::broken());
        }
        sends.send(chunk).await.map_err(|_| Self::broken())
    }

    async fn finish(&self) -> Result<(), PeerError> {
        *self.sends.lock() = None;
        Ok(())
    }

    async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
        let chunk = self.receives.lock().await.recv().await;
        if self.network.is_cut(self.to, self.from) { Err(Self::broken()) } else { Ok(chunk) }
    }
}
