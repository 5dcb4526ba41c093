//! A task of every replica: publish whether this server leads, so that the leader's tasks and the readers of streams
//! notice it without asking a majority each time.

use openraft::async_runtime::WatchReceiver;
use openraft::type_config::alias::WatchReceiverOf;
use std::sync::Weak;

use crate::limits::LEADER_TICK;
use crate::membership::Leading;
use crate::shard::Shard;
use crate::shards::Shards;
use crate::types::TypeConfig;

/// Runs for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    let raft = shard.group().raft();
    let mut changes = Changes::of(raft.server_metrics(), raft.metrics());
    loop {
        if cluster.strong_count() == 0 || shard.draining() {
            return;
        }
        changes.skip();
        let leading = shard.group().look();
        if !changes.next(leading).await {
            // The node has stopped: nothing changes any more.
            tokio::time::sleep(LEADER_TICK).await;
        }
    }
}

/// The changes of a node's metrics after which it may lead, or no longer.
struct Changes<S, A>
where
    S: Send + Sync + 'static,
    A: Send + Sync + 'static,
{
    /// Which server leads, as far as the node knows.
    servers: WatchReceiverOf<TypeConfig, S>,
    /// All metrics, by which a node says whether it leads. They follow a moment after `servers`.
    all: WatchReceiverOf<TypeConfig, A>,
    /// True after a change of `servers`.
    moved: bool,
}

impl<S, A> Changes<S, A>
where
    S: Send + Sync + 'static,
    A: Send + Sync + 'static,
{
    fn of(servers: WatchReceiverOf<TypeConfig, S>, all: WatchReceiverOf<TypeConfig, A>) -> Self {
        Self { servers, all, moved: false }
    }

    /// Skips what the next look at the node shows. Without this a change of long ago would be the one that a change of
    /// leadership waits for, and the real one would be noticed after [`LEADER_TICK`].
    fn skip(&mut self) {
        drop(self.all.borrow_and_update());
    }

    /// Waits for a change after the last [`skip`](Self::skip), at most [`LEADER_TICK`]. False if the node has stopped.
    async fn next(&mut self, leading: Leading) -> bool {
        // A majority acknowledges a leader later.
        let soon = std::mem::take(&mut self.moved) || leading == Leading::Unconfirmed;
        let changed = tokio::select! {
            changed = self.servers.changed() => {
                self.moved = true;
                changed
            }
            changed = self.all.changed(), if soon => changed,
            () = tokio::time::sleep(LEADER_TICK) => Ok(()),
        };
        changed.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;
    use openraft::async_runtime::WatchSender;
    use openraft::type_config::TypeConfigExt;
    use std::pin::pin;

    #[tokio::test(start_paused = true)]
    async fn leadership_is_noticed_as_soon_as_all_metrics_show_it() {
        let (servers, servers_seen) = TypeConfig::watch_channel(0);
        let (all, all_seen) = TypeConfig::watch_channel(0);
        let mut changes = Changes::of(servers_seen, all_seen);
        changes.skip();
        all.send(1).unwrap();
        servers.send(1).unwrap();
        assert!(changes.next(Leading::No).await);
        changes.skip();
        let mut next = pin!(changes.next(Leading::No));
        assert!(poll!(next.as_mut()).is_pending(), "nothing has changed since the last look");
        all.send(2).unwrap();
        assert!(poll!(next).is_ready());
    }
}
