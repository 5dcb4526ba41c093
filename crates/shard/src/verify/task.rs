//! A task of every member of a cluster: verifies all groups from time to time, on the server that leads the catalogue.

use std::sync::Weak;
use std::time::Duration;
use switchward_machine::Time;
use tokio::time::sleep;

use super::verify;
use crate::limits::VERIFY_LOOK;
use crate::shards::Shards;

/// Runs until the cluster is gone.
pub(crate) async fn work(cluster: Weak<Shards>) {
    let mut before = None;
    loop {
        sleep(VERIFY_LOOK).await;
        let Some(cluster) = cluster.upgrade() else { return };
        if cluster.catalogue().draining() {
            return;
        }
        let now = period(cluster.now(), cluster.verify_interval());
        if begins(&mut before, now) && cluster.catalogue().leads() {
            round(&cluster).await;
        }
    }
}

/// The number of a time's period. Periods are counted from 1970, so that all servers count the same ones, whichever of
/// them leads and however often one starts.
fn period(now: Time, interval: Duration) -> u64 {
    let interval_ms = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
    now.0 / interval_ms.max(1)
}

/// Returns true if a period has begun since the last look.
fn begins(before: &mut Option<u64>, now: u64) -> bool {
    before.replace(now).is_some_and(|before| before < now)
}

async fn round(cluster: &Shards) {
    let groups: Vec<u64> = cluster.all().map(|shard| shard.number()).collect();
    for group in groups {
        match verify(cluster, group).await {
            Ok(seen) if seen.differs() => {}
            Ok(seen) => {
                let (index, agree) = (seen.index, seen.agreeing());
                tracing::info!(group, index, ?agree, "the replicas of a group hold the same rows");
            }
            Err(error) => {
                tracing::warn!(group, %error, "a group was not verified; the next time comes later")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_period_begins_once_and_none_at_the_start() {
        let (mut before, minute) = (None, Duration::from_secs(60));
        let mut look = |at_ms| begins(&mut before, period(Time(at_ms), minute));
        assert!(!look(59_000), "a server that starts");
        assert!(look(60_000) && !look(70_000) && !look(119_999));
        assert!(look(240_000), "some were missed");
        assert!(!look(180_000), "the clock was set back");
    }
}
