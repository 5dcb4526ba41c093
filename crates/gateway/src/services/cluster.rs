//! ClusterService: shows the servers, compares replicas, drains, replaces and removes servers.

mod changes;
mod level;
mod transfers;
mod verification;

use std::io;
use switchward_api::v1::{self, cluster_service_server::ClusterService};
use switchward_query::{ListTenantsHeld, Reader};
use switchward_shard::{ClusterStatus, GroupStatus, ReplicaStatus, ServerStatus};
use switchward_state::catalogue::ServerState;
use tonic::{Request, Response, Status};

use super::tenants::FIRST;
use crate::api::{Api, request_id};
use crate::auth::{Caller, roles};
use crate::convert::timestamp;
use crate::error::{Reason, Refusal};
use crate::refusals::unreadable;
use changes::Change;

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ClusterService for Api {
    async fn get_cluster(&self, request: Request<v1::GetClusterRequest>) -> Answered<v1::GetClusterResponse> {
        let (call, _) = self.open(request, roles::OPERATE)?;
        first(&call.caller)?;
        // However old the rows are: a server that is cut off shows the cluster, too.
        let held = Reader::stale(self.cluster.catalogue()).answer(&ListTenantsHeld {});
        let held = held.map_err(unreadable)?.len();
        let effects_held_tenants = u32::try_from(held).unwrap_or(u32::MAX);
        let seen = cluster(status(self).await?);
        Ok(Response::new(v1::GetClusterResponse { effects_held_tenants, ..seen }))
    }

    async fn verify_group(
        &self,
        request: Request<v1::VerifyGroupRequest>,
    ) -> Answered<v1::VerifyGroupResponse> {
        let (call, message) = self.open(request, roles::OPERATE)?;
        first(&call.caller)?;
        Ok(Response::new(verification::run(self, message.group).await?))
    }

    async fn drain_server(
        &self,
        request: Request<v1::DrainServerRequest>,
    ) -> Answered<v1::DrainServerResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let request = request_id(&message.request_id, "DrainServer", &message)?;
        let change = changes::make(&call, request, message.server, Change::Drain).await?;
        Ok(Response::new(v1::DrainServerResponse { change: Some(change) }))
    }

    async fn activate_server(
        &self,
        request: Request<v1::ActivateServerRequest>,
    ) -> Answered<v1::ActivateServerResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let request = request_id(&message.request_id, "ActivateServer", &message)?;
        let change = changes::make(&call, request, message.server, Change::Activate).await?;
        Ok(Response::new(v1::ActivateServerResponse { change: Some(change) }))
    }

    async fn remove_server(
        &self,
        request: Request<v1::RemoveServerRequest>,
    ) -> Answered<v1::RemoveServerResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let request = request_id(&message.request_id, "RemoveServer", &message)?;
        let change = changes::make(&call, request, message.server, Change::Remove).await?;
        Ok(Response::new(v1::RemoveServerResponse { change: Some(change) }))
    }

    async fn replace_server(
        &self,
        request: Request<v1::ReplaceServerRequest>,
    ) -> Answered<v1::ReplaceServerResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let request = request_id(&message.request_id, "ReplaceServer", &message)?;
        let by = required("replaced_by", message.replaced_by)?;
        if by == message.server {
            return Err(Refusal::field("replaced_by", "must be another server").into());
        }
        let change = changes::make(&call, request, message.server, Change::Replace { by }).await?;
        Ok(Response::new(v1::ReplaceServerResponse { change: Some(change) }))
    }

    async fn transfer_leaders(
        &self,
        request: Request<v1::TransferLeadersRequest>,
    ) -> Answered<v1::TransferLeadersResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        transfers::run(&call, &message).await?;
        Ok(Response::new(v1::TransferLeadersResponse {}))
    }

    async fn raise_level(&self, request: Request<v1::RaiseLevelRequest>) -> Answered<v1::RaiseLevelResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        Ok(Response::new(level::raise(&call, &message).await?))
    }
}

