//! How many commands of a shard may be under way to its leader.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_machine::TenantId;

use crate::limits::{FORWARDS_MAX, FORWARDS_OF_TENANT_MAX};

/// The commands that are under way, by tenant: one tenant cannot use up what all share.
#[derive(Default)]
pub(crate) struct ForwardPermits(Mutex<BTreeMap<TenantId, usize>>);

/// A permit for one command, until it is dropped.
pub(crate) struct ForwardPermit {
    permits: Arc<ForwardPermits>,
    tenant: TenantId,
}

impl ForwardPermits {
    /// A permit for one more command of a tenant; `None` if there are [`FORWARDS_OF_TENANT_MAX`] of it or
    /// [`FORWARDS_MAX`] in all.
    pub(crate) fn take(self: &Arc<Self>, tenant: TenantId) -> Option<ForwardPermit> {
        let mut counts = self.0.lock();
        let all: usize = counts.values().sum();
        let own = counts.get(&tenant).copied().unwrap_or(0);
        if all >= FORWARDS_MAX || own >= FORWARDS_OF_TENANT_MAX {
            return None;
        }
        counts.insert(tenant, own + 1);
        Some(ForwardPermit { permits: Arc::clone(self), tenant })
    }
}

impl Drop for ForwardPermit {
    fn drop(&mut self) {
        let mut counts = self.permits.0.lock();
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_leaves_permits_to_others() {
        let permits = Arc::new(ForwardPermits::default());
        let held: Vec<ForwardPermit> =
            (0..FORWARDS_OF_TENANT_MAX).filter_map(|_| permits.take(TenantId(1))).collect();
        assert_eq!(held.len(), FORWARDS_OF_TENANT_MAX);
        assert!(permits.take(TenantId(1)).is_none());
        assert!(permits.take(TenantId(2)).is_some());
        drop(held);
        assert!(permits.take(TenantId(1)).is_some());
        assert!(permits.0.lock().is_empty());
    }

    #[test]
    fn all_tenants_together_are_bounded() {
        let permits = Arc::new(ForwardPermits::default());
        let held: Vec<ForwardPermit> = (0..2 * u32::try_from(FORWARDS_MAX).unwrap())
            .filter_map(|tenant| permits.take(TenantId(tenant)))
            .collect();
        assert_eq!(held.len(), FORWARDS_MAX);
    }
}
