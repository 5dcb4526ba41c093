//! A tenant's record, which every shard needs: the catalogue owns it, and each shard gets a copy.

use futures::future::join_all;
use std::sync::Arc;
use switchward_machine::{Digest, TenantId};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, InstallTenancy};
use switchward_state::{Body, Command, Key, Row, View as _, ViewError};
use tokio::time::Instant;

use super::Shards;
use crate::failure::Failure;
use crate::limits::{TENANCIES_COMPARED_AT_ONCE, TENANCIES_CONFIRM_WAIT};
use crate::shard::Shard;
use crate::view::StateView;

impl Shards {
    /// Gives every shard its copy of a tenant's record, unless it is up to date. One that cannot be reached stops no other.
    ///
    /// # Errors
    /// The first [`Failure`]; every shard that can be reached has the record then, and the others fetch it.
    pub(crate) async fn spread(&self, tenant: TenantId) -> Result<(), Failure> {
        let given = self.owners.iter().map(|shard| self.give(shard, tenant));
        join_all(given).await.into_iter().collect()
    }

    /// Confirms that a shard has all records as the catalogue has them, and gives it those that it lacks. What fails is
    /// tried again by the shard's task.
    pub(crate) async fn try_confirm(&self, shard: &Shard) {
        match tokio::time::timeout(TENANCIES_CONFIRM_WAIT, self.confirm(shard)).await {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => {
                tracing::debug!(shard = shard.number(), %failure, "failed to compare the tenants' records");
            }
            Err(_) => tracing::debug!(shard = shard.number(), "timed out comparing the tenants' records"),
        }
    }

    async fn confirm(&self, shard: &Shard) -> Result<(), Failure> {
        let asked = Instant::now();
        let rows = self.catalogue.read().await?;
        // Counted before the records are read, so that a change meanwhile is found the next time.
        let changes = self.catalogue.tenancies().changes();
        if !shard.tenancies().include(changes) {
            // The rows of both are read once for all tenants: a question to a majority for each takes too long for thousands.
            let copies = shard.read().await?;
            for (at, tenant) in
                recorded(&rows).map_err(|error| self.unreadable(&error))?.into_iter().enumerate()
            {
                if lacks(&rows, &copies, tenant).map_err(|error| self.unreadable(&error))? {
                    self.give(shard, tenant).await?;
                }
                if at.is_multiple_of(TENANCIES_COMPARED_AT_ONCE) {
                    tokio::task::yield_now().await;
                }
            }
        }
        shard.tenancies().confirm(changes, asked);
        Ok(())
    }

    /// Gives one shard its copy of a tenant's record, unless it is up to date.
    async fn give(&self, shard: &Shard, tenant: TenantId) -> Result<(), Failure> {
        let row = self.catalogue.read().await?.row(&Key::tenancy_record(tenant));
        let row = row.map_err(|error| self.unreadable(&error))?;
        let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(()) };
        let known = shard.read().await?.row(&Key::tenancy(tenant));
        let known = known.map_err(|error| self.unreadable(&error))?;
        if matches!(known.as_deref(), Some(Row::Tenancy(known)) if known.revision >= tenancy.revision) {
            return Ok(());
        }
        for policy in &tenancy.policies {
            self.install_in(shard, tenant, policy.machine).await?;
        }
        let mut tenancy = tenancy.clone();
        // The catalogue may have removed its own rows; the shard's are still there.
        if let Some(deletion) = &mut tenancy.deletion {
            deletion.done = None;
        }
        let install = CatalogueCommand::InstallTenancy(InstallTenancy { tenancy });
        let install = Command::in_own_scope(tenant, Body::Catalogue(install));
        shard.submit(install).await.map(|_| ())
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
        shard.submit(Command::in_own_scope(tenant, body)).await.map(|_| ())
    }
}

/// Returns true if a shard's copy of a tenant's record is older than the catalogue's, or missing.
fn lacks(catalogue: &StateView, shard: &StateView, tenant: TenantId) -> Result<bool, ViewError> {
    let record = catalogue.row(&Key::tenancy_record(tenant))?;
    let Some(Row::Tenancy(record)) = record.as_deref() else { return Ok(false) };
    let copy = shard.row(&Key::tenancy(tenant))?;
    Ok(!matches!(copy.as_deref(), Some(Row::Tenancy(copy)) if copy.revision >= record.revision))
}

/// The tenants that have rows in the catalogue; the record of one that was deleted stays.
fn recorded(rows: &StateView) -> Result<Vec<TenantId>, ViewError> {
    let (mut found, mut next) = (Vec::new(), 1);
    let end = Key::before_tenant_in_catalogue(TenantId(u32::MAX));
    while let Some(key) = rows.first_between(&Key::before_tenant_in_catalogue(TenantId(next)), &end)? {
        let tenant = key.tenant_of();
        found.push(tenant);
        let Some(after) = tenant.0.checked_add(1) else { break };
        next = after;
    }
    Ok(found)
}
