//! Rows in memory.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use switchward_engine::{Changes, Key, Row, View, ViewError};

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
