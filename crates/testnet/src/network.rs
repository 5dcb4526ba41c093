//! A network between servers in one process, whose links can be cut one way or both.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::limits::{CONTROL_BYTES_MAX, STREAM_CHUNK_BYTES_MAX};
use switchward_shard::raft_messages::{SnapshotPart, decode_snapshot_part};
use switchward_shard::{
    ClockOffset, Cluster, Group, LEADER_QUESTION, MemberHandler, Peer, PeerConnection, PeerError,
    PeerRequest, PeerStream, RaftNetwork, RaftPeers, Transport, serve,
};
use switchward_store::GroupId;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

/// Chunks that are under way in one direction of a stream.
const CHUNKS: usize = 4;

/// The kind of streams of appends.
const ENTRY_STREAM: u8 = 5;

/// The kinds of messages that carry entries: appends, and streams of appends.
const ENTRIES: [u8; 2] = [1, ENTRY_STREAM];

/// The kind of streams that carry a snapshot.
const SNAPSHOT: u8 = 6;

/// All links between the servers of a test; cheap to clone.
#[derive(Clone, Default)]
pub struct Network(Arc<Mutex<Switchboard>>);

/// A server that can be reached.
#[derive(Clone)]
struct Reached {
    handler: Arc<MemberHandler>,
    /// Answers what is asked of leaders, if the server was opened as a number of groups and not as a member.
    cluster: Option<Cluster>,
    runtime: Handle,
}

impl Reached {
    fn over(handler: Arc<MemberHandler>, runtime: Handle) -> Self {
        Self { handler, cluster: None, runtime }
    }

    /// Answers a message of the server `from`.
    async fn call(self, from: u64, request: PeerRequest) -> Result<Bytes, String> {
        match self.cluster {
            Some(cluster) if request.kind == LEADER_QUESTION => {
                let answer = serve(&cluster, request.group, &request.body).await;
                answer.map_err(|error| error.to_string())
            }
            Some(_) | None => self.handler.call(from, request).await,
        }
    }
}

#[derive(Default)]
struct Switchboard {
    reached: BTreeMap<u64, Reached>,
    /// Pairs of sender and receiver whose link is cut.
    cut: BTreeSet<(u64, u64)>,
    /// What servers say of the others' clocks; one that is not here compares no clocks.
    offsets: BTreeMap<u64, Vec<ClockOffset>>,
    /// Where servers listen that are reached only by those that know it.
    listening: BTreeMap<u64, String>,
    /// The addresses that a server knows of others, by both numbers.
    known: BTreeMap<(u64, u64), String>,
    /// Servers that get no entries, and everything else.
    withheld: BTreeSet<u64>,
    /// Snapshots that were sent to their end.
    snapshots: u64,
    streams: usize,
    /// Streams of appends that are open, by the numbers of both servers.
    entry_streams: BTreeMap<(u64, u64), usize>,
    /// The most of them that one server has had open to another.
    entry_streams_max: usize,
}

impl Switchboard {
    /// Counts a stream.
    fn opened(&mut self, from: u64, to: u64, kind: u8) {
        self.streams += 1;
        if kind == ENTRY_STREAM {
            let open = self.entry_streams.entry((from, to)).or_default();
            *open += 1;
            self.entry_streams_max = self.entry_streams_max.max(*open);
        }
    }
}

impl Network {
    /// The transport of a server.
    #[must_use]
    pub fn transport(&self, node: u64) -> Arc<dyn Transport> {
        Arc::new(Links { network: self.clone(), node })
    }

    /// The network from the perspective of one group of one server.
    #[must_use]
    pub fn of(&self, node: u64, group: GroupId) -> RaftNetwork {
        RaftPeers::new(node, self.transport(node)).network(group)
    }

    /// Makes a server's group reachable. Called on the server's runtime.
    pub fn join(&self, node: u64, id: GroupId, group: &Group) {
        let mut board = self.0.lock();
        let reached = board.reached.entry(node);
        let reached = reached.or_insert_with(|| Reached::over(Arc::default(), Handle::current()));
        reached.handler.raft().register(id, group);
    }

    /// Makes a server reachable whose messages this handler answers on this runtime.
    pub fn attach(&self, node: u64, handler: Arc<MemberHandler>, runtime: Handle) {
        self.0.lock().reached.insert(node, Reached::over(handler, runtime));
    }

    /// Lets a server whose groups are reachable answer what other servers ask of leaders. Holds the cluster until the
    /// server leaves.
    pub fn answer(&self, node: u64, cluster: &Cluster) {
        let mut board = self.0.lock();
        board.reached.get_mut(&node).unwrap().cluster = Some(cluster.clone());
    }

    /// Sets how far the others' clocks are ahead of a server's. Before it is opened, so that it compares them from the
    /// beginning.
    pub fn set_clock_offsets(&self, node: u64, offsets: Vec<ClockOffset>) {
        self.0.lock().offsets.insert(node, offsets);
    }

    /// Lets a server listen at this address: from now on only those reach it that the cluster has named this address.
    pub fn listen(&self, node: u64, address: &str) {
        self.0.lock().listening.insert(node, address.to_owned());
    }

    /// Removes a server that is gone.
    pub fn leave(&self, node: u64) {
        self.0.lock().reached.remove(&node);
    }

