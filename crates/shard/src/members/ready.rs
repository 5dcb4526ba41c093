//! Waiting until a server's replicas can be read.

use futures::FutureExt as _;
use openraft::async_runtime::WatchReceiver;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, timeout};

use crate::failure::Failure;
use crate::limits::{FORWARD_AGAIN, PROGRESS_INTERVAL};
use crate::shard::Shard;

/// Waits until each of these replicas knows a leader and has been read once, so that it has what was acknowledged before;
/// at most `patience` in all. Replicas that have failed are left out. Returns the groups that have no leader yet.
///
/// # Errors
/// A replica has stopped.
pub(crate) async fn ready(shards: &[Shard], patience: Duration) -> io::Result<Vec<u64>> {
    let (until, mut report_at) = (Instant::now() + patience, Instant::now() + PROGRESS_INTERVAL);
    let mut missing: Vec<&Shard> = shards.iter().collect();
    while let Some(shard) = missing.first() {
        if read(shard).await? {
            missing.remove(0);
            continue;
        }
        let now = Instant::now();
        let groups: Vec<u64> = missing.iter().map(|shard| shard.number()).collect();
        if now >= until {
            return Ok(groups);
        }
        if now >= report_at {
            tracing::info!(
                ?groups,
                "waiting until these groups have a leader and this server has their rows"
            );
            report_at = now + PROGRESS_INTERVAL;
        }
        let mut changes = shard.group().raft().metrics();
        // A new receiver reports the newest state as a change.
        let _seen = changes.changed().now_or_never();
        // Whether something changes or the time passes: the next look reads it.
        let _waited = timeout(FORWARD_AGAIN, changes.changed()).await;
    }
    Ok(Vec::new())
}

/// Returns true if a replica was read, or has failed.
async fn read(shard: &Shard) -> io::Result<bool> {
    match shard.read().await {
        Ok(_) => Ok(true),
        Err(_) if shard.group().failed().is_some() => Ok(true),
        Err(Failure::Stopped) => Err(io::Error::other(Failure::Stopped)),
        Err(_) => Ok(false),
    }
}
