//! A task of every replica: publish whether this server leads, so that the leader's tasks and the readers of streams
//! notice it without asking a majority each time.

use openraft::async_runtime::WatchReceiver;
use std::sync::Weak;

use crate::limits::LEADER_TICK;
use crate::membership::Leading;
use crate::shard::Shard;
use crate::shards::Shards;

/// Runs for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    let raft = shard.group().raft();
    let (mut servers, mut all) = (raft.server_metrics(), raft.metrics());
    let mut moved = false;
    loop {
        if cluster.strong_count() == 0 || shard.draining() {
            return;
        }
        // A node reports a leadership change a moment before its metrics show it, and a majority acknowledges it later.
        let unconfirmed = shard.group().look() == Leading::Unconfirmed;
        let soon = std::mem::take(&mut moved) || unconfirmed;
        let changed = tokio::select! {
            changed = servers.changed() => {
                moved = true;
                changed
            }
            changed = all.changed(), if soon => changed,
            () = tokio::time::sleep(LEADER_TICK) => Ok(()),
        };
        if changed.is_err() {
            // The node has stopped: nothing changes any more.
            tokio::time::sleep(LEADER_TICK).await;
        }
    }
}
