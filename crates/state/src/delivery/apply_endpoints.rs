//! What the catalogue's record of a tenant says of its endpoints' health and of its own outbox. Its revision stays, because
//! shards do not need to know that.

use crate::catalogue::{Tenancy, TenantOutbox};
use crate::delivery::EndpointHealth;
use crate::{Key, Row, Site, ViewError, WriteRows};

/// Notes how an endpoint does.
pub(crate) fn noted(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    id: &str,
    health: &EndpointHealth,
) -> Result<(), ViewError> {
    change(rows, site, |tenancy| {
        if let Some(endpoint) = tenancy.endpoints.iter_mut().find(|one| one.id == id) {
            endpoint.health = Some(health.clone());
        }
    })
}

/// A message about the tenant itself waits to go out.
pub(crate) fn queued(rows: &mut dyn WriteRows, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    change(rows, site, |tenancy| {
        let TenantOutbox { last, waiting } = tenancy.outbox.get_or_insert_default();
        (*last, *waiting) = (number, waiting.saturating_add(1));
    })
}

/// Such a message has arrived, or is given up.
pub(crate) fn gone(rows: &mut dyn WriteRows, site: &Site<'_>) -> Result<(), ViewError> {
    change(rows, site, |tenancy| {
        let outbox = tenancy.outbox.get_or_insert_default();
        outbox.waiting = outbox.waiting.saturating_sub(1);
    })
}

/// Changes the tenant's record.
fn change(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    how: impl FnOnce(&mut Tenancy),
) -> Result<(), ViewError> {
    let key = Key::tenancy_record(site.tenant);
    let Some(mut tenancy) = rows.tenancy_at(&key)?.map(|known| Tenancy::clone(&known)) else {
        return Err(ViewError(format!("key {key:?} holds no tenancy")));
    };
    how(&mut tenancy);
    rows.put(key, Row::Tenancy(tenancy));
    Ok(())
}
