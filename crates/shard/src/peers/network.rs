//! The network of a group: what openraft sends goes over the transport.

use backon::{BackoffBuilder as _, ExponentialBuilder};
use bytes::Bytes;
use futures::Stream;
use openraft::base::{BoxFuture, BoxStream};
use openraft::error::{NetworkError, RPCError, ReplicationClosed, StreamingError, Timeout, Unreachable};
use openraft::network::v2::RaftNetworkV2;
use openraft::network::{Backoff, RPCOption};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, StreamAppendResult, TransferLeaderRequest,
    TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{BasicNode, OptionalSend, RPCTypes, RaftNetworkFactory};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::{Arc, atomic::AtomicU64};
use std::time::Duration;
use switchward_store::GroupId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::codec::{
    EncodedAppend, decode_append_answer, decode_transfer_answer, decode_vote_answer, encode_append,
    encode_transfer, encode_vote,
};
use super::kind::Kind;
use super::pace::Pace;
use super::pipeline;
use super::send;
use super::transport::{PeerConnection, PeerError, PeerRequest, PeerStream, Transport};
use crate::limits::{
    APPEND_BYTES_PER_SECOND, APPEND_STREAMS_MAX, APPEND_WAIT, CONTROL_BYTES_MAX, PEER_BACKOFF_MAX,
    PEER_BACKOFF_MIN, SNAPSHOT_BYTES_PER_SECOND, SNAPSHOTS_AT_ONCE, STREAM_OPEN_WAIT,
};
use crate::snapshot::SnapshotSource;
use crate::types::{LogId, Snapshot, TypeConfig, Vote};

/// An error of a call, as openraft has it.
pub(super) type Failed = RPCError<TypeConfig>;

/// The other servers, as all groups of this server reach them; cheap to clone.
#[derive(Clone)]
pub struct RaftPeers(Arc<Inner>);

struct Inner {
    node: u64,
    transport: Arc<dyn Transport>,
    snapshots: Semaphore,
    /// The turns of each server to get a snapshot.
    turns: Mutex<BTreeMap<u64, Arc<Semaphore>>>,
    /// Streams of appends that may still be opened, for each server.
    streams: Mutex<BTreeMap<u64, Arc<Semaphore>>>,
    /// Snapshots that were begun, for their ids.
    begun: AtomicU64,
    pace: Pace,
}

impl RaftPeers {
    /// The other servers of a server with this number.
    #[must_use]
    pub fn new(node: u64, transport: Arc<dyn Transport>) -> Self {
        Self(Arc::new(Inner {
            node,
            transport,
            snapshots: Semaphore::new(SNAPSHOTS_AT_ONCE),
            turns: Mutex::default(),
            streams: Mutex::default(),
            begun: AtomicU64::new(0),
            pace: Pace::new(SNAPSHOT_BYTES_PER_SECOND),
        }))
    }

    /// The network of a group, which shares its connections and permits with those of other groups.
    #[must_use]
    pub fn network(&self, group: GroupId) -> RaftNetwork {
        RaftNetwork { peers: self.clone(), group }
    }

    /// This server.
    pub(super) fn node(&self) -> u64 {
        self.0.node
    }

    /// A permit for a stream of appends to a server; `None` if it has as many as it may have.
    pub(super) fn stream_permit(&self, to: u64) -> Option<OwnedSemaphorePermit> {
        let free = || Arc::new(Semaphore::new(APPEND_STREAMS_MAX));
        let streams = Arc::clone(self.0.streams.lock().entry(to).or_insert_with(free));
        streams.try_acquire_owned().ok()
    }

    /// Held by those who send a snapshot to a server, until it is installed there: that can take long, and holds up no other
    /// server.
    pub(super) fn turns_of(&self, to: u64) -> Arc<Semaphore> {
        let free = || Arc::new(Semaphore::new(SNAPSHOTS_AT_ONCE));
        Arc::clone(self.0.turns.lock().entry(to).or_insert_with(free))
    }

    /// Held by those who send snapshots, until all rows are sent.
    pub(super) fn snapshots(&self) -> &Semaphore {
        &self.0.snapshots
    }

    /// The number of the next snapshot.
    pub(super) fn begun(&self) -> &AtomicU64 {
        &self.0.begun
    }

