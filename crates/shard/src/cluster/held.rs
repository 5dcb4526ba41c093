//! The tenants whose effects are held after a restore.

use std::io;
use std::ops::ControlFlow;
use switchward_machine::TenantId;
use switchward_state::{Key, Kind, Row, View as _};

use super::Cluster;
use crate::failure::Failure;
use crate::view::StateView;

impl Cluster {
    /// The tenants whose effects are held, as this server knows them. Reads a row of each tenant.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn tenants_held(&self) -> io::Result<Vec<TenantId>> {
        held(&self.catalogue().read_stale())
    }

    /// As [`tenants_held`](Self::tenants_held), with every change that was acknowledged before.
    ///
    /// # Errors
    /// The catalogue has no leader, or a row cannot be read.
    pub async fn tenants_held_now(&self) -> Result<Vec<TenantId>, Failure> {
        held(&self.catalogue().read().await?).map_err(|error| {
            tracing::error!(%error, "failed to read the tenants whose effects are held");
            Failure::Internal
        })
    }
}

fn held(view: &StateView) -> io::Result<Vec<TenantId>> {
    let mut tenants = Vec::new();
    let prefix = Key::prefix_of_catalogue(TenantId(0), Kind::Tenant);
    let read = view.scan(&prefix, None, &mut |_, row| {
        if let Row::Tenant(tenant) = &**row
            && tenant.deleted.is_none()
        {
            tenants.push(tenant.id);
        }
        ControlFlow::Continue(())
    });
    read.map_err(io::Error::other)?;
    let mut held = Vec::new();
    for tenant in tenants {
        let row = view.row(&Key::tenancy_record(tenant)).map_err(io::Error::other)?;
        if let Some(Row::Tenancy(tenancy)) = row.as_deref()
            && tenancy.held.is_some()
        {
            held.push(tenant);
        }
    }
    Ok(held)
}
