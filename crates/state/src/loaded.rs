//! What is attached to a reply and is no part of it.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Rows that complete a reply, so that its caller is answered without another read. The crate that decides attaches them
/// and knows their type. Two replies are equal whatever is attached, and neither a log nor a remembered reply has it.
#[derive(Clone, Default)]
pub struct Loaded(pub Option<Arc<dyn Any + Send + Sync>>);

impl PartialEq for Loaded {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Loaded {}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "loaded" } else { "not loaded" })
    }
}
