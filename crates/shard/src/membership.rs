//! The membership in force, and what this server is in it.

use openraft::{Instant as _, async_runtime::WatchReceiver};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

use crate::types::{Membership, Raft};

/// What this server knows of the members of a group; asked at the moment of use, because members come and go.
#[derive(Clone)]
pub(crate) struct Members {
    raft: Raft,
    /// True once this process has seen another member.
    others: Arc<AtomicBool>,
    /// True once this server was alone, for the bug that it takes itself for alone for ever.
    #[cfg(feature = "planted")]
    once: Arc<AtomicBool>,
    /// How old the last acknowledgement of a majority may be for a leader to lead.
    lease: Duration,
}

/// What this server is in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leading {
    /// It does not lead.
    No,
    /// It was elected, and either no majority has acknowledged it lately, or it is no longer a voter.
    Unconfirmed,
    /// It leads.
    Yes,
}

impl Members {
    pub(crate) fn of(raft: Raft, lease: Duration) -> Self {
        Self {
            raft,
            others: Arc::default(),
            #[cfg(feature = "planted")]
            once: Arc::default(),
            lease,
        }
    }

    /// Returns true if this server is the only member, and no other server has ever been one as far as this process
    /// knows. Then nobody else can lead, and no other server needs to be asked.
    ///
    /// A second voter counts before it can elect anybody: a group grows through a joint membership, which this server
    /// has in its log before the others can commit the next one without it.
    pub(crate) fn is_alone(&self) -> bool {
        if self.others.load(Ordering::Acquire) {
            return false;
        }
        let own = *self.raft.node_id();
        let metrics = self.raft.metrics();
        let now = metrics.borrow_watched();
        #[cfg(feature = "planted")]
        if planted!(AloneForEver) && self.once.load(Ordering::Acquire) {
            return true;
        }
        let has_others = |members: &Membership| members.nodes().any(|(node, _)| *node != own);
        if has_others(&now.membership_config) || has_others(&now.committed_membership_config) {
            self.others.store(true, Ordering::Release);
            return false;
        }
        let alone = is_only_voter(&now.membership_config, own);
        #[cfg(feature = "planted")]
        if alone && planted!(AloneForEver) {
            self.once.store(true, Ordering::Release);
        }
        alone
    }

    /// Returns true if this server leads its group by its vote and does not vote itself, by a membership that is committed.
    pub(crate) fn leads_without_vote(&self) -> bool {
        if self.raft.as_leader().is_err() {
            return false;
        }
        let own = *self.raft.node_id();
        let metrics = self.raft.metrics();
        let now = metrics.borrow_watched();
        let committed = now.membership_config.log_id() == now.committed_membership_config.log_id();
        committed && now.membership_config.voter_ids().all(|voter| voter != own)
    }

    /// What this server is in its group now, without asking anybody.
    pub(crate) fn leading(&self) -> Leading {
        let Ok(leader) = self.raft.as_leader() else { return Leading::No };
        let own = *self.raft.node_id();
        let metrics = self.raft.metrics();
        let now = metrics.borrow_watched();
        if now.running_state.is_err() {
            return Leading::No;
        }
        let acknowledged = leader.last_quorum_acked().is_some_and(|at| at.elapsed() < self.lease);
        let votes = now.membership_config.voter_ids().any(|voter| voter == own);
        if votes && (acknowledged || is_only_voter(&now.membership_config, own)) {
            Leading::Yes
        } else {
            Leading::Unconfirmed
        }
    }
}

fn is_only_voter(members: &Membership, own: u64) -> bool {
    let configs = members.get_joint_config();
    configs.len() == 1 && configs.iter().flatten().eq([&own])
}
