//! Who leads a group whose leader's server is lost: an election is held as soon as the leader's lease has ended, and not only
//! when one is due.
//!
//! A connection that ends and cannot be made again says sooner than silence that a server is gone. It may be wrong, so it only
//! begins Raft's own question whether a majority would vote (the pre-vote): each voter refuses it while the leader's lease
//! lasts there, so a leader that others still reach goes on. The voters take turns, so that votes are not split.

use openraft::async_runtime::WatchReceiver as _;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, sleep};

use super::serve::Member;
use crate::limits::{LOST_LEADER_TRY, LOST_LEADER_TURN};

/// Stands for election in a group until it has another leader, if `lost` leads it. Ends after two leases: then an election
/// is due anyway.
pub(super) async fn stand(group: u64, member: &Member, lost: u64) {
    let raft = &member.raft;
    let lease = Duration::from_millis(raft.config().election_timeout_max);
    let voters: BTreeSet<u64> = raft.voter_ids().collect();
    let Some(turn) = turn(&voters, group, lost, *raft.node_id()) else { return };
    let begun = Instant::now();
    sleep(wait(turn, lease)).await;
    while begun.elapsed() < lease * 2 {
        let leader = raft.server_metrics().borrow_watched().current_leader;
        if leader != Some(lost) || !member.may_lead() {
            return;
        }
        if raft.trigger().elect(true).await.is_err() {
            // The group has stopped.
            return;
        }
        sleep(LOST_LEADER_TRY).await;
    }
}

/// The turn of `own` among the voters that are left, from 0; `None` if it does not vote. Another server is first in each
/// group, so that leaders stay spread.
fn turn(voters: &BTreeSet<u64>, group: u64, lost: u64, own: u64) -> Option<u64> {
    let left: Vec<u64> = voters.iter().copied().filter(|voter| *voter != lost).collect();
    let (count, at) = (left.len() as u64, left.iter().position(|voter| *voter == own)? as u64);
    Some((at + count - group % count) % count)
}

/// How long a voter waits for those before it. The first asks from the beginning, and is refused until the lease has ended.
fn wait(turn: u64, lease: Duration) -> Duration {
    match u32::try_from(turn) {
        Ok(0) => Duration::ZERO,
        Ok(turn) => lease + LOST_LEADER_TURN * turn,
        Err(_) => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_voters_that_are_left_take_turns_and_each_is_first_somewhere() {
        let voters = BTreeSet::from([1, 2, 3]);
        let turns = |group| [1, 2, 3].map(|own| turn(&voters, group, 2, own));
        assert_eq!(turns(0), [Some(0), None, Some(1)]);
        assert_eq!(turns(1), [Some(1), None, Some(0)]);
        assert_eq!(turns(2), turns(0));
        assert_eq!(turn(&voters, 0, 2, 4), None, "a learner");
        assert_eq!(turn(&BTreeSet::from([2]), 0, 2, 1), None, "nobody else votes");
    }

    #[test]
    fn the_next_in_turn_waits_for_the_lease_and_for_the_election_of_the_one_before() {
        let lease = Duration::from_millis(450);
        assert_eq!(wait(0, lease), Duration::ZERO);
        assert!(wait(1, lease) > lease && wait(2, lease) > wait(1, lease));
    }
}
