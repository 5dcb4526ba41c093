//! Why a command came to nothing.

use switchward_engine::Rejection;

/// Why a command or a read came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The engine refused it; nothing was changed.
    #[error("{}", .0.message)]
    Rejected(Rejection),
    /// The shard has no leader here just now. Whether the command was carried out is not known; the same request
    /// id finds out.
    #[error("the shard has no leader just now; try again")]
    Electing,
    /// The shard's queue is full; nothing was changed.
    #[error("the shard has more to do than it can take; try again a little later")]
    Overloaded,
    /// The server is going down; nothing was changed.
    #[error("the server is shutting down")]
    Draining,
    /// The shard has stopped, because its state could not be read or written.
    #[error("the shard has stopped")]
    Stopped,
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}
