//! The leader of a group writes marks.

use openraft::{
    async_runtime::WatchReceiver, impls::ProgressResponder, vote::leader_id_std::CommittedLeaderId,
};
use tokio::time::timeout;

use crate::limits::COMMIT_WAIT;
use crate::mark::{ID_BYTES, Mark, Takes};
use crate::members::Marked;
use crate::shard::Shard;
use crate::types::Payload;

/// Writes a mark at which all replicas take their digests, if this server leads.
///
/// # Errors
/// It does not lead, or no majority has the entry in time: then it may be written all the same, and nobody needs it.
pub(crate) async fn write_digest_mark(shard: &Shard) -> Result<Marked, String> {
    let term = shard.term().await.map_err(|failure| failure.to_string())?;
    write_mark(shard, term, Mark { id: [0; ID_BYTES], takes: Takes::Digest }).await
}

/// Writes a mark in this term. Returns when it is applied here.
///
/// # Errors
/// This server does not lead in the term, or no majority has the entry in time.
pub(crate) async fn write_mark(shard: &Shard, term: u64, mark: Mark) -> Result<Marked, String> {
    let raft = shard.group().raft();
    let (responder, outcome) = ProgressResponder::complete_only();
    let write = raft.write(Payload(mark.encode())).with_leader(CommittedLeaderId::new(term));
    write.responder(responder).await.map_err(|error| error.to_string())?;
    let late = || "no majority of the servers has the entry".to_owned();
    let written = timeout(COMMIT_WAIT, outcome).await.map_err(|_| late())?;
    let written = written.map_err(|_| "the group has stopped".to_owned())?;
    let index = written.map_err(|error| error.to_string())?.log_id.index;
    let metrics = raft.metrics();
    let now = metrics.borrow_watched();
    let members = now.membership_config.membership();
    Ok(Marked { index, voters: members.voter_ids().collect(), learners: members.learner_ids().collect() })
}
