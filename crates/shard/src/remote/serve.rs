//! Answers what other servers ask of the shards that this one leads.

use bytes::Bytes;
use std::io;
use switchward_engine::encode_loaded;
use switchward_state::catalogue::MapEpochs;

use super::message::{Answer, LeaderQuestion, LeaderRequest, decode_asked, encode_answer};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::shard::Shard;
use crate::shards::CATALOGUE;

/// Answers a question about one group. It is never passed on: if this server does not lead, it says so.
///
/// # Errors
/// This server cannot read the question, or has no replica of the group; nothing was done.
pub async fn serve(cluster: &Cluster, group: u64, asked: &[u8]) -> io::Result<Bytes> {
    let LeaderQuestion { epochs, request } = decode_asked(asked)?;
    let shard = cluster.all().find(|shard| shard.number() == group);
    let shard =
        shard.ok_or_else(|| io::Error::other(format!("this server has no replica of group {group}")))?;
    Ok(encode_answer(&answer(cluster, shard, epochs, request).await.unwrap_or_else(Answer::Failed)))
}

async fn answer(
    cluster: &Cluster,
    shard: &Shard,
    epochs: MapEpochs,
    request: LeaderRequest,
) -> Result<Answer, Failure> {
    // The catalogue is the same group in every map, and a server that has an old one may have to ask it.
    if shard.number() != CATALOGUE {
        cluster.agree(epochs).await?;
    }
    match request {
        LeaderRequest::Submit(command) => {
            // The map may have changed since, and a sender may be wrong.
            let bucket = command.scope.bucket(command.tenant);
            if bucket.is_some_and(|bucket| cluster.shard_of(bucket).number() != shard.number()) {
                return Err(Failure::OtherMap { epoch: cluster.map_epochs().newest });
            }
            let mut reply = shard.submit_here(command).await?;
            let rows = encode_loaded(&reply.take_loaded());
            let index = shard.group().shared.position().map_or(0, |position| position.index);
            Ok(Answer::Reply { reply: Box::new(reply), index, rows })
        }
        LeaderRequest::ReadIndex => shard.read_index().await.map(Answer::ReadIndex),
        LeaderRequest::Fire(batch) => cluster.fire_here(shard, &batch).await.map(Answer::Fired),
    }
}
