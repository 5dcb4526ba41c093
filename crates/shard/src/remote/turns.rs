//! How many commands of a shard may be under way to its leader.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_machine::TenantId;

use crate::limits::{FORWARDS_MAX, FORWARDS_OF_TENANT_MAX};

/// The commands that are under way, by tenant: one tenant cannot use up what all share.
#[derive(Default)]
pub(crate) struct Turns(Mutex<BTreeMap<TenantId, usize>>);

/// Counts one command until it is dropped.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    tenant: TenantId,
}

impl Turns {
    /// Counts one more command of a tenant; `None` if there are [`FORWARDS_OF_TENANT_MAX`] of it or
    /// [`FORWARDS_MAX`] in all.
    pub(crate) fn begin(self: &Arc<Self>, tenant: TenantId) -> Option<Turn> {
        let mut counts = self.0.lock();
        let all: usize = counts.values().sum();
        let own = counts.get(&tenant).copied().unwrap_or(0);
        if all >= FORWARDS_MAX || own >= FORWARDS_OF_TENANT_MAX {
            return None;
        }
        counts.insert(tenant, own + 1);
        Some(Turn { turns: Arc::clone(self), tenant })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.turns.0.lock();
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
    fn a_tenant_leaves_turns_to_others() {
        let turns = Arc::new(Turns::default());
        let held: Vec<Turn> = (0..FORWARDS_OF_TENANT_MAX).filter_map(|_| turns.begin(TenantId(1))).collect();
        assert_eq!(held.len(), FORWARDS_OF_TENANT_MAX);
        assert!(turns.begin(TenantId(1)).is_none());
        assert!(turns.begin(TenantId(2)).is_some());
        drop(held);
        assert!(turns.begin(TenantId(1)).is_some());
        assert!(turns.0.lock().is_empty());
    }

    #[test]
    fn all_tenants_together_are_bounded() {
        let turns = Arc::new(Turns::default());
        let held: Vec<Turn> = (0..2 * u32::try_from(FORWARDS_MAX).unwrap())
            .filter_map(|tenant| turns.begin(TenantId(tenant)))
            .collect();
        assert_eq!(held.len(), FORWARDS_MAX);
    }
}
