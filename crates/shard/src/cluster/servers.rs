//! The servers of the cluster, and who leads what.

use std::io;
use std::time::Duration;
use switchward_machine::Bucket;
use switchward_state::catalogue::{ClusterMap, MapEpochs, Server};

use super::Cluster;
use crate::failure::Failure;
use crate::members::{self, ClusterStatus, HandOver, ServerReport};
use crate::owner_watch::{MapChanges, OwnerWatch};
use crate::verify::{self, GroupVerification, NotVerified};
use crate::view::StateView;

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

    /// The epochs of the map by which this server routes; that of a new cluster for a server alone.
    #[must_use]
    pub fn map_epochs(&self) -> MapEpochs {
        self.0.routes().epochs()
    }

    /// Returns if a process with these epochs routes as this server does. If its map is a later one, waits until this server
    /// has that too, at most [`MAP_WAIT`](crate::limits::MAP_WAIT).
    ///
    /// # Errors
    /// [`Failure::OtherMap`]: what the process has routed must not be executed here.
    pub async fn agree(&self, theirs: MapEpochs) -> Result<(), Failure> {
        self.0.routes().agree(theirs).await
    }

    /// Waits until this server has the map of this epoch or a later one, at most [`MAP_WAIT`](crate::limits::MAP_WAIT);
    /// false if it has not.
    pub async fn reach_epoch(&self, epoch: u64) -> bool {
        self.0.routes().reach(epoch).await
    }

    /// The rows of the shard that owns a bucket, not older than anything that was answered before this call. If the bucket
    /// moves meanwhile, those of the new owner.
    ///
    /// # Errors
    /// As of [`Shard::read`](crate::Shard::read).
    pub async fn read_of(&self, bucket: Bucket) -> Result<StateView, Failure> {
        self.0.read_of(bucket).await
    }

    /// Notifies when this server gets a new map of the cluster.
    #[must_use]
    pub fn watch_map(&self) -> MapChanges {
        MapChanges::of(self.0.routes())
    }

    /// Notifies when a bucket gets another owner than [`shard_of`](Self::shard_of) returns from now on.
    #[must_use]
    pub fn watch_owner(&self, bucket: Bucket) -> OwnerWatch {
        OwnerWatch::of(self.0.routes(), bucket)
    }

    /// Returns if these buckets have had the same owners since the map of this epoch, by each map that was acknowledged before
    /// the call: for a reader who has read many rows as this server has them, and may have read a bucket at its former owner.
    ///
    /// # Errors
    /// [`Failure::OtherMap`] if a bucket has moved; as of [`Shard::read`](crate::Shard::read) of the catalogue.
    pub async fn confirm_owners(
        &self,
        buckets: impl IntoIterator<Item = Bucket> + Send,
        epoch: u64,
    ) -> Result<(), Failure> {
        self.catalogue().read().await?;
        // The rows are visible a moment before the routes follow them.
        self.catalogue().group().shared.follow_map().map_err(|error| {
            tracing::error!(%error, "failed to read the map of the cluster");
            Failure::Internal
        })?;
        let routes = self.0.routes();
        if buckets.into_iter().any(|bucket| routes.owned_since(bucket) > epoch) {
            return Err(routes.other_map());
        }
        Ok(())
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
