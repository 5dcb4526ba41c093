//! The servers of the cluster, and who leads what.

use std::io;
use std::time::Duration;
use switchward_state::catalogue::{
    CatalogueCommand, ClusterChange, ClusterMap, Server, ServerState, SetServerState,
};
use switchward_state::{Actor, Body, Command, Reply};

use super::Cluster;
use crate::failure::Failure;
use crate::members::{self, ClusterStatus, HandOver, ServerReport};
use crate::verify::{self, GroupVerification, NotVerified};

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

    /// What this server says of itself and its replicas, without asking others.
    #[must_use]
    pub fn report(&self) -> ServerReport {
        members::report(&self.0)
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

    /// Has all replicas of a group take the digest of their rows at a new entry of its log, and compares the digests. A
    /// replica that differs from a majority of the voters fails. Takes as long as reading all rows of the group does, and
    /// works on any server.
    ///
    /// # Errors
    /// As [`NotVerified`] says.
    pub async fn verify(&self, group: u64) -> Result<GroupVerification, NotVerified> {
        verify::verify(&self.0, group).await
    }

    /// Sets how often the cluster verifies all groups by itself, instead of
    /// [`VERIFY_INTERVAL`](crate::limits::VERIFY_INTERVAL); at least
    /// [`VERIFY_INTERVAL_MIN`](crate::limits::VERIFY_INTERVAL_MIN). What is set on the server that leads the catalogue counts.
    pub fn set_verify_interval(&self, interval: Duration) {
        self.0.set_verify_interval(interval);
    }
}
