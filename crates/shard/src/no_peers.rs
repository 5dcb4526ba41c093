//! The network of a server that is alone.

use openraft::{
    BasicNode, OptionalSend, RaftNetworkFactory,
    error::{RPCError, ReplicationClosed, StreamingError, Unreachable},
    network::{RPCOption, v2::RaftNetworkV2},
    raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, VoteRequest, VoteResponse},
};
use std::future::Future;
use std::io;

use crate::snapshot::SnapshotSource;
use crate::types::{Snapshot, TypeConfig, Vote};

/// The network of a group that has one voter: there are no peers.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPeers;

impl RaftNetworkFactory<TypeConfig> for NoPeers {
    type Network = Self;

    async fn new_client(&mut self, _target: u64, _node: &BasicNode) -> Self {
        Self
    }
}

type Unreached = RPCError<TypeConfig>;

fn nobody() -> Unreachable<TypeConfig> {
    Unreachable::new(&io::Error::new(io::ErrorKind::NotConnected, "this server has no peers"))
}

impl RaftNetworkV2<TypeConfig> for NoPeers {
    type SnapshotData = SnapshotSource;

    async fn append_entries(
        &mut self,
        _: AppendEntriesRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<AppendEntriesResponse<TypeConfig>, Unreached> {
        Err(nobody().into())
    }

    async fn vote(
        &mut self,
        _: VoteRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Unreached> {
        Err(nobody().into())
    }

    async fn pre_vote(
        &mut self,
        _: VoteRequest<TypeConfig>,
        _: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, Unreached> {
        Err(nobody().into())
    }

    async fn full_snapshot(
        &mut self,
        _: Vote,
        _: Snapshot,
        _: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        _: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        Err(nobody().into())
    }
}
