//! Answers heartbeats without waiting for a disk.
//!
//! openraft answers an append only when everything is synced that its node has accepted, and a snapshot is installed
//! that it has received. For entries that is what an answer says. A heartbeat needs less: its success says that this
//! server follows the leader in its term, and openraft derives nothing else from it than that, neither that entries are
//! stored here nor that they are committed. So it is given as soon as the node has taken the heartbeat, if this server's
//! vote for that leader is synced and its log is one that the leader knows. A conflict or a higher vote is answered as
//! ever.
//!
//! What follows for disks that stall, at any number of servers and for any length of time: leaders stay leaders, their
//! leases do not expire, reads are confirmed, and a server that installs a snapshot does not count as down. Commands
//! wait for the majority of disks, and are answered that their outcome is unknown only after
//! [`COMMIT_WAIT`](crate::limits::COMMIT_WAIT). A stall of 200 ms in each second causes no election and no refusal. Only
//! two writes of a node hold up its heartbeats, and both belong to a change of leaders: a vote, and the removal of
//! entries that another leader has replaced.

use futures::future::{Either, select};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};
use std::pin::pin;

use super::serve::stopped;
use crate::log_store::LogStore;
use crate::types::{Raft, TypeConfig};

/// Gives a heartbeat to the node, and answers it.
///
/// # Errors
/// It has entries, or the node has stopped.
pub(super) async fn answer(
    raft: &Raft,
    log: &LogStore,
    heartbeat: AppendEntriesRequest<TypeConfig>,
) -> Result<AppendEntriesResponse<TypeConfig>, String> {
    if !heartbeat.entries.is_empty() {
        return Err("a heartbeat has entries".into());
    }
    let (vote, known) = (heartbeat.vote, heartbeat.prev_log_id);
    let synced = pin!(raft.append_entries(heartbeat));
    // The node takes both in the order in which they are polled, so this is its state after the heartbeat.
    let follows = pin!(raft.with_raft_state(move |state| {
        *state.vote_ref() == vote && known <= state.local_committed().copied()
    }));
    let synced = match select(synced, follows).await {
        Either::Left((answer, follows)) => {
            // Answered right after it; openraft reports an error if nobody waits for that.
            let _state = follows.await;
            return answer.map_err(stopped);
        }
        Either::Right((follows, synced)) => {
            if follows.map_err(stopped)? && log.voted() == Some(vote) {
                return Ok(AppendEntriesResponse::Success);
            }
            synced
        }
    };
    synced.await.map_err(stopped)
}
