//! The servers of the cluster, and who leads what.

use std::io;
use switchward_state::catalogue::{
    CatalogueCommand, ClusterChange, ClusterMap, Server, ServerState, SetServerState,
};
use switchward_state::{Actor, Body, Command, Reply};

use super::Cluster;
use crate::failure::Failure;
use crate::members::{self, ClusterStatus, HandOver};

impl Cluster {
    /// The servers of the cluster by their numbers as this server knows them, removed ones included; none for a server
    /// alone.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn servers(&self) -> io::Result<Vec<Server>> {
        members::servers(&self.catalogue().read_stale())
    }

    /// The map of the cluster as this server knows it; `None` for a server alone.
    ///
    /// # Errors
    /// The row cannot be read.
    pub fn map(&self) -> io::Result<Option<ClusterMap>> {
        members::map(&self.catalogue().read_stale())
    }

    /// The status of all servers and groups: each server is asked for at most
    /// [`STATUS_WAIT`](crate::limits::STATUS_WAIT).
    ///
    /// # Errors
    /// A row cannot be read.
    pub async fn status(&self) -> io::Result<ClusterStatus> {
        members::status(&self.0).await
    }

    /// Drains a server, uses it again, or removes it for good. The groups follow in their own time.
    ///
    /// # Errors
    /// There is no such server, it is removed, or the catalogue has no leader.
    pub async fn set_server_state(
        &self,
        number: u64,
        state: ServerState,
        actor: Actor,
    ) -> Result<ClusterChange, Failure> {
        let set = CatalogueCommand::SetServerState(SetServerState {
            number,
            state,
            replaced_by: None,
            epoch: None,
        });
        let command = Command { actor, ..members::of_catalogue(Body::Catalogue(set)) };
        let reply = self.catalogue().submit(command).await?;
        let Reply::Cluster(change) = reply else {
            tracing::error!(?reply, "unexpected reply of the catalogue");
            return Err(Failure::Internal);
        };
        Ok(*change)
    }

    /// Hands a group's leadership to another server: `to`, or else the voter that has most entries. Works on any server.
    ///
    /// # Errors
    /// As [`HandOver`] says.
    pub async fn hand_over(&self, group: u64, to: Option<u64>) -> Result<u64, HandOver> {
        members::hand_over(&self.0, group, to).await
    }
}
