//! A tenant's record, which every shard needs: the catalogue owns it, and each shard gets a copy.

use switchward_engine::{
    Body, Command, InstallMachine, InstallTenancy, Key, Reply, Row, Scope, View as _, ViewError,
};
use switchward_machine::{Digest, TenantId};

use super::Cluster;
use crate::failure::Failure;
use crate::shard::Shard;
use std::sync::Arc;

impl Cluster {
    /// Changes the catalogue's record, then every shard's copy. Runs as a task of its own: a caller who disconnects
    /// in between must not leave the shards with the old copy.
    pub(super) async fn change_tenancy(&self, command: Command, tenant: TenantId) -> Result<Reply, Failure> {
        let cluster = self.clone();
        let change = async move {
            let reply = cluster.0.submit(command).await?;
            cluster.spread(tenant).await.map(|()| reply)
        };
        tokio::spawn(change).await.unwrap_or(Err(Failure::Stopped))
    }

    /// Gives every shard its copy of a tenant's record, unless it is up to date.
    ///
    /// # Errors
    /// As [`Failure`] says; some shards may then have the record and others not, and repeating the call completes it.
    pub async fn spread(&self, tenant: TenantId) -> Result<(), Failure> {
        let row = self.catalogue().read().await?.row(&Key::tenancy_record(tenant));
        let row = row.map_err(|error| self.unreadable(&error))?;
        let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(()) };
        for shard in &self.0.shards {
            let known = shard.read().await?.row(&Key::tenancy(tenant));
            let known = known.map_err(|error| self.unreadable(&error))?;
            if matches!(known.as_deref(), Some(Row::Tenancy(known)) if known.revision >= tenancy.revision) {
                continue;
            }
            for policy in &tenancy.policies {
                self.install_in(shard, tenant, policy.machine).await?;
            }
            let install = Command::of_server(
                tenant,
                Scope::Shard,
                Body::InstallTenancy(InstallTenancy { tenancy: tenancy.clone() }),
            );
            shard.submit(install).await?;
        }
        Ok(())
    }

    /// Installs a machine of the catalogue in a shard that lacks it.
    async fn install_in(&self, shard: &Shard, tenant: TenantId, machine: Digest) -> Result<(), Failure> {
        let key = Key::machine(tenant, machine);
        if shard.read().await?.row(&key).map_err(|error| self.unreadable(&error))?.is_some() {
            return Ok(());
        }
        let found = self.catalogue().read().await?.row(&key).map_err(|error| self.unreadable(&error))?;
        let Some(Row::Machine(machine)) = found.as_deref() else {
            return Err(self.unreadable(&ViewError(format!("the catalogue has no machine {machine}"))));
        };
        let body = Body::InstallMachine(InstallMachine { machine: Arc::clone(machine) });
        shard.submit(Command::of_server(tenant, Scope::Shard, body)).await.map(|_| ())
    }
}
