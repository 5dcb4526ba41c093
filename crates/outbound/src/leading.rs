//! Waits for the leadership of a shard: what a relay does is a leader's task.

use switchward_shard::Shard;
use tokio::sync::watch;

/// Returns true when this server leads the shard, or false if `stop` is true or dropped before.
///
/// Cancel safe.
pub(super) async fn began(shard: &Shard, stop: &mut watch::Receiver<bool>) -> bool {
    // Registered before the first look, so that no change in between is missed.
    let mut changes = shard.watch_leadership();
    while !shard.leads() {
        // Either may be dropped: the next look finds what has changed.
        tokio::select! {
            open = changes.changed() => if !open { return false },
            _ = stop.wait_for(|stop| *stop) => return false,
        }
    }
    tracing::debug!(shard = shard.number(), "relaying the effects and the work of a shard");
    true
}
