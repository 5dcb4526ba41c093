//! What every replica does for its own disk: write changed rows behind, and keep the log within its bound.
//!
//! A task of its own, so that a log grows no longer than its bound however much a leader has to carry meanwhile.

use openraft::async_runtime::WatchReceiver;
use std::io;
use std::sync::{Arc, Weak};

use crate::cluster::Inner;
use crate::failure::line;
use crate::group::Group;
use crate::limits::{
    DIRTY_BYTES_MAX, FLUSH_WAIT, LOG_BYTES_KEPT, LOG_BYTES_MAX, LOG_ENTRIES_KEPT, LOG_ENTRIES_MAX,
    PARKED_TICKS, UPKEEP_TICK,
};
use crate::shard::Shard;
use crate::types::LogId;

/// Works for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Inner>) {
    let mut tick = tokio::time::interval(UPKEEP_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut rest = Rest::default();
    loop {
        tick.tick().await;
        if cluster.strong_count() == 0 || shard.draining() {
            return;
        }
        // Rows wait in memory while the room is kept for what cannot wait.
        let done =
            if shard.disk().admits_maintenance() { round(shard.group(), &mut rest).await } else { Ok(()) };
        let Some(cluster) = cluster.upgrade() else { return };
        // A node that was shut down stops on its own account.
        if shard.draining() {
            return;
        }
        if let Err(error) = shard.group().running() {
            cluster.halt(&error);
            return;
        }
        if let Err(error) = done
            && !shard.group().shared.state.waits_for_room(&error)
        {
            cluster.halt(&format!("failed to write the state: {}", line(&error)));
            return;
        }
    }
}

/// Since when nothing has been applied.
#[derive(Default)]
struct Rest {
    position: Option<LogId>,
    ticks: u32,
}

impl Rest {
    /// Whether nothing has come for a while: what is parked then takes no memory, and need not be replayed.
    fn is_long(&mut self, position: Option<LogId>) -> bool {
        self.ticks = if position == self.position { self.ticks.saturating_add(1) } else { 0 };
        self.position = position;
        self.ticks >= PARKED_TICKS
    }
}

async fn round(group: &Group, rest: &mut Rest) -> io::Result<()> {
    let dirty = group.shared.state.dirty_bytes();
    let at_rest = rest.is_long(group.shared.position());
    if dirty >= DIRTY_BYTES_MAX || (at_rest && dirty > 0) {
        let shared = Arc::clone(&group.shared);
        tokio::task::spawn_blocking(move || shared.checkpoint()).await.map_err(io::Error::other)??;
    }
    if at_rest && !group.shared.state.is_settled() {
        let shared = Arc::clone(&group.shared);
        tokio::task::spawn_blocking(move || shared.settle()).await.map_err(io::Error::other)??;
    }
    shorten(group).await
}

/// Whether so much of a log is a part, one `of` so many, of what is too much.
fn much((bytes, entries): (u64, u64), of: u64) -> bool {
    bytes >= LOG_BYTES_MAX / of || entries >= LOG_ENTRIES_MAX / of
}

/// Purges a log that is too long, but for an end of it. openraft purges what a snapshot covers, and here the rows
/// on disk are the snapshot: they are written and synced where that lets enough of the log go, and else not again.
async fn shorten(group: &Group) -> io::Result<()> {
    if !much(group.log.size(), 1) {
        return Ok(());
    }
    let Some(goes) = group.log.all_but(LOG_ENTRIES_KEPT, LOG_BYTES_KEPT) else { return Ok(()) };
    let index = |id: Option<LogId>| id.map(|id| id.index);
    let mut now = group.raft.metrics().borrow_watched().clone();
    let covered = index(now.snapshot);
    let to_cover = index(now.last_applied).map(|applied| applied.min(goes));
    if much(group.log.stretch(covered, to_cover), 2) {
        group.raft.trigger().snapshot().await.map_err(io::Error::other)?;
        let built = group.raft.wait(Some(FLUSH_WAIT));
        match built.metrics(|now| index(now.snapshot) > covered, "the rows are on disk").await {
            Ok(then) => now = then,
            // It is still at it, or it has stopped and says so itself.
            Err(_) => return Ok(()),
        }
    }
    // A purge may have to wait for a replica that is just being sent what is to go; until then it is asked for anew.
    let upto = index(now.snapshot).map(|covered| covered.min(goes));
    if let Some(upto) = upto.filter(|upto| Some(*upto) > index(now.purged)) {
        group.raft.trigger().purge_log(upto).await.map_err(io::Error::other)?;
    }
    Ok(())
}
