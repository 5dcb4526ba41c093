//! What the rows of sessions cost in memory.

use super::{LastMessage, Removed, Session, StoredReply};
use crate::memory::{ENTRY_BYTES, InMemory, ROW_BYTES};

impl InMemory for Session {
    fn cached(&self) -> bool {
        !self.status.ended()
    }

    fn structure_bytes(&self) -> usize {
        let entries = self.replies.listed().len() + self.labels.len() * 4 + self.calls.len();
        let entries = entries + self.callees.len() * 4;
        ROW_BYTES * 2 + entries * ENTRY_BYTES
    }
}

impl InMemory for LastMessage {
    fn cached(&self) -> bool {
        true
    }
}

impl InMemory for StoredReply {
    fn cached(&self) -> bool {
        false
    }
}

impl InMemory for Removed {
    fn cached(&self) -> bool {
        false
    }

    fn structure_bytes(&self) -> usize {
        ROW_BYTES + self.decisions.len() * 2 * ENTRY_BYTES
    }
}
