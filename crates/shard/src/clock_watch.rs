//! Compares this server's clock with the others', every second once it is known. A server whose clock differs leads nothing,
//! if there is a voter that may lead instead.

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use std::collections::BTreeSet;
use std::sync::Weak;
use tokio::time::Instant;

use crate::clock::{AgreementState, Clock as _, ClockAgreement, ClockOffset, Comparison, judge};
use crate::group::Group;
use crate::limits::{CLOCK_COMPARE_INTERVAL, CLOCK_FIRST_INTERVAL, CLOCK_FIRST_WAIT};
use crate::may_lead::LeadingChange;
use crate::members;
use crate::shard::Shard;
use crate::shards::Shards;

/// What a server knows of its clock before it has compared it.
pub(crate) fn first(catalogue: &Group) -> Comparison {
    let compares = catalogue.remote.as_ref().is_some_and(|remote| remote.clock_offsets().is_some());
    if compares { Comparison::UNKNOWN } else { Comparison::ALONE }
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
            let Some(compared) = compare(&cluster) else { return };
            if let Some(bars) = compared.bars.filter(|bars| *bars != barred) {
                barred = bars;
                report(barred, cluster.agreed().agreement());
            }
            let change = if barred { LeadingChange::ClockDiffers } else { LeadingChange::ClockAgrees };
            cluster.all().for_each(|shard| shard.group().note(change));
            if barred && cluster.all().any(Shard::leads) {
                let others = members::barred(&cluster).await;
                join_all(cluster.all().map(|shard| hand_over(shard, &others))).await;
            }
            if cluster.agreed().is_known() { CLOCK_COMPARE_INTERVAL } else { CLOCK_FIRST_INTERVAL }
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

/// One comparison.
struct Compared {
    /// Whether the clock bars the server from leading; `None` if too few other clocks are known now.
    bars: Option<bool>,
}

fn compare(cluster: &Shards) -> Option<Compared> {
    let group = cluster.catalogue().group();
    let reading = cluster.agreed().reading();
    let offsets = group.remote.as_ref()?.clock_offsets()?;
    let (own, voters) = members_of(group);
    let comparison = match count(own, &voters) {
        // It has not joined yet, or has only begun.
        0 => Comparison::UNKNOWN,
        _ if group.members.is_alone() => Comparison::ALONE,
        count => judge(&offsets, count),
    };
    cluster.agreed().compared(comparison, reading);
    let agreement = cluster.agreed().agreement();
    let bars =
        agreement.is_known().then(|| agreement.bars_from_leading() && another_may(own, &offsets, &voters));
    Some(Compared { bars })
}

/// This server's number, and the voters.
fn members_of(group: &Group) -> (u64, BTreeSet<u64>) {
    let metrics = group.raft.metrics();
    let now = metrics.borrow_watched();
    (now.id, now.membership_config.voter_ids().collect())
}

/// The number of voters. A server that does not vote is not alone, even if there is only one voter.
fn count(own: u64, voters: &BTreeSet<u64>) -> usize {
    let is_only = voters.len() == 1 && voters.contains(&own);
    if is_only || voters.is_empty() { voters.len() } else { voters.len().max(2) }
}

/// Returns true if the clock of a voter other than this server is known, and does not bar that voter from leading. Without
/// such a voter nobody would lead.
fn another_may(own: u64, offsets: &[ClockOffset], voters: &BTreeSet<u64>) -> bool {
    let count = count(own, voters);
    let mut others = offsets.iter().filter(|other| voters.contains(&other.server));
    others.any(|other| {
        !AgreementState::of(judge(&seen_by(own, offsets, *other), count)).agreement.bars_from_leading()
    })
}

/// How far the clocks are ahead of that of another server, which this one knows.
fn seen_by(own: u64, offsets: &[ClockOffset], other: ClockOffset) -> Vec<ClockOffset> {
    let rest = offsets.iter().copied().filter(|offset| offset.server != other.server);
    let all = rest.chain([ClockOffset { server: own, ms: 0 }]);
    all.map(|offset| ClockOffset { ms: offset.ms.saturating_sub(other.ms), ..offset }).collect()
}

fn report(barred: bool, agreement: ClockAgreement) {
    if barred {
        let ahead_ms = agreement.off_by_ms().unwrap_or(0);
        tracing::error!(
            ahead_ms,
            "this server's clock differs from the median of all servers' clocks: it leads no shard until that is mended"
        );
    } else {
        tracing::info!("this server's clock does not bar it from leading any more");
    }
}

/// Hands a shard over that this server leads and must not lead.
async fn hand_over(shard: &Shard, barred: &BTreeSet<u64>) {
    if !shard.leads() {
        return;
    }
    let shard_number = shard.number();
    match shard.hand_over_but(None, barred).await {
        Ok(to) => {
            tracing::warn!(shard = shard_number, to, "handed a shard over because of this server's clock")
        }
        Err(error) => tracing::warn!(shard = shard_number, %error, "failed to hand a shard over"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn a_server_is_barred_only_if_a_voter_is_there_that_is_not() {
        for (what, offsets, voters, expected) in [
            ("both others agree", vec![(2, -HOUR), (3, -HOUR)], vec![1, 2, 3], true),
            ("one voter is away", vec![(3, -HOUR), (4, -HOUR)], vec![1, 2, 3], true),
            ("only learners agree", vec![(2, -HOUR), (3, -HOUR)], vec![1], false),
            ("the other voter is barred too", vec![(2, HOUR), (3, -9), (4, 9), (5, 0)], vec![1, 2], false),
            (
                "the other voter and the learners agree",
                vec![(2, HOUR), (3, HOUR), (4, HOUR)],
                vec![1, 2],
                true,
            ),
            ("nobody is there", vec![], vec![1, 2, 3], false),
            ("two of five are away", vec![(2, HOUR), (3, HOUR)], vec![1, 2, 3, 4, 5], true),
        ] {
            let known: Vec<ClockOffset> =
                offsets.into_iter().map(|(server, ms)| ClockOffset { server, ms }).collect();
            assert_eq!(another_may(1, &known, &voters.into_iter().collect()), expected, "{what}");
        }
    }

    #[test]
    fn another_server_sees_the_clocks_from_its_own() {
        let offset = |server, ms| ClockOffset { server, ms };
        let seen = seen_by(1, &[offset(2, 50), offset(3, -20)], offset(2, 50));
        assert_eq!(seen, [offset(3, -70), offset(1, -50)]);
    }

    #[test]
    fn a_server_that_does_not_vote_is_not_alone() {
        for (own, voters, expected) in
            [(1, vec![], 0), (1, vec![1], 1), (2, vec![1], 2), (1, vec![1, 2, 3], 3), (4, vec![1, 2, 3], 3)]
        {
            assert_eq!(count(own, &voters.into_iter().collect()), expected, "{own}");
        }
    }
}
