//! Handing a group's leadership to another server, without a failed call: nothing is decided until the other server has
//! everything and leads. Commands in the queue are then forwarded to it.
//!
//! What a waiting command waits for, one after the other:
//!
//! 1. the batch that is being written, and the successor's confirmation that it has it;
//! 2. the transfer message; the successor syncs its vote, and one more voter its own;
//! 3. the blank entry of the new term: it is sent, and synced by two servers. They first confirm the entries that they have,
//!    without getting them again (see `peers/pipeline.rs`);
//! 4. this server learns from it who leads, and forwards the command at once. The new leader decides when it has applied the
//!    blank entry, and a round of heartbeats has confirmed that it leads.
//!
//! Nothing in it waits for a timer, unless a message is lost.

use openraft::{Instant as _, RaftMetrics, async_runtime::WatchReceiver};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

use crate::group::Group;
use crate::limits::{
    HAND_OVER_LAG_MAX, HAND_OVER_LOOK, HAND_OVER_NEAR_WAIT, HAND_OVER_TAKEN_WAIT, HAND_OVER_WAIT,
    MEMBER_CONTACT_MAX,
};
use crate::types::TypeConfig;

/// Why a group was not handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotHandedOver {
    /// This server does not lead the group.
    #[error("this server does not lead the group")]
    NotLeading,
    /// The server is not a voter of the group, is the leader already, or must not lead now.
    #[error("there is no other voter that could lead the group")]
    NoSuccessor,
    /// The other server did not get all entries in time; this one goes on leading.
    #[error("the other server did not get all entries in time")]
    Behind,
    /// No other server has begun to lead in time; one of them will be elected.
    #[error("no other server has begun to lead in time")]
    NoNewLeader,
}

/// Makes another server the leader: `to`, or else the voter that has most entries; none of those that are `barred` from
/// leading. Returns the new leader. If the other server does not get all entries within [`HAND_OVER_WAIT`], this one goes
/// on leading. It goes on deciding until the other one lacks few entries, at most for [`HAND_OVER_NEAR_WAIT`].
///
/// # Errors
/// As [`NotHandedOver`] says.
pub(crate) async fn hand_over(
    group: &Group,
    to: Option<u64>,
    barred: &BTreeSet<u64>,
) -> Result<u64, NotHandedOver> {
    near(group, to, barred).await?;
    let until = Instant::now() + HAND_OVER_WAIT;
    let deciding = Arc::clone(&group.shared.deciding).lock_owned();
    let _paused = timeout_at(until, deciding).await.map_err(|_| NotHandedOver::Behind)?;
    let has_all = |now: &RaftMetrics<TypeConfig>, server| {
        lag(now, server) == 0 && now.last_applied.map(|id| id.index) == now.last_log_index
    };
    let successor = ready(group, to, barred, until, has_all).await?;
    let transfer = group.raft().trigger().transfer_leader(successor).await;
    transfer.map_err(|_| NotHandedOver::NotLeading)?;
    taken(group).await
}

