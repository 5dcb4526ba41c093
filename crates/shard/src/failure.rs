//! Why a command failed.

use std::error::Error;
use switchward_state::Rejection;

/// Why a command or a read failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The engine refused it; nothing was changed.
    #[error("{}", .0.message)]
    Rejected(Rejection),
    /// The shard has no leader here at present; nothing was changed.
    #[error("the shard has no leader now; try again")]
    Electing,
    /// The command was written to the log, and this server does not know whether a majority has it: it may be executed
    /// or not. The same request id finds out.
    #[error(
        "it is unknown whether the request was executed: the shard lost its leader meanwhile; send it again with the \
         same request id, or read what it changes"
    )]
    OutcomeUnknown,
    /// The server failed to decide it, because of a defect of its own; nothing was changed.
    #[error(
        "the server failed to carry out the request, because of a defect of its own; nothing was changed"
    )]
    Internal,
    /// The shard could not reach the catalogue for some seconds, so it does not know who may still decide; nothing was
    /// changed.
    #[error("the shard cannot confirm who may decide, because it does not reach the catalogue; try again")]
    Unconfirmed,
    /// The buckets have other shards by the map of another server; nothing was changed. One of the two has an old map, and
    /// did not get the newer one in time.
    #[error("a server that the request came to has another map of the cluster, of epoch {epoch}; try again")]
    OtherMap {
        /// The epoch of the map by which the request was refused.
        epoch: u64,
    },
    /// The shard's queue is full; nothing was changed.
    #[error("the shard is overloaded; try again later")]
    Overloaded,
    /// The disk has too little space for this command; nothing was changed.
    #[error(
        "the server's disk has {free_bytes} bytes free, {needed_bytes} are needed; the server continues by itself when \
         there is enough space"
    )]
    DiskLow {
        /// Free bytes of the disk.
        free_bytes: u64,
        /// Free bytes from which the command is admitted.
        needed_bytes: u64,
    },
    /// The server is shutting down; nothing was changed.
    #[error("the server is shutting down")]
    Draining,
    /// This server's replica of the shard has failed or stopped; nothing was changed.
    #[error("the shard has stopped on this server")]
    Stopped,
}

impl Failure {
    /// Returns true if the shard takes nothing more on this server, so that trying again here cannot succeed.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Draining | Self::Stopped => true,
            Self::Rejected(_)
            | Self::Electing
            | Self::OutcomeUnknown
            | Self::Internal
            | Self::Unconfirmed
            | Self::OtherMap { .. }
            | Self::Overloaded
            | Self::DiskLow { .. } => false,
        }
    }

    /// The failure of a step before the command itself: whatever became of the step, the command was not executed.
    #[must_use]
    pub(crate) fn before(self) -> Self {
        match self {
            Self::OutcomeUnknown => Self::Electing,
            Self::Rejected(_)
            | Self::Electing
            | Self::Internal
            | Self::Unconfirmed
            | Self::OtherMap { .. }
            | Self::Overloaded
            | Self::DiskLow { .. }
            | Self::Draining
            | Self::Stopped => self,
        }
    }
}

/// An error with its causes, in one line.
pub(crate) fn line(error: &(dyn Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(&format!(": {error}"));
        cause = error.source();
    }
    line
}

impl From<Rejection> for Failure {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}
