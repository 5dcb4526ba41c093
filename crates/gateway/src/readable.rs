//! The shards that can be read at present: a list or a poll takes what they have, and leaves out a shard that is choosing a
//! leader.

use futures::future::join_all;
use switchward_query::Reader;
use switchward_shard::{Cluster, Shard};

use crate::error::{Reason, Refusal};
use crate::refusals::refusal;

/// The rows of the shards that can be read.
pub(crate) struct Readable {
    /// In the order of the shards.
    pub(crate) readers: Vec<Reader>,
    /// The names of the others.
    pub(crate) unreachable: Vec<String>,
}

/// Reads all shards that own buckets, at once.
///
/// # Errors
/// No shard can be read; or one cannot for a reason that does not concern it alone.
pub(crate) async fn readable(cluster: &Cluster) -> Result<Readable, Refusal> {
    let shards = cluster.shards();
    let (mut readers, mut unreachable) = (Vec::with_capacity(shards.len()), Vec::new());
    for (shard, rows) in shards.iter().zip(join_all(shards.iter().map(Reader::linearizable)).await) {
        match rows.map_err(refusal) {
            Ok(rows) => readers.push(rows),
            Err(refused) if is_unreachable(&refused) => {
                unreachable.push(name_of(shard));
                if unreachable.len() == shards.len() {
                    return Err(refused);
                }
            }
            Err(refused) => return Err(refused),
        }
    }
    Ok(Readable { readers, unreachable })
}

/// Returns true if another shard may answer although this one does not. A command whose outcome is unknown was sent to one
/// shard.
pub(crate) fn is_unreachable(refused: &Refusal) -> bool {
    [Reason::ShardElecting, Reason::ShardStopped, Reason::OutcomeUnknown].contains(&refused.reason())
}

/// The name of a shard in answers.
pub(crate) fn name_of(shard: &Shard) -> String {
    format!("shards/{}", shard.number())
}
