//! What the rows of deliveries cost in memory.

use super::{Effect, WebhookSource};
use crate::memory::InMemory;

impl InMemory for Effect {
    fn cached(&self) -> bool {
        false
    }
}

impl InMemory for WebhookSource {
    fn cached(&self) -> bool {
        true
    }
}
