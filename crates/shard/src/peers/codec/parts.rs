//! What several messages have in common.

use minicbor::{Decode, Encode};
use openraft::vote::leader_id_std::CommittedLeaderId;

use crate::types::{LogId, Vote};

/// The stored form of Raft's vote; its numbers are fixed.
#[derive(Debug, Clone, Copy, Encode, Decode)]
pub(super) struct SentVote {
    #[n(0)]
    term: u64,
    #[n(1)]
    server: u64,
    #[n(2)]
    committed: bool,
}

impl From<&Vote> for SentVote {
    fn from(vote: &Vote) -> Self {
        Self { term: vote.leader_id.term, server: vote.leader_id.voted_for, committed: vote.committed }
    }
}

impl From<SentVote> for Vote {
    fn from(sent: SentVote) -> Self {
        let SentVote { term, server, committed } = sent;
        if committed { Self::new_committed(term, server) } else { Self::new(term, server) }
    }
}

/// A position in the log.
#[derive(Debug, Clone, Copy, Encode, Decode)]
pub(super) struct SentLogId {
    #[n(0)]
    term: u64,
    #[n(1)]
    index: u64,
}

impl From<LogId> for SentLogId {
    fn from(id: LogId) -> Self {
        Self { term: id.leader_id.term, index: id.index }
    }
}

impl From<SentLogId> for LogId {
    fn from(sent: SentLogId) -> Self {
        Self { leader_id: CommittedLeaderId::new(sent.term), index: sent.index }
    }
}
