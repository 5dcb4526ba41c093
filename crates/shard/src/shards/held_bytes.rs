//! What tenants held a moment ago, so that not every command reads a row of each shard.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Instant;
use switchward_machine::TenantId;

use crate::limits::{QUOTA_LOOK, USE_TENANTS_MAX};

/// The bytes that tenants held in all shards when this server last read them.
#[derive(Default)]
pub(crate) struct HeldBytes(Mutex<BTreeMap<TenantId, Seen>>);

#[derive(Clone, Copy)]
struct Seen {
    bytes: u64,
    at: Instant,
}

impl HeldBytes {
    /// What a tenant held within the last [`QUOTA_LOOK`]; `None` if it was not read then.
    pub(crate) fn lately(&self, tenant: TenantId, now: Instant) -> Option<u64> {
        let seen = self.0.lock().get(&tenant).copied()?;
        (now.saturating_duration_since(seen.at) < QUOTA_LOOK).then_some(seen.bytes)
    }

    /// Records what a tenant holds.
    pub(crate) fn note(&self, tenant: TenantId, bytes: u64, now: Instant) {
        let mut all = self.0.lock();
        if all.len() >= USE_TENANTS_MAX {
            all.clear();
        }
        all.insert(tenant, Seen { bytes, at: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_counts_for_a_moment() {
        let (held, begun) = (HeldBytes::default(), Instant::now());
        held.note(TenantId(1), 7, begun);
        assert_eq!(held.lately(TenantId(1), begun + QUOTA_LOOK / 2), Some(7));
        assert_eq!(held.lately(TenantId(1), begun + QUOTA_LOOK), None);
        assert_eq!(held.lately(TenantId(2), begun), None);
        for tenant in 2..=u32::try_from(USE_TENANTS_MAX).unwrap() + 1 {
            held.note(TenantId(tenant), 0, begun);
        }
        assert_eq!(held.lately(TenantId(1), begun), None, "it was forgotten");
        assert!(held.0.lock().len() <= USE_TENANTS_MAX);
    }
}