/// Waits until a successor lacks few entries, so that nothing is decided for a short time only.
async fn near(group: &Group, to: Option<u64>, barred: &BTreeSet<u64>) -> Result<(), NotHandedOver> {
    let until = Instant::now() + HAND_OVER_NEAR_WAIT;
    let has_most = |now: &RaftMetrics<TypeConfig>, server| lag(now, server) <= HAND_OVER_LAG_MAX;
    match ready(group, to, barred, until, has_most).await {
        // It may catch up once nothing is decided.
        Ok(_) | Err(NotHandedOver::Behind) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Waits until a successor is ready.
async fn ready(
    group: &Group,
    to: Option<u64>,
    barred: &BTreeSet<u64>,
    until: Instant,
    is_ready: impl Fn(&RaftMetrics<TypeConfig>, u64) -> bool,
) -> Result<u64, NotHandedOver> {
    let mut metrics = group.raft().metrics();
    loop {
        if group.raft().as_leader().is_err() {
            return Err(NotHandedOver::NotLeading);
        }
        {
            let now = metrics.borrow_watched();
            let successor = successor(&now, to, barred)?;
            if let Some(server) = successor.filter(|server| is_ready(&now, *server)) {
                return Ok(server);
            }
        }
        let look = until.min(Instant::now() + HAND_OVER_LOOK);
        if let Ok(Err(_)) = timeout_at(look, metrics.changed()).await {
            return Err(NotHandedOver::NotLeading);
        }
        if Instant::now() >= until {
            return Err(NotHandedOver::Behind);
        }
    }
}

/// Waits until another server leads.
async fn taken(group: &Group) -> Result<u64, NotHandedOver> {
    let until = Instant::now() + HAND_OVER_TAKEN_WAIT;
    let own = *group.raft().node_id();
    let mut servers = group.raft().server_metrics();
    loop {
        let leader = servers.borrow_watched().current_leader.filter(|leader| *leader != own);
        if let Some(leader) = leader {
            group.look();
            return Ok(leader);
        }
        let changed = timeout_at(until, servers.changed()).await;
        if !changed.is_ok_and(|changed| changed.is_ok()) {
            return Err(NotHandedOver::NoNewLeader);
        }
    }
}

/// The voter that is to lead; `None` as long as the leader has contact with none that may. It has contact with the others
/// within some heartbeats.
///
/// # Errors
/// [`NotHandedOver::NoSuccessor`] if there is no such voter.
fn successor(
    now: &RaftMetrics<TypeConfig>,
    to: Option<u64>,
    barred: &BTreeSet<u64>,
) -> Result<Option<u64>, NotHandedOver> {
    let may = |voter: &u64| *voter != now.id && to.is_none_or(|to| to == *voter) && !barred.contains(voter);
    let others: Vec<u64> = now.membership_config.voter_ids().filter(may).collect();
    if others.is_empty() {
        return Err(NotHandedOver::NoSuccessor);
    }
    let contact = others.into_iter().filter(|voter| has_contact(now, *voter));
    Ok(contact.max_by_key(|voter| (matched(now, *voter), *voter)))
}

fn matched(now: &RaftMetrics<TypeConfig>, server: u64) -> Option<u64> {
    now.replication.as_ref()?.get(&server).copied().flatten().map(|id| id.index)
}

/// How many of this server's entries another one is not known to have.
fn lag(now: &RaftMetrics<TypeConfig>, server: u64) -> u64 {
    let next = |last: Option<u64>| last.map_or(0, |last| last + 1);
    next(now.last_log_index).saturating_sub(next(matched(now, server)))
}

fn has_contact(now: &RaftMetrics<TypeConfig>, server: u64) -> bool {
    let contact = now.heartbeat.as_ref().and_then(|contact| contact.get(&server).copied().flatten());
    contact.is_some_and(|contact| contact.elapsed() < MEMBER_CONTACT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Membership;
    use openraft::BasicNode;
    use openraft::type_config::alias::InstantOf;
    use openraft::vote::leader_id_std::CommittedLeaderId;
    use std::collections::BTreeMap;

    /// A leader of three voters, the third of which has most entries.
    fn leader() -> RaftMetrics<TypeConfig> {
        let voters = BTreeSet::from([1, 2, 3]);
        let nodes: BTreeMap<u64, BasicNode> =
            voters.iter().map(|voter| (*voter, BasicNode::default())).collect();
        let members = openraft::Membership::new(vec![voters.clone()], nodes).unwrap();
        let mut now = RaftMetrics::new_initial(1);
        now.membership_config = Arc::new(Membership::new(None, members));
        let has =
            |voter: u64| crate::types::LogId { leader_id: CommittedLeaderId::new(1), index: 10 * voter };
        now.replication = Some(voters.iter().map(|voter| (*voter, Some(has(*voter)))).collect());
        now.heartbeat =
            Some(voters.iter().map(|voter| (*voter, Some(InstantOf::<TypeConfig>::now().into()))).collect());
        now
    }

    #[test]
    fn no_server_is_a_successor_that_must_not_lead() {
        let now = leader();
        for (to, barred, expected) in [
            (None, vec![], Ok(Some(3))),
            (None, vec![3], Ok(Some(2))),
            (None, vec![2, 3], Err(NotHandedOver::NoSuccessor)),
            (Some(2), vec![3], Ok(Some(2))),
            (Some(2), vec![2], Err(NotHandedOver::NoSuccessor)),
            (Some(1), vec![], Err(NotHandedOver::NoSuccessor)),
        ] {
            let barred = BTreeSet::from_iter(barred);
            assert_eq!(successor(&now, to, &barred), expected, "{to:?} without {barred:?}");
        }
    }

    #[test]
    fn the_lag_is_what_a_server_is_not_known_to_have() {
        let mut now = leader();
        for (last, expected) in [(None, 0), (Some(20), 0), (Some(21), 1), (Some(30), 10)] {
            now.last_log_index = last;
            assert_eq!(lag(&now, 2), expected, "{last:?}");
        }
        assert_eq!(lag(&now, 9), 31, "a server of which nothing is known");
    }
}
