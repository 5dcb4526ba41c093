//! Which keys of the ring the rows need.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use switchward_machine::TenantId;
use switchward_state::catalogue::Tenancy;
use switchward_state::delivery::WebhookSource;
use switchward_state::seal::{RingKeyId, Sealed, SecretOf};
use switchward_state::{Key, Kind, ReadRows as _, Row, SharedRow, View as _, ViewError};
use switchward_store::{Backup, StoreError};

use super::Cluster;
use crate::backup::each_row;
use crate::failure::Failure;
use crate::view::StateView;

/// How many secrets are sealed under each key.
pub type SealedUnder = BTreeMap<RingKeyId, usize>;

/// Secrets are sealed under keys that the ring lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysMissing(pub Vec<RingKeyId>);

impl fmt::Display for KeysMissing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<String> = self.0.iter().map(RingKeyId::to_string).collect();
        write!(out, "secrets are encrypted under keys that the key ring lacks: {}", ids.join(", "))
    }
}

impl std::error::Error for KeysMissing {}

/// Adds the number of secrets under each key id.
fn count<'s>(secrets: impl Iterator<Item = (SecretOf<'s>, &'s Sealed)>, under: &mut SealedUnder) {
    for (_, sealed) in secrets {
        *under.entry(sealed.key).or_default() += 1;
    }
}

/// Reads a backup to its end, and counts its secrets by their keys.
///
/// # Errors
/// A file is damaged, or holds what this build does not know.
pub fn sealed_in_backup(backup: &Backup) -> Result<SealedUnder, StoreError> {
    let mut under = SealedUnder::new();
    for file in &backup.manifest().files {
        each_row(backup, file, &mut |row| {
            if let Row::Tenancy(tenancy) = row {
                count(tenancy.sealed(), &mut under);
            } else if let Row::WebhookSource(source) = row {
                count(source.sealed(), &mut under);
            }
        })?;
    }
    Ok(under)
}

/// Fails if a needed key is not among these.
///
/// # Errors
/// [`KeysMissing`].
pub fn check_keys(under: &SealedUnder, ids: &[RingKeyId]) -> Result<(), KeysMissing> {
    let ids: BTreeSet<&RingKeyId> = ids.iter().collect();
    let missing: Vec<RingKeyId> = under.keys().filter(|key| !ids.contains(key)).copied().collect();
    if missing.is_empty() { Ok(()) } else { Err(KeysMissing(missing)) }
}

impl Cluster {
    /// How many secrets the rows hold under each key, the copies in the shards among them.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub async fn sealed_under(&self) -> Result<SealedUnder, Failure> {
        let mut under = SealedUnder::new();
        for tenant in self.tenants().await? {
            let (tenancy, sources) = self.sealed_of(tenant).await?;
            tenancy.iter().for_each(|tenancy| count(tenancy.sealed(), &mut under));
            sources.iter().for_each(|source| count(source.sealed(), &mut under));
            // A replica that has failed opens nothing.
            for shard in self.shards().iter().filter(|shard| shard.group().failed().is_none()) {
                let copy = copy_in(&shard.read().await?, tenant);
                let copy = copy.map_err(|error| self.0.unreadable(&error))?;
                copy.iter().for_each(|tenancy| count(tenancy.sealed(), &mut under));
            }
        }
        Ok(under)
    }

    /// The same by the rows that this server has, which may be older: no leader is asked.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub(crate) fn sealed_here(&self) -> Result<SealedUnder, ViewError> {
        let mut under = SealedUnder::new();
        let catalogue = self.catalogue().read_stale();
        for tenant in tenants_in(&catalogue)? {
            let (tenancy, sources) = sealed_in(&catalogue, tenant)?;
            tenancy.iter().for_each(|tenancy| count(tenancy.sealed(), &mut under));
            sources.iter().for_each(|source| count(source.sealed(), &mut under));
            for shard in self.shards().iter().filter(|shard| shard.group().failed().is_none()) {
                let copy = copy_in(&shard.read_stale(), tenant)?;
                copy.iter().for_each(|tenancy| count(tenancy.sealed(), &mut under));
            }
        }
        Ok(under)
    }

    /// The numbers of all tenants.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub async fn tenants(&self) -> Result<Vec<TenantId>, Failure> {
        tenants_in(&self.catalogue().read().await?).map_err(|error| self.0.unreadable(&error))
    }

    /// What holds a tenant's secrets in the catalogue: its record, and its sources of webhooks.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub async fn sealed_of(
        &self,
        tenant: TenantId,
    ) -> Result<(Option<SharedRow<Tenancy>>, Vec<WebhookSource>), Failure> {
        sealed_in(&self.catalogue().read().await?, tenant).map_err(|error| self.0.unreadable(&error))
    }
}

fn tenants_in(view: &StateView) -> Result<Vec<TenantId>, ViewError> {
    let mut tenants = Vec::new();
    let prefix = Key::prefix_of_catalogue(TenantId(0), Kind::Tenant);
    view.scan(&prefix, None, &mut |_, row| {
        if let Row::Tenant(tenant) = &**row {
            tenants.push(tenant.id);
        }
        ControlFlow::Continue(())
    })?;
    Ok(tenants)
}

/// A shard's copy of a tenant's record.
fn copy_in(view: &StateView, tenant: TenantId) -> Result<Option<SharedRow<Tenancy>>, ViewError> {
    view.tenancy_at(&Key::tenancy(tenant))
}

fn sealed_in(
    view: &StateView,
    tenant: TenantId,
) -> Result<(Option<SharedRow<Tenancy>>, Vec<WebhookSource>), ViewError> {
    let tenancy = view.tenancy_at(&Key::tenancy_record(tenant))?;
    let mut sources = Vec::new();
    let prefix = Key::prefix_of_catalogue(tenant, Kind::WebhookSource);
    view.scan(&prefix, None, &mut |_, row| {
        if let Row::WebhookSource(source) = &**row {
            sources.push(source.clone());
        }
        ControlFlow::Continue(())
    })?;
    Ok((tenancy, sources))
}
