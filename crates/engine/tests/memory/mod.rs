//! Rows in memory.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};
use switchward_machine::TenantId;
use switchward_state::seal::{KeyRing, RingKey, SEAL_NONCE_BYTES, Sealed, SecretOf};
use switchward_state::{Changes, Key, Row, View, ViewError};

#[derive(Default)]
pub(crate) struct Rows(pub(crate) BTreeMap<Key, Arc<Row>>);

impl View for Rows {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        let behind = |key: &Key| after.is_none_or(|after| key.as_bytes() > after);
        for (key, row) in &self.0 {
            if key.as_bytes().starts_with(prefix) && behind(key) && visit(key, row).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn ring(&self) -> &KeyRing {
        ring()
    }
}

/// The key ring that seals secrets here.
pub(crate) fn ring() -> &'static KeyRing {
    static RING: LazyLock<KeyRing> = LazyLock::new(|| KeyRing::of(vec![RingKey::of([1; 32])]));
    &RING
}

/// A secret, sealed for its owner.
pub(crate) fn sealed(tenant: TenantId, owner: SecretOf<'_>, secret: &[u8]) -> Sealed {
    ring().seal([0; SEAL_NONCE_BYTES], tenant, owner, secret).expect("there is a key")
}

impl Rows {
    pub(crate) fn apply(&mut self, changes: Changes) {
        for (key, row) in changes {
            match row {
                Some(row) => self.0.insert(key, row),
                None => self.0.remove(&key),
            };
        }
    }
}