    /// The bandwidth cap of snapshots.
    pub(super) fn pace(&self) -> &Pace {
        &self.0.pace
    }
}

/// The network of one group.
#[derive(Clone)]
pub struct RaftNetwork {
    peers: RaftPeers,
    group: GroupId,
}

impl RaftNetwork {
    fn link(&self, target: u64, purpose: Purpose) -> RaftLink {
        RaftLink { peers: self.peers.clone(), group: self.group, to: target, purpose }
    }
}

impl RaftNetworkFactory<TypeConfig> for RaftNetwork {
    type Network = RaftLink;

    async fn new_client(&mut self, target: u64, _: &BasicNode) -> RaftLink {
        self.link(target, Purpose::Entries)
    }

    async fn new_heartbeat_client(&mut self, target: u64, _: &BasicNode) -> RaftLink {
        self.link(target, Purpose::Heartbeats)
    }
}

/// What a link is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Heartbeats, and nothing else.
    Heartbeats,
    /// All other messages.
    Entries,
}

/// The link from this server to another one, for one group.
pub struct RaftLink {
    peers: RaftPeers,
    group: GroupId,
    to: u64,
    purpose: Purpose,
}

impl RaftLink {
    /// The other servers.
    pub(super) fn peers(&self) -> &RaftPeers {
        &self.peers
    }

    pub(super) fn group(&self) -> GroupId {
        self.group
    }

    /// The server at the other end.
    pub(super) fn to(&self) -> u64 {
        self.to
    }

    /// Returns true if appends may be sent before those ahead of them are answered.
    pub(super) fn pipelines(&self) -> bool {
        self.purpose == Purpose::Entries
    }

    /// How long an append of this length may take. openraft itself waits for a heartbeat no longer than the limit that
    /// it gives: so all of that time is used.
    pub(super) fn append_wait(&self, option: &RPCOption, bytes: usize) -> Duration {
        match self.purpose {
            Purpose::Heartbeats => option.hard_ttl(),
            Purpose::Entries => {
                let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
                APPEND_WAIT + Duration::from_millis(bytes.saturating_mul(1_000) / APPEND_BYTES_PER_SECOND)
            }
        }
    }

    /// Sends an encoded append by itself, and checks the answer against it.
    pub(super) async fn append(
        &self,
        sent: &Appended,
        bytes: Bytes,
        option: &RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, Failed> {
        let deadline = self.append_wait(option, bytes.len());
        let kind = match self.purpose {
            Purpose::Heartbeats => Kind::Heartbeat,
            Purpose::Entries => Kind::Append,
        };
        let answer = self.call(kind, bytes, deadline).await?;
        sent.answer(&answer)
    }

    /// Opens a stream to the server.
    pub(super) async fn stream(&self, kind: Kind, body: Bytes) -> Result<Arc<dyn PeerStream>, Failed> {
        let request = PeerRequest { kind: kind.number(), group: self.group.0, body };
        let opened = self.peers.0.transport.stream(self.to, request);
        match tokio::time::timeout(STREAM_OPEN_WAIT, opened).await {
            Ok(opened) => opened.map_err(|error| self.failed(kind, STREAM_OPEN_WAIT, error)),
            Err(_) => Err(self.failed(kind, STREAM_OPEN_WAIT, PeerError::TimedOut)),
        }
    }

    async fn call(&self, kind: Kind, body: Bytes, deadline: Duration) -> Result<Bytes, Failed> {
        let over =
            if body.len() <= CONTROL_BYTES_MAX { PeerConnection::Control } else { PeerConnection::Bulk };
        let request = PeerRequest { kind: kind.number(), group: self.group.0, body };
        let answer = self.peers.0.transport.call(self.to, over, request, deadline).await;
        answer.map_err(|error| self.failed(kind, deadline, error))
    }

    /// An error of the transport as openraft has it: only a server that cannot be reached, or refuses, is left alone
    /// for a while. A refusal is never taken for an answer: an answer carries a vote.
    pub(super) fn failed(&self, kind: Kind, timeout: Duration, error: PeerError) -> Failed {
        match error {
            PeerError::NotSent(_) | PeerError::Refused(_) => Unreachable::new(&error).into(),
            PeerError::Unknown(_) => NetworkError::new(&error).into(),
            PeerError::TimedOut => {
                let action = match kind {
                    Kind::Append | Kind::AppendStream | Kind::Heartbeat => RPCTypes::AppendEntries,
                    Kind::Vote | Kind::PreVote => RPCTypes::Vote,
                    Kind::TransferLeader => RPCTypes::TransferLeader,
                    Kind::Snapshot => RPCTypes::InstallSnapshot,
                };
                Timeout { action, id: self.peers.0.node, target: self.to, timeout }.into()
            }
        }
    }

    async fn ask(
        &self,
        kind: Kind,
        rpc: &VoteRequest<TypeConfig>,
        option: &RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Failed> {
        let answer = self.call(kind, encode_vote(rpc), option.soft_ttl()).await?;
        decode_vote_answer(&answer).map_err(unexpected)
    }
}

/// An answer that is not what it should be.
pub(super) fn unexpected(error: io::Error) -> Failed {
    NetworkError::new(&error).into()
}

/// An append that was sent, to check its answer against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Appended {
    vote: Vote,
    previous: Option<LogId>,
    /// The last of its entries, or the one before them.
    pub(super) last: Option<LogId>,
}

impl Appended {
    /// The append of the first `entries` of its entries.
    pub(super) fn of(append: &AppendEntriesRequest<TypeConfig>, entries: usize) -> Self {
        let last = entries.checked_sub(1).and_then(|at| append.entries.get(at)).map(|entry| entry.log_id);
        Self { vote: append.vote, previous: append.prev_log_id, last: last.or(append.prev_log_id) }
    }

