//! Tenants of which nothing goes out.

use switchward_machine::TenantId;
use switchward_state::{Key, Row, View, ViewError};

/// Returns true if nothing of a tenant may go out now: an operator has not released it after a restore, or it is being
/// deleted. Reads what a shard, or the catalogue, knows of the tenant.
///
/// # Errors
/// A row cannot be read.
pub fn holds_effects(view: &dyn View, tenant: TenantId) -> Result<bool, ViewError> {
    for key in [Key::tenancy(tenant), Key::tenancy_record(tenant)] {
        if let Some(Row::Tenancy(tenancy)) = view.row(&key)?.as_deref() {
            return Ok(tenancy.holds_effects());
        }
    }
    Ok(false)
}
