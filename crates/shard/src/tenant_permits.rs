//! How much of one kind of work is under way at one time, in all and of each tenant.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_machine::TenantId;

/// Permits that tenants share: none of them can use up what all have. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TenantPermits {
    all_max: usize,
    of_tenant_max: usize,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    /// No tenant has zero.
    by_tenant: BTreeMap<TenantId, usize>,
}

/// A permit for one piece of work, or several permits, until it is dropped.
#[derive(Debug)]
pub struct TenantPermit {
    held: Arc<Mutex<Held>>,
    tenant: TenantId,
    permits: usize,
}

impl TenantPermits {
    /// At most `all_max` permits at one time, and of them at most `of_tenant_max` of one tenant.
    #[must_use]
    pub fn new(all_max: usize, of_tenant_max: usize) -> Self {
        Self { all_max, of_tenant_max, held: Arc::default() }
    }

    /// One more permit for a tenant; `None` if it has its most, or if all are taken.
    #[must_use]
    pub fn take(&self, tenant: TenantId) -> Option<TenantPermit> {
        self.take_several(tenant, 1)
    }

    /// As many more permits, at least one, for a tenant; `None` if it would have more than its most, or fewer are left.
    pub(crate) fn take_several(&self, tenant: TenantId, permits: usize) -> Option<TenantPermit> {
        let mut held = self.held.lock();
        let all = held.all.saturating_add(permits);
        let own = held.by_tenant.get(&tenant).copied().unwrap_or(0).saturating_add(permits);
        if all > self.all_max || own > self.of_tenant_max {
            return None;
        }
        held.all = all;
        held.by_tenant.insert(tenant, own);
        Some(TenantPermit { held: Arc::clone(&self.held), tenant, permits })
    }
}

impl Drop for TenantPermit {
    fn drop(&mut self) {
        let mut held = self.held.lock();
        held.all -= self.permits;
        if let Some(own) = held.by_tenant.get_mut(&self.tenant) {
            *own -= self.permits;
            if *own == 0 {
                held.by_tenant.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_leaves_permits_to_others() {
        let permits = TenantPermits::new(8, 4);
        let of_one: Vec<_> = (0..4).map(|_| permits.take(TenantId(1)).expect("a permit is free")).collect();
        assert!(permits.take(TenantId(1)).is_none(), "the tenant has all its permits");
        let others: Vec<_> =
            (2..6).map(|tenant| permits.take(TenantId(tenant)).expect("a permit is free")).collect();
        assert!(permits.take(TenantId(9)).is_none(), "no permit is left");
        drop((of_one, others));
        assert!(permits.take(TenantId(1)).is_some());
        let held = permits.held.lock();
        assert!(held.all == 0 && held.by_tenant.is_empty(), "the permits are free again");
    }

    #[test]
    fn several_permits_are_taken_and_given_back_together() {
        let permits = TenantPermits::new(8, 4);
        let three = permits.take_several(TenantId(1), 3).expect("permits are free");
        assert!(permits.take_several(TenantId(1), 2).is_none(), "the tenant would have too many");
        let one = permits.take_several(TenantId(1), 1).expect("it may have one more");
        let others = permits.take_several(TenantId(2), 4).expect("permits are free");
        assert!(permits.take(TenantId(3)).is_none(), "no permit is left");
        drop(three);
        assert!(permits.take_several(TenantId(3), 4).is_none(), "three are left");
        drop((one, others));
        assert!(permits.take_several(TenantId(3), 4).is_some());
    }
}
