//! A tenant's record, which every shard needs: the catalogue owns it, and each shard gets a copy.

use std::sync::Arc;
use switchward_machine::{Digest, TenantId};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, InstallTenancy};
use switchward_state::{Body, Command, Key, Row, Scope, View as _, ViewError};

use super::Shards;
use crate::failure::Failure;
use crate::shard::Shard;

impl Shards {
    /// Gives every shard its copy of a tenant's record, unless it is up to date.
    ///
    /// # Errors
    /// As [`Failure`] says; some shards may then have the record and others not, and repeating the call completes it.
    pub(crate) async fn spread(&self, tenant: TenantId) -> Result<(), Failure> {
        let row = self.catalogue.read().await?.row(&Key::tenancy_record(tenant));
        let row = row.map_err(|error| self.unreadable(&error))?;
        let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(()) };
        for shard in &self.owners {
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
                Body::Catalogue(CatalogueCommand::InstallTenancy(InstallTenancy {
                    tenancy: tenancy.clone(),
                })),
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
        let found = self.catalogue.read().await?.row(&key).map_err(|error| self.unreadable(&error))?;
        let Some(Row::Machine(machine)) = found.as_deref() else {
            return Err(self.unreadable(&ViewError(format!("the catalogue has no machine {machine}"))));
        };
        let body = Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine {
            machine: Arc::clone(machine),
        }));
        shard.submit(Command::of_server(tenant, Scope::Shard, body)).await.map(|_| ())
    }
}
