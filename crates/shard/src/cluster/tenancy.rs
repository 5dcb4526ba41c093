//! Changes of a tenant's record, which every shard needs.

use std::sync::{Arc, Weak};
use switchward_machine::TenantId;
use switchward_state::{Command, Reply};

use super::Cluster;
use crate::failure::Failure;
use crate::limits::TENANCIES_CONFIRM_INTERVAL;
use crate::shard::Shard;
use crate::shards::Shards;

impl Cluster {
    /// Changes the catalogue's record, then every shard's copy. Runs as a task of its own: a caller who disconnects
    /// in between must not leave the shards with the old copy.
    pub(super) async fn change_tenancy(
        &self,
        command: Arc<Command>,
        tenant: TenantId,
    ) -> Result<Reply, Failure> {
        let shards = Arc::clone(&self.0);
        let change = async move {
            let reply = shards.submit(command).await?;
            // The catalogue has the change; the leader of a shard that has not got it yet fetches it when it can, and takes no
            // decisions about gates before that, see `tenancies`.
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

/// Confirms the copies of one shard until the cluster or the shard is gone.
pub(super) async fn work(shard: Shard, cluster: Weak<Shards>) {
    let mut tick = tokio::time::interval(TENANCIES_CONFIRM_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = shard.tenancies().notify.notified() => {}
        }
        let Some(cluster) = cluster.upgrade() else { return };
        if shard.draining() {
            return;
        }
        if shard.leads() {
            cluster.try_confirm(&shard).await;
        }
    }
}
