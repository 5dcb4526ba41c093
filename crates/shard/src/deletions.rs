//! The tenants that are being deleted.

use switchward_machine::{TenantId, Time};
use switchward_state::{Key, Row, View as _, ViewError};

use crate::view::StateView;

/// The tenants in these rows that are being deleted, and when each deletion began.
///
/// # Errors
/// A row cannot be read.
pub(crate) fn under_way(view: &StateView) -> Result<Vec<(TenantId, Time)>, ViewError> {
    let mut found = Vec::new();
    let of_shard = (Key::before_tenant as fn(TenantId) -> Vec<u8>, Key::tenancy as fn(TenantId) -> Key);
    let of_catalogue = (
        Key::before_tenant_in_catalogue as fn(TenantId) -> Vec<u8>,
        Key::tenancy_record as fn(TenantId) -> Key,
    );
    for (before, record) in [of_shard, of_catalogue] {
        let end = before(TenantId(u32::MAX));
        let mut next = 1;
        while let Some(key) = view.first_between(&before(TenantId(next)), &end)? {
            let tenant = key.tenant_of();
            if let Some(Row::Tenancy(tenancy)) = view.row(&record(tenant))?.as_deref()
                && let Some(deletion) = tenancy.deletion.as_ref().filter(|deletion| deletion.done.is_none())
            {
                found.push((tenant, deletion.at));
            }
            let Some(after) = tenant.0.checked_add(1) else { break };
            next = after;
        }
    }
    Ok(found)
}
