//! What the rows of runs cost in memory.

use super::{Data, Run, Slot};
use crate::memory::{InMemory, ROW_BYTES};

impl InMemory for Run {
    fn cached(&self) -> bool {
        true
    }
}

impl InMemory for Data {
    fn cached(&self) -> bool {
        true
    }

    fn memory_bytes(&self) -> usize {
        // Values of JSON take several times the bytes of their text, which is counted once.
        ROW_BYTES + 4 * self.text_bytes()
    }
}

impl InMemory for Slot {
    fn cached(&self) -> bool {
        true
    }
}
