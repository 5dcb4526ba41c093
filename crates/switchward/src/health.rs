//! Keeps health up to date with the level of the disk, with shards that have failed, with the contact with the catalogue's
//! leader, and with the clock.

use std::time::Duration;
use switchward_gateway::{limits::CATALOGUE_AGE_MAX, routes::Health};
use switchward_shard::Cluster;
use switchward_store::DiskLevel;

/// How often it looks.
const HEALTH_INTERVAL: Duration = Duration::from_millis(250);

/// Runs until it is dropped.
pub(crate) async fn follow(health: Health, cluster: Cluster) {
    let mut tick = tokio::time::interval(HEALTH_INTERVAL);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut was_low, mut had_failed, mut was_cut_off) = (false, false, false);
    loop {
        tick.tick().await;
        if !had_failed && cluster.failed() > 0 {
            had_failed = true;
            health.set_shard_failed().await;
        }
        let low = cluster.disk().level() != DiskLevel::Enough;
        if std::mem::replace(&mut was_low, low) != low {
            if low { health.set_disk_low().await } else { health.set_disk_enough().await }
        }
        let cut_off = !cluster.catalogue().confirmed_within(CATALOGUE_AGE_MAX);
        if std::mem::replace(&mut was_cut_off, cut_off) != cut_off {
            if cut_off { health.set_cut_off().await } else { health.set_in_contact().await }
        }
        let differs = cluster.clock_agreement().bars_from_leading();
        if differs { health.set_clock_off() } else { health.set_clock_good() }
    }
}
