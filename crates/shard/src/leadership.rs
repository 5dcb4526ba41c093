//! Who leads, and in which term.

use openraft::{
    ReadPolicy,
    error::{Fatal, LinearizableReadError, RaftError},
};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failed::Failed;
use crate::failure::Failure;
use crate::group::{Group, NODE_PANICKED};
use crate::types::{Raft, TypeConfig};

/// What this server knows of its own leadership of a group.
///
/// Nothing is decided or read in a term before that term's own blank entry is applied: until then the rows may
/// lack what an earlier term has acknowledged.
pub(crate) struct Leadership {
    raft: Raft,
    failed: Failed,
    /// The last term whose blank entry is known to be applied.
    known: AtomicU64,
}

/// No term: a group that has just been initialized is in term 0 for a moment.
const NO_TERM: u64 = u64::MAX;

impl Leadership {
    pub(crate) fn of(group: &Group) -> Self {
        let (raft, failed) = (group.raft.clone(), group.shared.failed.clone());
        Self { raft, failed, known: AtomicU64::new(NO_TERM) }
    }

    /// The term that this server leads in, as far as it knows.
    pub(crate) fn current(&self) -> Option<u64> {
        self.raft.as_leader().ok().map(|leader| leader.leader_id().term)
    }

    /// Returns true if this server leads, and is known to have applied everything of earlier terms.
    pub(crate) fn is_settled(&self) -> bool {
        self.current().is_some_and(|term| self.known.load(Ordering::Acquire) == term)
    }

    /// The term that this server leads in, with everything of earlier terms applied.
    ///
    /// # Errors
    /// It does not lead, or the group has stopped.
    pub(crate) async fn term(&self) -> Result<u64, Failure> {
        self.check()?;
        let term = self.current().ok_or(Failure::Electing)?;
        if self.known.load(Ordering::Acquire) == term {
            return Ok(term);
        }
        if planted!(DecideBeforeBarrier) {
            return Ok(term);
        }
        let term = self.confirmed().await?;
        self.known.store(term, Ordering::Release);
        Ok(term)
    }

    /// The same, and a majority of the servers confirms that no other server leads: the rows hold everything that was
    /// acknowledged before this call.
    ///
    /// # Errors
    /// As of [`Leadership::term`].
    pub(crate) async fn confirmed(&self) -> Result<u64, Failure> {
        self.check()?;
        // Boxed: openraft's future has 2.7 KB, and would be a part of every reader's.
        let read = Box::pin(self.raft.ensure_linearizable(ReadPolicy::ReadIndex)).await;
        read.map(|read| read.committed_leader_id().term).map_err(|error| self.failure(error))
    }

    /// The same, for a reader on another server: the index of the entry that it must have applied.
    ///
    /// # Errors
    /// As of [`Leadership::term`].
    pub(crate) async fn read_index(&self) -> Result<u64, Failure> {
        self.check()?;
        let read = Box::pin(self.raft.ensure_linearizable(ReadPolicy::ReadIndex)).await;
        read.map(|read| read.log_id().index).map_err(|error| self.failure(error))
    }

    /// Returns true if a reader on this server need not ask whether another one leads: never, but for a planted fault.
    pub(crate) fn is_trusted(&self) -> bool {
        planted!(ReadWithoutQuorum) && self.is_settled()
    }

    fn check(&self) -> Result<(), Failure> {
        if self.failed.why().is_some() { Err(Failure::Stopped) } else { Ok(()) }
    }

    fn failure(&self, error: RaftError<TypeConfig, LinearizableReadError<TypeConfig>>) -> Failure {
        match error {
            RaftError::APIError(_) => Failure::Electing,
            RaftError::Fatal(Fatal::Panicked) => {
                self.failed.set(NODE_PANICKED);
                Failure::Stopped
            }
            RaftError::Fatal(_) => Failure::Stopped,
        }
    }
}
