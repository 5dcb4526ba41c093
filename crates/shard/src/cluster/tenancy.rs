//! Changes of a tenant's record, which every shard needs.

use std::sync::Arc;
use switchward_machine::TenantId;
use switchward_state::{Command, Reply};

use super::Cluster;
use crate::failure::Failure;

impl Cluster {
    /// Changes the catalogue's record, then every shard's copy. Runs as a task of its own: a caller who disconnects
    /// in between must not leave the shards with the old copy.
    pub(super) async fn change_tenancy(&self, command: Command, tenant: TenantId) -> Result<Reply, Failure> {
        let shards = Arc::clone(&self.0);
        let change = async move {
            let reply = shards.submit(command).await?;
            // The catalogue has the change; a shard that has not got it yet gets it when the request is sent again.
            shards.spread(tenant).await.map(|()| reply).map_err(|_| Failure::OutcomeUnknown)
        };
        tokio::spawn(change).await.unwrap_or(Err(Failure::OutcomeUnknown))
    }

    /// Gives every shard its copy of a tenant's record, unless it is up to date.
    ///
    /// # Errors
    /// As [`Failure`] says; some shards may then have the record and others not, and repeating the call completes it.
    pub async fn spread(&self, tenant: TenantId) -> Result<(), Failure> {
        self.0.spread(tenant).await
    }
}
