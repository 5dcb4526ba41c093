//! Keeps up to date what a server knows of its contact with the leaders.

use std::sync::Weak;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::limits::{CONTACT_INTERVAL, CONTACT_LOST, READ_INDEX_WAIT};
use crate::shard::Shard;
use crate::shards::{CATALOGUE, Shards};

/// Asks the leader of one shard again and again, for the catalogue always, for other shards while somebody watches. Runs
/// until the cluster or the shard is gone, and not at all on a server that can have no others.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    if shard.group().remote.is_none() {
        return;
    }
    let contact = &shard.group().shared.contact;
    // Who begins to watch reads first, so contact counts from then.
    let mut since = Instant::now();
    while cluster.strong_count() > 0 && !shard.draining() {
        let asked = Instant::now();
        if shard.group().members.is_alone() || !(contact.is_watched() || shard.number() == CATALOGUE) {
            contact.regain();
            since = asked;
        } else {
            let ends = contact.last(since) + CONTACT_LOST;
            let patience =
                if ends > asked { ends.min(asked + READ_INDEX_WAIT) } else { asked + READ_INDEX_WAIT };
            // The contact records an answer; without one, it gets old.
            let _answered = timeout_at(patience, shard.confirm()).await;
            if contact.last(since).elapsed() >= CONTACT_LOST { contact.lose() } else { contact.regain() }
        }
        sleep_until(asked + CONTACT_INTERVAL).await;
    }
}
