//! A leader task: the members of a group become those of the catalogue's map, one change at a time.

use openraft::{BasicNode, ChangeMembers, Instant as _, async_runtime::WatchReceiver};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::future::Future;
use std::io;
use std::sync::Weak;
use tokio::time::timeout;

use super::barred::barred;
use super::peers::{map, servers};
use super::plan::{Seat, Seats, Seen, Step, step};
use crate::limits::{MEMBER_CHANGE_WAIT, MEMBER_CONTACT_MAX, MEMBER_LAG_MAX, MEMBERS_LOOK};
use crate::shard::Shard;
use crate::shards::Shards;
use crate::view::StateView;

/// Runs for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    let mut applied = {
        let Some(cluster) = cluster.upgrade() else { return };
        cluster.catalogue().group().shared.applied()
    };
    let mut tick = tokio::time::interval(MEMBERS_LOOK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        // Both may be cancelled: the next look reads the newest state.
        tokio::select! {
            _ = tick.tick() => {}
            changed = applied.changed() => if changed.is_err() { return },
        }
        let Some(cluster) = cluster.upgrade() else { return };
        if shard.draining() {
            return;
        }
        if shard.group().leads_without_vote() {
            let barred = barred(&cluster).await;
            report(shard.number(), "a voter becomes the leader", shard.hand_over_but(None, &barred)).await;
        } else if shard.leads()
            && let Err(error) = round(&shard, &cluster).await
        {
            let group = shard.number();
            tracing::warn!(group, %error, "failed to read the servers of the cluster");
        }
    }
}

/// Takes one step, if there is one.
async fn round(shard: &Shard, cluster: &Shards) -> io::Result<()> {
    let Some(mut seen) = seen(shard) else { return Ok(()) };
    let stale = replicas(&cluster.catalogue().read_stale(), shard.number(), &mut seen)?;
    if step(&stale, &seen) == Step::Rest {
        return Ok(());
    }
    // This server may know an old map.
    let Ok(view) = cluster.catalogue().read().await else { return Ok(()) };
    let replicas = replicas(&view, shard.number(), &mut seen)?;
    let mut next = step(&replicas, &seen);
    if matches!(next, Step::HandOver(_)) {
        seen.barred = barred(cluster).await;
        next = step(&replicas, &seen);
    }
    take(shard, next).await;
    Ok(())
}

/// The servers that hold a group by the map; sets how many may vote.
fn replicas(view: &StateView, group: u64, seen: &mut Seen) -> io::Result<Seats> {
    let Some(map) = map(view)? else { return Ok(Seats::new()) };
    seen.voters_max = map.seats();
    let (holders, placed) = (map.replicas(group), map.voters_of(group));
    let servers = servers(view)?.into_iter().filter(|server| holders.contains(&server.number));
    Ok(servers.filter_map(|server| Some((server.number, Seat::of(&server, placed)?))).collect())
}

/// The members of a group that this server leads; `None` while a change of them is not committed.
fn seen(shard: &Shard) -> Option<Seen> {
    let metrics = shard.group().raft().metrics();
    let now = metrics.borrow_watched();
    if now.membership_config.log_id() != now.committed_membership_config.log_id() {
        return None;
    }
    let matched = now.replication.as_ref()?;
    let contact = now.heartbeat.as_ref()?;
    let last = now.last_log_index.unwrap_or(0);
    let is_current = |node: &u64| {
        let has = matched.get(node).copied().flatten().map_or(0, |id| id.index);
        let contact = contact.get(node).copied().flatten();
        has + MEMBER_LAG_MAX >= last && contact.is_some_and(|contact| contact.elapsed() < MEMBER_CONTACT_MAX)
    };
    let members: BTreeSet<u64> = now.membership_config.nodes().map(|(node, _)| *node).collect();
    let others = members.iter().copied().filter(|node| *node != now.id).filter(is_current);
    let current = others.chain([now.id]).collect();
    let voters = now.membership_config.get_joint_config().clone();
    Some(Seen { own: now.id, voters, members, current, barred: BTreeSet::new(), voters_max: 0 })
}

async fn take(shard: &Shard, step: Step) {
    let (raft, group) = (shard.group().raft(), shard.number());
    match step {
        Step::Rest => {}
        Step::Learn(server) => {
            let added = raft.add_learner(server, BasicNode::default(), false);
            report(group, &format!("server {server} becomes a learner"), added).await;
        }
        Step::Vote(voters) => {
            let what = format!("the voters become {voters:?}");
            report(group, &what, raft.change_membership(voters, true)).await;
        }
        Step::Forget(server) => {
            let gone = ChangeMembers::RemoveNodes(BTreeSet::from([server]));
            report(group, &format!("server {server} is removed"), raft.change_membership(gone, false)).await;
        }
        Step::HandOver(server) => {
            let handed = shard.hand_over(Some(server));
            report(group, &format!("server {server} becomes the leader"), handed).await;
        }
    }
}

/// Waits for a change and says what became of it. A change that takes too long is looked at again, whatever becomes of
/// it.
async fn report<T, E: Display>(group: u64, what: &str, change: impl Future<Output = Result<T, E>>) {
    match timeout(MEMBER_CHANGE_WAIT, change).await {
        Ok(Ok(_)) => tracing::info!(group, "{what}"),
        Ok(Err(error)) => tracing::debug!(group, %error, "not yet: {what}"),
        Err(_) => tracing::warn!(group, "takes too long: {what}"),
    }
}
