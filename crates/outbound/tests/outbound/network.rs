//! A network between servers in this process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use switchward_shard::{
    Cluster, Group, LEADER_QUESTION, PeerConnection, PeerError, PeerRequest, PeerStream, RaftHandler,
    Transport, serve,
};
use switchward_store::GroupId;
use tokio::sync::{Mutex as AsyncMutex, mpsc};

/// Chunks that are under way in one direction of a stream.
const CHUNKS: usize = 4;

/// All links between the servers of a test.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<BTreeMap<u64, Reached>>>);

/// What can be reached at a server.
#[derive(Clone, Default)]
struct Reached {
    raft: Arc<RaftHandler>,
    /// Once it is open.
    cluster: Option<Cluster>,
}

impl Network {
    /// The transport of a server.
    pub(crate) fn transport(&self, node: u64) -> Arc<dyn Transport> {
        Arc::new(Links { network: self.clone(), node })
    }

    /// Makes a server's group reachable.
    pub(crate) fn join(&self, node: u64, id: GroupId, group: &Group) {
        self.0.lock().entry(node).or_default().raft.register(id, group);
    }

    /// Lets a server answer what others ask of the leaders.
    pub(crate) fn open(&self, node: u64, cluster: &Cluster) {
        self.0.lock().entry(node).or_default().cluster = Some(cluster.clone());
    }

    /// Forgets all servers.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }

    fn peer(&self, to: u64) -> Result<Reached, PeerError> {
        let reached = self.0.lock().get(&to).cloned();
        reached.ok_or_else(|| PeerError::NotSent("the server cannot be reached".into()))
    }
}

/// The links from a server.
struct Links {
    network: Network,
    node: u64,
}

#[async_trait]
impl Transport for Links {
    async fn call(
        &self,
        to: u64,
        _over: PeerConnection,
        request: PeerRequest,
        deadline: Duration,
    ) -> Result<Bytes, PeerError> {
        let Reached { raft, cluster } = self.network.peer(to)?;
        let answered = async {
            match cluster.filter(|_| request.kind == LEADER_QUESTION) {
                Some(cluster) => {
                    serve(&cluster, request.group, &request.body).await.map_err(|e| e.to_string())
                }
                None => raft.call(self.node, request).await,
            }
        };
        let answered = tokio::time::timeout(deadline, answered).await;
        answered.map_err(|_| PeerError::TimedOut)?.map_err(PeerError::Refused)
    }

    async fn stream(&self, to: u64, request: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        let Reached { raft, .. } = self.network.peer(to)?;
        let ((there, arrives), (back, answers)) = (mpsc::channel(CHUNKS), mpsc::channel(CHUNKS));
        let end =
            |sends, receives| Chunks { sends: Mutex::new(Some(sends)), receives: AsyncMutex::new(receives) };
        let (near, far, from) = (end(there, answers), end(back, arrives), self.node);
        tokio::spawn(async move { raft.stream(from, request, Arc::new(far)).await });
        Ok(Arc::new(near))
    }
}

/// One end of a stream.
struct Chunks {
    sends: Mutex<Option<mpsc::Sender<Bytes>>>,
    receives: AsyncMutex<mpsc::Receiver<Bytes>>,
}

#[async_trait]
impl PeerStream for Chunks {
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError> {
        let gone = || PeerError::Unknown("the connection is gone".into());
        let sends = self.sends.lock().clone().ok_or_else(gone)?;
        sends.send(chunk).await.map_err(|_| gone())
    }

    async fn finish(&self) -> Result<(), PeerError> {
        *self.sends.lock() = None;
        Ok(())
    }

    async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
        Ok(self.receives.lock().await.recv().await)
    }
}
