//! What the rows of approvals cost in memory.

use super::{Call, Closed, Grant};
use crate::memory::InMemory;

impl InMemory for Closed {
    fn cached(&self) -> bool {
        false
    }
}

impl InMemory for Call {
    fn cached(&self) -> bool {
        false
    }
}

impl InMemory for Grant {
    fn cached(&self) -> bool {
        false
    }
}
