//! Rows in the state store's form.

use std::sync::Arc;
use switchward_state::{Key, Row};
use switchward_store::Record;

/// A row of the engine's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored(pub(crate) Arc<Row>);

/// What one entry changes in the state store: rows and index entries by their keys, or `None` for what is removed.
pub(crate) type Puts = Vec<(Key, Option<Arc<Row>>)>;

impl Record for Stored {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode_into(out);
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        Row::decode(bytes).map(|row| Self(Arc::new(row))).map_err(|error| error.0)
    }

    fn weight(&self) -> usize {
        self.0.memory_bytes()
    }

    fn cache(&self) -> bool {
        self.0.is_cached()
    }
}
