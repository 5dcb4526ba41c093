//! How many names are looked up for one tenant at one time. The system gives up a name whose servers are silent only after a
//! while, so a tenant with many such names would keep the lookups of others waiting.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{LOOKUPS_OF_TENANT_MAX, LOOKUPS_TENANTS_MAX};

/// The lookups in progress of each tenant; `None` for the operator's own.
#[derive(Default)]
pub(super) struct Lookups(Mutex<BTreeMap<Option<u32>, Arc<Semaphore>>>);

impl Lookups {
    /// Waits until one more name of a tenant may be looked up. The lookup counts until the result is dropped.
    ///
    /// Cancel safe.
    pub(super) async fn begin(&self, tenant: Option<u32>) -> OwnedSemaphorePermit {
        let turns = {
            let mut known = self.0.lock();
            if known.len() >= LOOKUPS_TENANTS_MAX {
                // A lookup in progress, and one that waits, hold theirs.
                known.retain(|_, turns| Arc::strong_count(turns) > 1);
            }
            let turns =
                known.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(LOOKUPS_OF_TENANT_MAX)));
            Arc::clone(turns)
        };
        turns.acquire_owned().await.expect("the semaphore is never closed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The turn of a lookup, if it need not wait.
    async fn at_once(lookups: &Lookups, tenant: u32) -> Option<OwnedSemaphorePermit> {
        tokio::select! {
            biased;
            turn = lookups.begin(Some(tenant)) => Some(turn),
            () = std::future::ready(()) => None,
        }
    }

    #[tokio::test]
    async fn a_tenant_whose_lookups_hang_does_not_keep_others_waiting() {
        let (lookups, mut hanging) = (Lookups::default(), Vec::new());
        while let Some(turn) = at_once(&lookups, 1).await {
            hanging.push(turn);
        }
        assert_eq!(hanging.len(), LOOKUPS_OF_TENANT_MAX);
        assert!(at_once(&lookups, 2).await.is_some());
        hanging.pop();
        assert!(at_once(&lookups, 1).await.is_some());
    }

    #[tokio::test]
    async fn tenants_without_a_lookup_are_forgotten() {
        let lookups = Lookups::default();
        let turn = lookups.begin(None).await;
        for tenant in 0..u32::try_from(2 * LOOKUPS_TENANTS_MAX).expect("a small number") {
            drop(lookups.begin(Some(tenant)).await);
        }
        let known = lookups.0.lock();
        assert!(known.len() <= LOOKUPS_TENANTS_MAX && known.contains_key(&None), "{}", known.len());
        drop((known, turn));
    }
}
