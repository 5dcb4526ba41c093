//! What the program reads by itself: when it starts, and when it restores a backup.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::session::Session;
use switchward_state::{Key, Kind, ReadRows as _, Row, SharedRow, View as _};

use super::Cluster;
use crate::failure::Failure;

impl Cluster {
    /// The time of the last decision of the shards that have not failed; 0 if nothing was decided. A shard without a leader
    /// decides nothing: this server has its last decision, or one a little before it.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub async fn last_decision(&self) -> Result<Time, Failure> {
        let mut last = Time(0);
        for shard in self.all().filter(|shard| shard.group().failed().is_none()) {
            let rows = match shard.read().await {
                Err(Failure::Electing | Failure::OtherMap { .. }) => shard.read_stale(),
                read => read?,
            };
            last = last.max(rows.last_decision().map_err(|error| self.0.unreadable(&error))?);
        }
        Ok(last)
    }

    /// The tenants that are not being deleted, by name.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub async fn tenants_by_name(&self) -> Result<BTreeMap<String, TenantId>, Failure> {
        let mut tenants = BTreeMap::new();
        let prefix = Key::prefix_of_catalogue(TenantId(0), Kind::Tenant);
        let read = self.catalogue().read().await?.scan(&prefix, None, &mut |_, row| {
            if let Row::Tenant(tenant) = &**row
                && tenant.deleted.is_none()
            {
                tenants.insert(tenant.name.clone(), tenant.id);
            }
            ControlFlow::Continue(())
        });
        read.map_err(|error| self.0.unreadable(&error))?;
        Ok(tenants)
    }

    /// A session, even while it is being removed; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub async fn session(
        &self,
        tenant: TenantId,
        id: SessionId,
    ) -> Result<Option<SharedRow<Session>>, Failure> {
        let rows = self.read_of(id.bucket()).await?;
        rows.session(tenant, id).map_err(|error| self.0.unreadable(&error))
    }
}
