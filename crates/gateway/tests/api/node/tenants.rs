//! The tenants of a node, and whether one of them is being deleted.

use parking_lot::Mutex;
use switchward_machine::TenantId;
use switchward_shard::StateView;
use switchward_state::{Key, Row, View as _};

/// The tenants that were seen in the catalogue, in the order of their numbers. Some tests make hundreds, and
/// look at all of them after each of thousands of calls: a search takes far longer than a read of a record.
#[derive(Default)]
pub(super) struct Tenants(Mutex<Vec<TenantId>>);

impl Tenants {
    /// Returns true if the catalogue still has rows of a tenant that is being deleted.
    pub(super) fn is_one_being_deleted(&self, catalogue: &StateView) -> bool {
        let mut seen = self.0.lock();
        let end = Key::before_tenant_in_catalogue(TenantId(u32::MAX));
        loop {
            // A new tenant has a higher number than all before it.
            let next = seen.last().map_or(1, |last| last.0 + 1);
            let begin = Key::before_tenant_in_catalogue(TenantId(next));
            let found = catalogue.first_between(&begin, &end).expect("rows that can be read");
            let Some(key) = found else { break };
            seen.push(key.tenant_of());
        }
        seen.iter().any(|tenant| is_being_deleted(catalogue, *tenant))
    }
}

fn is_being_deleted(catalogue: &StateView, tenant: TenantId) -> bool {
    let record = catalogue.row(&Key::tenancy_record(tenant)).expect("rows that can be read");
    let Some(Row::Tenancy(record)) = record.as_deref() else { return false };
    record.deletion.as_ref().is_some_and(|deletion| deletion.done.is_none())
}
