//! ClusterService.

use switchward_api::v1::{self, cluster_service_server::ClusterService};
use switchward_shard::{ClusterStatus, GroupStatus, ReplicaStatus, ServerStatus};
use switchward_state::catalogue::ServerState;
use tonic::{Request, Response, Status};

use super::tenants::FIRST;
use crate::api::Api;
use crate::auth::{Caller, roles};
use crate::convert::timestamp;
use crate::error::{Reason, Refusal};

#[tonic::async_trait]
impl ClusterService for Api {
    async fn get_cluster(
        &self,
        request: Request<v1::GetClusterRequest>,
    ) -> Result<Response<v1::GetClusterResponse>, Status> {
        let (call, _) = self.open(request, roles::OPERATE)?;
        first(&call.caller)?;
        let status = self.cluster.status().await.map_err(|error| {
            tracing::error!(%error, "failed to read the servers of the cluster");
            Refusal::new(Reason::InternalError, "the server failed to read its state")
        })?;
        Ok(Response::new(cluster(status)))
    }
}

/// The servers belong to no tenant; those who run them have a key of the first one.
fn first(caller: &Caller) -> Result<(), Refusal> {
    if caller.tenant == FIRST {
        return Ok(());
    }
    let message = "only an operator or admin of the server's first tenant may see the servers of the cluster";
    Err(Refusal::new(Reason::RoleNotAllowed, message))
}

fn cluster(status: ClusterStatus) -> v1::GetClusterResponse {
    let ClusterStatus { cluster, epoch, level, own, servers, groups } = status;
    let hex = |id: [u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect();
    v1::GetClusterResponse {
        cluster_id: cluster.map(hex).unwrap_or_default(),
        epoch,
        level,
        answered_by: own,
        servers: servers.into_iter().map(server).collect(),
        groups: groups.into_iter().map(group).collect(),
    }
}

fn server(status: ServerStatus) -> v1::ClusterServer {
    let ServerStatus { number, address, state, level, joined, reachable, leads } = status;
    let state = match state {
        ServerState::Active => v1::ClusterServerState::Active,
        ServerState::Draining => v1::ClusterServerState::Draining,
        ServerState::Removed => v1::ClusterServerState::Removed,
    };
    let join_time = joined.map(timestamp);
    v1::ClusterServer { number, address, state: state.into(), level, join_time, reachable, leads }
}

fn group(status: GroupStatus) -> v1::ClusterGroup {
    let GroupStatus { group, leader, term, voters, learners: _, last_index, replicas } = status;
    let replica = |status: ReplicaStatus| {
        let ReplicaStatus { server, applied, lag, silent_ms, failed } = status;
        v1::ClusterReplica {
            server,
            voter: voters.contains(&server),
            applied_index: applied,
            lag_entries: lag,
            silent_ms,
            failure: failed.unwrap_or_default(),
        }
    };
    let replicas = replicas.into_iter().map(replica).collect();
    v1::ClusterGroup { number: group, leader, term, last_index, replicas }
}