    /// Decodes the answer. openraft believes it, so it must be possible: an append to the begin of a log conflicts
    /// with nothing, and another vote is higher than the leader's.
    pub(super) fn answer(&self, bytes: &[u8]) -> Result<AppendEntriesResponse<TypeConfig>, Failed> {
        let answer = decode_append_answer(bytes).map_err(unexpected)?;
        let possible = match &answer {
            AppendEntriesResponse::Success => true,
            AppendEntriesResponse::PartialSuccess(last) => *last >= self.previous && *last <= self.last,
            AppendEntriesResponse::Conflict => self.previous.is_some(),
            AppendEntriesResponse::HigherVote(vote) => *vote > self.vote,
        };
        if possible {
            return Ok(answer);
        }
        let message = format!("an answer that does not fit what was sent: {answer}");
        Err(unexpected(io::Error::new(io::ErrorKind::InvalidData, message)))
    }

    /// The answer as a stream of appends has it.
    pub(super) fn streamed(
        &self,
        answer: AppendEntriesResponse<TypeConfig>,
    ) -> StreamAppendResult<TypeConfig> {
        answer.into_stream_result(self.previous, self.last)
    }
}

impl RaftNetworkV2<TypeConfig> for RaftLink {
    type SnapshotData = SnapshotSource;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, Failed> {
        let EncodedAppend { bytes, entries } = encode_append(&rpc).map_err(unexpected)?;
        let sent = Appended::of(&rpc, entries);
        let answer = self.append(&sent, bytes, &option).await?;
        if entries < rpc.entries.len() && answer.is_success() {
            return Ok(AppendEntriesResponse::PartialSuccess(sent.last));
        }
        Ok(answer)
    }

    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        option: RPCOption,
    ) -> BoxFuture<'s, Result<BoxStream<'s, Result<StreamAppendResult<TypeConfig>, Failed>>, Failed>>
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        let answers = pipeline::answers(&*self, input, option);
        Box::pin(async move { Ok(answers) })
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Failed> {
        self.ask(Kind::Vote, &rpc, &option).await
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Failed> {
        self.ask(Kind::PreVote, &rpc, &option).await
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        send::snapshot(self, vote, snapshot, cancel).await
    }

    async fn transfer_leader(
        &mut self,
        rpc: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, Failed> {
        let answer = self.call(Kind::TransferLeader, encode_transfer(&rpc), option.soft_ttl()).await?;
        decode_transfer_answer(&answer).map_err(unexpected)
    }

    fn backoff(&self) -> Option<Backoff> {
        let waits =
            ExponentialBuilder::new().with_min_delay(PEER_BACKOFF_MIN).with_max_delay(PEER_BACKOFF_MAX);
        Some(Backoff::new(waits.without_max_times().build()))
    }
}
