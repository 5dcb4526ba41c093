//! A network between servers in one process, whose links can be cut one way or both.

use openraft::error::{
    Fatal, NetworkError, RPCError, RaftError, ReplicationClosed, StreamingError, Timeout, Unreachable,
};
use openraft::network::v2::RaftNetworkV2;
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::type_config::alias::{SnapshotOf, VoteOf};
use openraft::{BasicNode, OptionalSend, RPCTypes, RaftNetworkFactory};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::limits::SNAPSHOT_PIECE_BYTES;
use switchward_shard::{Group, Raft, SnapshotSource, TypeConfig, received};
use switchward_store::{GroupId, SnapshotFile, Snapshots};

/// The longest that a request is under way before its connection counts as broken.
const PATIENCE: Duration = Duration::from_secs(1);
/// The wait between two attempts to reach an unreachable server.
const BACKOFF: Duration = Duration::from_millis(20);

/// All links between the servers of a test.
#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<Switchboard>>);

#[derive(Default)]
struct Switchboard {
    reached: BTreeMap<(u64, GroupId), (Raft, Snapshots)>,
    /// Pairs of sender and receiver whose link is cut.
    cut: BTreeSet<(u64, u64)>,
    snapshots: usize,
}

impl Network {
    /// The network from the perspective of one group of one server.
    pub(crate) fn of(&self, node: u64, group: GroupId) -> Links {
        Links { network: self.clone(), node, group }
    }

    /// Makes a server's group reachable.
    pub(crate) fn join(&self, node: u64, id: GroupId, group: &Group, snapshots: &Snapshots) {
        self.0.lock().reached.insert((node, id), (group.raft().clone(), snapshots.clone()));
    }

    /// Removes a server that is gone.
    pub(crate) fn leave(&self, node: u64) {
        self.0.lock().reached.retain(|(known, _), _| *known != node);
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
    pub(crate) fn snapshots(&self) -> usize {
        self.0.lock().snapshots
    }

    fn is_cut(&self, from: u64, to: u64) -> bool {
        self.0.lock().cut.contains(&(from, to))
    }
}

/// Creates the links of a server's group.
pub(crate) struct Links {
    network: Network,
    node: u64,
    group: GroupId,
}

impl RaftNetworkFactory<TypeConfig> for Links {
    type Network = Link;

    async fn new_client(&mut self, target: u64, _: &BasicNode) -> Link {
        Link { network: self.network.clone(), from: self.node, to: target, group: self.group }
    }
}

/// The link from one server to another, for one group.
pub(crate) struct Link {
    network: Network,
    from: u64,
    to: u64,
    group: GroupId,
}

type Failed = RPCError<TypeConfig>;

fn unreachable() -> Unreachable<TypeConfig> {
    Unreachable::new(&io::Error::from(io::ErrorKind::ConnectionRefused))
}

fn stopped<E: std::error::Error>(_: RaftError<TypeConfig, E>) -> Unreachable<TypeConfig> {
    unreachable()
}

impl Link {
    fn peer(&self) -> Result<(Raft, Snapshots), Unreachable<TypeConfig>> {
        let board = self.network.0.lock();
        if board.cut.contains(&(self.from, self.to)) {
            return Err(unreachable());
        }
        board.reached.get(&(self.to, self.group)).cloned().ok_or_else(unreachable)
    }

    /// Returns an answer: its direction may be cut although the request's was not.
    async fn back<T>(
        &self,
        kind: RPCTypes,
        answer: impl Future<Output = Result<T, Unreachable<TypeConfig>>>,
    ) -> Result<T, Failed> {
        let Ok(answer) = tokio::time::timeout(PATIENCE, answer).await else {
            let (id, target) = (self.from, self.to);
            return Err(Timeout { action: kind, id, target, timeout: PATIENCE }.into());
        };
        if self.network.is_cut(self.to, self.from) {
            return Err(unreachable().into());
        }
        Ok(answer?)
    }
}

impl RaftNetworkV2<TypeConfig> for Link {
    type SnapshotData = SnapshotSource;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, Failed> {
        let (raft, _) = self.peer()?;
        let answer = async move { raft.append_entries(rpc).await.map_err(stopped) };
        self.back(RPCTypes::AppendEntries, answer).await
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Failed> {
        let (raft, _) = self.peer()?;
        self.back(RPCTypes::Vote, async move { raft.vote(rpc).await.map_err(stopped) }).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Failed> {
        let (raft, _) = self.peer()?;
        self.back(RPCTypes::Vote, async move { raft.pre_vote(rpc).await.map_err(stopped) }).await
    }

    async fn full_snapshot(
        &mut self,
        vote: VoteOf<TypeConfig>,
        snapshot: SnapshotOf<TypeConfig, SnapshotSource>,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let (raft, snapshots) = self.peer()?;
        let group = self.group;
        let copied = tokio::task::spawn_blocking(move || copy(&snapshot.snapshot, &snapshots, group)).await;
        let file = copied.map_err(io::Error::other).flatten().map_err(|error| NetworkError::new(&error))?;
        let snapshot = received(file).map_err(|error| NetworkError::new(&error))?;
        // Counted before its effect can be seen.
        self.network.0.lock().snapshots += 1;
        let installed = raft.install_full_snapshot(vote, snapshot).await;
        Ok(installed.map_err(|_: Fatal<TypeConfig>| unreachable())?)
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, Failed> {
        let (raft, _) = self.peer()?;
        let answer = async move { raft.handle_transfer_leader(rpc).await.map_err(|_| unreachable()) };
        self.back(RPCTypes::TransferLeader, answer).await
    }

    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(std::iter::repeat(BACKOFF)))
    }
}

/// Sends the file piece by piece, as a connection would.
fn copy(source: &SnapshotSource, to: &Snapshots, group: GroupId) -> io::Result<SnapshotFile> {
    let mut receiver = to.receive(group).map_err(io::Error::other)?;
    for piece in source.file()?.chunks(SNAPSHOT_PIECE_BYTES) {
        let piece = piece.map_err(io::Error::other)?;
        receiver.write(&piece).map_err(io::Error::other)?;
    }
    receiver.finish().map_err(io::Error::other)
}
