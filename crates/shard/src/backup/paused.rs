//! A leader that decides nothing for a backup.

use tokio::sync::OwnedMutexGuard;

use crate::mark::ID_BYTES;

/// See the module. It goes on when this is dropped.
pub(crate) struct Pause {
    /// The backup's id.
    pub(super) id: [u8; ID_BYTES],
    /// The term in which it has stopped.
    pub(super) term: u64,
    /// Keeps the loop from deciding.
    pub(super) _deciding: OwnedMutexGuard<()>,
}
