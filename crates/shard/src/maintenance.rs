//! Maintenance of every replica's own disk: flush changed rows, and keep the log within its bound.
//!
//! A task of its own, so that the log stays within its bound however much a leader has to relay meanwhile.

use openraft::async_runtime::WatchReceiver;
use std::io;
use std::sync::{Arc, Weak};

use crate::blocking::blocking;
use crate::failure::line;
use crate::group::Group;
use crate::limits::{
    DIRTY_BYTES_MAX, FLUSH_WAIT, LOG_BYTES_MAX, LOG_ENTRIES_MAX, MAINTENANCE_TICK, PARKED_TICKS,
};
use crate::retention::{Leading, LogRetention};
use crate::shard::Shard;
use crate::shards::Shards;
use crate::types::LogId;

/// Runs for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    let mut tick = tokio::time::interval(MAINTENANCE_TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut rest, mut leading) = (Rest::default(), Leading::default());
    loop {
        tick.tick().await;
        if cluster.strong_count() == 0 || shard.draining() {
            return;
        }
        // Rows wait in memory while the remaining space is reserved for what cannot wait.
        let done = if shard.disk().admits_maintenance() {
            let retention = shard.group().retention.at(shard.disk().level());
            round(shard.group(), &retention, &mut rest, &mut leading).await
        } else {
            Ok(())
        };
        let Some(cluster) = cluster.upgrade() else { return };
        let running = shard.group().running();
        // A node that was shut down stops by itself, and does not stop before the shard drains.
        if shard.draining() {
            return;
        }
        if let Err(error) = running {
            cluster.stopped(&shard, &error);
            return;
        }
        if let Err(error) = done
            && !shard.group().shared.state.waits_for_space(&error)
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
    /// Returns true if nothing was applied for a while: rows in memory are then flushed, so that they need no replay.
    fn is_long(&mut self, position: Option<LogId>) -> bool {
        self.ticks = if position == self.position { self.ticks.saturating_add(1) } else { 0 };
        self.position = position;
        self.ticks >= PARKED_TICKS
    }
}

async fn round(
    group: &Group,
    retention: &LogRetention,
    rest: &mut Rest,
    leading: &mut Leading,
) -> io::Result<()> {
    let dirty = group.shared.state.dirty_bytes();
    let at_rest = rest.is_long(group.shared.position());
    if dirty >= DIRTY_BYTES_MAX || (at_rest && dirty > 0) {
        let shared = Arc::clone(&group.shared);
        blocking(move || shared.checkpoint()).await.map_err(io::Error::other)??;
    }
    if at_rest && !group.shared.state.is_settled() {
        let shared = Arc::clone(&group.shared);
        blocking(move || shared.settle()).await.map_err(io::Error::other)??;
    }
    shorten(group, retention, leading).await
}

/// Returns true if the log's bytes or entries exceed `1/of` of the purge threshold.
fn much(bytes: u64, entries: u64, of: u64) -> bool {
    bytes >= LOG_BYTES_MAX / of || entries >= LOG_ENTRIES_MAX / of
}

/// Purges a log that is too long, except for its tail and what other replicas lack. openraft purges what a snapshot covers, and here the rows on
/// disk are the snapshot: they are written and synced only if that lets enough of the log go.
async fn shorten(group: &Group, retention: &LogRetention, leading: &mut Leading) -> io::Result<()> {
    let (bytes, entries) = group.log.size();
    if !much(bytes, entries, 1) {
        return Ok(());
    }
    let index = |id: Option<LogId>| id.map(|id| id.index);
    let mut now = group.raft.metrics().borrow_watched().clone();
    let Some(goes) = leading.purgeable(&group.log, retention, &now) else { return Ok(()) };
    let covered = index(now.snapshot);
    let to_cover = index(now.last_applied).map(|applied| applied.min(goes));
    let (bytes, entries) = group.log.stretch(covered, to_cover);
    if much(bytes, entries, 2) {
        group.raft.trigger().snapshot().await.map_err(io::Error::other)?;
        let built = group.raft.wait(Some(FLUSH_WAIT));
        match built.metrics(|now| index(now.snapshot) > covered, "the rows are on disk").await {
            Ok(then) => now = then,
            // The snapshot is still being built, or the node has stopped and reports it itself.
            Err(_) => return Ok(()),
        }
    }
    // A purge may have to wait for a replica that is being sent those entries; until then it is triggered again.
    let upto = index(now.snapshot).map(|covered| covered.min(goes));
    if let Some(upto) = upto.filter(|upto| Some(*upto) > index(now.purged)) {
        group.raft.trigger().purge_log(upto).await.map_err(io::Error::other)?;
    }
    Ok(())
}