/// The number of a server.
///
/// # Errors
/// FIELD_INVALID if it is missing.
fn required(field: &str, number: u64) -> Result<u64, Refusal> {
    if number == 0 { Err(Refusal::field(field, "is required")) } else { Ok(number) }
}

/// The cluster as this server sees it now.
/// The refusal of a change: on a server that stands alone, what is missing is the cluster.
fn of_lone_server(refusal: Refusal) -> Refusal {
    refusal.or_missing("cluster", "cluster")
}

async fn status(api: &Api) -> Result<ClusterStatus, Refusal> {
    api.cluster.status().await.map_err(|error| unread(&error))
}

fn unread(error: &io::Error) -> Refusal {
    tracing::error!(%error, "failed to read the state of the cluster");
    Refusal::new(Reason::InternalError, "the server failed to read its state")
}

/// The servers belong to no tenant; those who run them have a key of the first one.
fn first(caller: &Caller) -> Result<(), Refusal> {
    if caller.tenant == FIRST {
        return Ok(());
    }
    let message = "only keys of the server's first tenant may see and change the servers of the cluster";
    Err(Refusal::new(Reason::RoleNotAllowed, message))
}

fn cluster(status: ClusterStatus) -> v1::GetClusterResponse {
    let ClusterStatus { cluster, epoch, level, own, voters: _, servers, groups } = status;
    let hex = |id: [u8; 16]| id.iter().map(|byte| format!("{byte:02x}")).collect();
    v1::GetClusterResponse {
        cluster_id: cluster.map(hex).unwrap_or_default(),
        epoch,
        level: level.0,
        answered_by: own,
        servers: servers.into_iter().map(server).collect(),
        groups: groups.into_iter().map(group).collect(),
        effects_held_tenants: 0,
    }
}

fn server(status: ServerStatus) -> v1::ClusterServer {
    let ServerStatus {
        number,
        address,
        state,
        levels,
        joined,
        reachable,
        may_lead: _,
        leads,
        replaced_by,
        answer,
    } = status;
    let expires = answer.as_ref().and_then(|answer| answer.certificate_expires);
    v1::ClusterServer {
        number,
        address,
        state: of_state(state).into(),
        lowest_level: levels.lowest.0,
        highest_level: levels.highest.0,
        join_time: joined.map(timestamp),
        reachable,
        leads,
        replaced_by,
        version: answer.as_ref().map(|answer| answer.version.clone()).unwrap_or_default(),
        disk_free_bytes: answer.as_ref().and_then(|answer| answer.disk_free_bytes),
        certificate_expire_time: expires.map(timestamp),
        clock_offset_ms: answer.as_ref().map(|answer| answer.clock_offset_ms),
        clock_bars: answer.is_some_and(|answer| answer.clock_bars),
    }
}

fn of_state(state: ServerState) -> v1::ClusterServerState {
    match state {
        ServerState::Active => v1::ClusterServerState::Active,
        ServerState::Draining => v1::ClusterServerState::Draining,
        ServerState::Removed => v1::ClusterServerState::Removed,
    }
}

fn group(status: GroupStatus) -> v1::ClusterGroup {
    let GroupStatus { group, leader, term, placed: _, voters, learners: _, last_index, replicas } = status;
    let replica = |status: ReplicaStatus| {
        let ReplicaStatus { server, applied, lag, silent_ms, failed, log } = status;
        v1::ClusterReplica {
            server,
            voter: voters.contains(&server),
            applied_index: applied,
            lag_entries: lag,
            silent_ms,
            failure: failed.unwrap_or_default(),
            log_bytes: log.map(|(bytes, _)| bytes),
            log_entries: log.map(|(_, entries)| entries),
        }
    };
    let replicas = replicas.into_iter().map(replica).collect();
    v1::ClusterGroup { number: group, leader, term, last_index, replicas }
}