    /// Cuts a server off from the others, both ways.
    pub fn isolate(&self, node: u64, others: &[u64]) {
        let mut board = self.0.lock();
        board.cut.extend(others.iter().flat_map(|other| [(node, *other), (*other, node)]));
    }

    /// Gives a server no entries: it hears its leaders, and falls behind.
    pub fn withhold(&self, node: u64) {
        self.0.lock().withheld.insert(node);
    }

    /// Mends all links.
    pub fn heal(&self) {
        let mut board = self.0.lock();
        board.cut.clear();
        board.withheld.clear();
    }

    /// The number of snapshots that were sent to their end. One is counted before its receiver can install it.
    #[must_use]
    pub fn snapshots(&self) -> u64 {
        self.0.lock().snapshots
    }

    /// The number of streams that were opened.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.0.lock().streams
    }

    /// The most streams of appends that one server has had open to another at one time.
    #[must_use]
    pub fn entry_streams_max(&self) -> usize {
        self.0.lock().entry_streams_max
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        self.0.lock().cut.contains(&(from, to))
    }

    fn is_withheld(&self, to: u64, kind: u8) -> bool {
        ENTRIES.contains(&kind) && self.0.lock().withheld.contains(&to)
    }
}

/// The links from a server.
struct Links {
    network: Network,
    node: u64,
}

impl Links {
    fn peer(&self, to: u64) -> Result<Reached, PeerError> {
        let gone = || PeerError::NotSent("the server cannot be reached".into());
        let board = self.network.0.lock();
        // A server that is gone may still have tasks.
        if board.cut.contains(&(self.node, to)) || !board.reached.contains_key(&self.node) {
            return Err(gone());
        }
        let listening = board.listening.get(&to);
        if listening.is_some_and(|address| board.known.get(&(self.node, to)) != Some(address)) {
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
        let fits = over != PeerConnection::Control || short;
        assert!(fits, "a long message takes the connection for short ones");
        let peer = self.peer(to)?;
        if self.network.is_withheld(to, request.kind) {
            return Err(PeerError::NotSent("entries are withheld".into()));
        }
        let runtime = peer.runtime.clone();
        // The other server goes on even if the one that asked does not wait any more.
        let served = runtime.spawn(peer.call(self.node, request));
        let answer = tokio::time::timeout(deadline, served).await;
        // The direction of the answer may be cut although the request's was not.
        if self.network.is_cut(to, self.node) {
            return Err(PeerError::Unknown("the connection is gone".into()));
        }
        let served = answer.map_err(|_| PeerError::TimedOut)?;
        // A server that is killed takes its tasks along.
        served.map_err(|error| PeerError::Unknown(error.to_string()))?.map_err(PeerError::Refused)
    }

    fn know(&self, peers: &[Peer]) {
        let mut board = self.network.0.lock();
        board.known.retain(|(node, _), _| *node != self.node);
        let known = peers.iter().map(|peer| ((self.node, peer.number), peer.address.clone()));
        board.known.extend(known);
    }

    fn clock_offsets(&self) -> Option<Vec<ClockOffset>> {
        self.network.0.lock().offsets.get(&self.node).cloned()
    }

    async fn stream(&self, to: u64, request: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        let Reached { handler, runtime, .. } = self.peer(to)?;
        let kind = request.kind;
        if self.network.is_withheld(to, kind) {
            return Err(PeerError::NotSent("entries are withheld".into()));
        }
        let (there, arrives) = mpsc::channel(CHUNKS);
        let (back, answers) = mpsc::channel(CHUNKS);
        let end = |from, to, sends, receives| Chunks {
            network: self.network.clone(),
            from,
            to,
            opener: self.node,
            kind,
            sends: Mutex::new(Some(sends)),
            receives: AsyncMutex::new(receives),
        };
        let (near, far) = (end(self.node, to, there, answers), end(to, self.node, back, arrives));
        self.network.0.lock().opened(self.node, to, kind);
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
    /// The server that opened the stream.
    opener: u64,
    /// What the stream is for.
    kind: u8,
    sends: Mutex<Option<mpsc::Sender<Bytes>>>,
    receives: AsyncMutex<mpsc::Receiver<Bytes>>,
}

impl Chunks {
    fn broken() -> PeerError {
        PeerError::Unknown("the connection is gone".into())
    }

    fn ends_snapshot(&self, chunk: &Bytes) -> bool {
        self.kind == SNAPSHOT
            && self.from == self.opener
            && matches!(decode_snapshot_part(chunk), Ok(SnapshotPart::End(_)))
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        if self.kind == ENTRY_STREAM && self.from == self.opener {
            let mut board = self.network.0.lock();
            if let Some(open) = board.entry_streams.get_mut(&(self.from, self.to)) {
                *open -= 1;
            }
        }
    }
}

#[async_trait]
impl PeerStream for Chunks {
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError> {
        assert!(chunk.len() <= STREAM_CHUNK_BYTES_MAX, "a chunk has {} bytes", chunk.len());
        let sends = self.sends.lock().clone().ok_or_else(Self::broken)?;
        if self.network.is_cut(self.from, self.to) || self.network.is_withheld(self.to, self.kind) {
            return Err(Self::broken());
        }
        if self.ends_snapshot(&chunk) {
            self.network.0.lock().snapshots += 1;
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
