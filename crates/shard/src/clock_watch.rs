//! Compares this server's clock with the others', every second once it is known. A server whose clock differs leads nothing.

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use std::sync::Weak;
use tokio::time::Instant;

use crate::clock::{Clock as _, ClockAgreement, judge};
use crate::group::Group;
use crate::limits::{CLOCK_COMPARE_INTERVAL, CLOCK_FIRST_INTERVAL, CLOCK_FIRST_WAIT};
use crate::shard::Shard;
use crate::shards::Shards;

/// What a server knows of its clock before it has compared it.
pub(crate) fn first(catalogue: &Group) -> ClockAgreement {
    let compares = catalogue.remote.as_ref().is_some_and(|remote| remote.clock_offsets().is_some());
    if compares { ClockAgreement::Unknown } else { ClockAgreement::Alone }
}

/// Compares until the cluster is gone; not at all if its transport compares no clocks.
pub(crate) async fn work(cluster: Weak<Shards>) {
    let mut barred = false;
    loop {
        let pause = {
            let Some(cluster) = cluster.upgrade() else { return };
            if cluster.catalogue().draining() {
                return;
            }
            let Some(agreement) = compare(&cluster) else { return };
            if barred != agreement.bars_from_leading() {
                barred = agreement.bars_from_leading();
                report(agreement);
            }
            join_all(cluster.all().map(|shard| keep_from_leading(shard, barred))).await;
            if agreement.is_known() { CLOCK_COMPARE_INTERVAL } else { CLOCK_FIRST_INTERVAL }
        };
        tokio::time::sleep(pause).await;
    }
}

/// Waits until this server may decide by its clock, at most [`CLOCK_FIRST_WAIT`].
pub(crate) async fn known(cluster: &Shards) {
    let until = Instant::now() + CLOCK_FIRST_WAIT;
    while !cluster.agreed().is_known() && Instant::now() < until {
        tokio::time::sleep(CLOCK_FIRST_INTERVAL).await;
    }
}

fn compare(cluster: &Shards) -> Option<ClockAgreement> {
    let group = cluster.catalogue().group();
    let reading = cluster.agreed().reading();
    let offsets = group.remote.as_ref()?.clock_offsets()?;
    let agreement = match voters(group) {
        // It has not joined yet, or has only begun.
        0 => ClockAgreement::Unknown,
        _ if group.members.is_alone() => ClockAgreement::Alone,
        voters => judge(&offsets, voters),
    };
    cluster.agreed().compared(agreement, reading);
    Some(cluster.agreed().agreement())
}

/// The number of voters. A server that does not vote is not alone, even if there is only one voter.
fn voters(group: &Group) -> usize {
    let metrics = group.raft.metrics();
    let now = metrics.borrow_watched();
    let voters: Vec<u64> = now.membership_config.voter_ids().collect();
    if voters == [now.id] || voters.is_empty() { voters.len() } else { voters.len().max(2) }
}

fn report(agreement: ClockAgreement) {
    match agreement {
        ClockAgreement::Differs { by_ms } => tracing::error!(
            ahead_ms = by_ms,
            "this server's clock differs from the median of all servers' clocks: it leads no shard until that is mended"
        ),
        ClockAgreement::Alone
        | ClockAgreement::Unknown
        | ClockAgreement::Agrees
        | ClockAgreement::Undecided { .. } => {
            tracing::info!("this server's clock does not bar it from leading any more")
        }
    }
}

/// Lets a replica stand for election or not. A leader that must not lead hands over.
async fn keep_from_leading(shard: &Shard, barred: bool) {
    shard.group().raft().runtime_config().elect(!barred);
    if !barred || !shard.leads() {
        return;
    }
    let shard_number = shard.number();
    match shard.hand_over(None).await {
        Ok(to) => {
            tracing::warn!(shard = shard_number, to, "handed a shard over because of this server's clock")
        }
        Err(error) => tracing::warn!(shard = shard_number, %error, "failed to hand a shard over"),
    }
}
