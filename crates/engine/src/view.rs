//! What a decision may read.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::{Key, Row};

/// The rows of one shard, as they stand after the last decision.
pub trait View {
    /// The row of this key.
    ///
    /// # Errors
    /// The row cannot be read; whoever asked must not decide anything.
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError>;

    /// The rows whose keys begin with `prefix`, from `after` on (exclusive, where given), in the order of their
    /// keys, until `visit` breaks off.
    ///
    /// # Errors
    /// A row cannot be read.
    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError>;
}

/// A row cannot be read, or is not what its key says. The shard that sees it must stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewError(pub String);

impl std::fmt::Display for ViewError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ViewError {}
