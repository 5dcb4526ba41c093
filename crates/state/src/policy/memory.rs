//! What the rows of policies cost in memory.

use super::LedgerRow;
use crate::memory::{ENTRY_BYTES, InMemory, ROW_BYTES};

impl InMemory for LedgerRow {
    fn cached(&self) -> bool {
        true
    }

    fn structure_bytes(&self) -> usize {
        ROW_BYTES + (self.calls.len() + self.reservations.len() * 4) * ENTRY_BYTES
    }

    fn text_bytes(&self) -> usize {
        // Long lists of short entries, which the structure counts.
        0
    }
}
