//! Which servers are to vote in which group, so that each active server has about the same number of seats. Pure.
//!
//! The catalogue's map holds the seats; the leader of each group makes its voters follow them (see [`plan`](super::plan)).
//! One seat moves at a time, and only to a server that has almost all entries of the group. It is chosen from what the
//! servers report and what the map says, and never from what was chosen before: after a crash at any step, the next leader
//! of the catalogue goes on.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use switchward_state::catalogue::ServerState;

use super::checks::lacks_at_most;
use super::status::{ClusterStatus, GroupStatus, ServerStatus};
use crate::limits::{BALANCE_LAG_MAX, MEMBER_LAG_MAX};

/// The servers that are to vote in a group from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The number of the group; 0 is the catalogue.
    pub(crate) group: u64,
    /// Their numbers, in ascending order.
    pub(crate) voters: Vec<u64>,
}

/// Returns true while a server votes in the group that is to vote in it no more.
pub(crate) fn is_moving(group: &GroupStatus) -> bool {
    group.voters.iter().any(|voter| !group.placed.contains(voter))
}

/// The next placement; `None` if all seats are where they should be, or if nothing can be done now. A seat of a server that
/// is drained or replaced moves at once. Others move only in `stable` groups.
pub(crate) fn next_placement(status: &ClusterStatus, stable: &BTreeSet<u64>) -> Option<Placement> {
    if status.cluster.is_none() || status.groups.iter().any(|group| group.leader.is_none()) {
        return None;
    }
    let moving: Vec<&GroupStatus> = status.groups.iter().filter(|&group| is_moving(group)).collect();
    if !moving.is_empty() {
        return moving.into_iter().find_map(|group| redirect(status, group));
    }
    let mut groups = status.groups.iter();
    groups.find_map(|group| repair(status, group)).or_else(|| spread(status, stable))
}

/// Ends a move that cannot end by itself: the server that is to get the seat is gone. The seat goes to another server, or
/// back to the one that still votes.
fn redirect(status: &ClusterStatus, group: &GroupStatus) -> Option<Placement> {
    let is_stuck = |server: &u64| !group.voters.contains(server) && !is_able(status, group, *server);
    let stuck = group.placed.iter().copied().find(is_stuck)?;
    let mut known = status.servers.iter().filter(|server| server.state == ServerState::Active);
    let back = known.find(|server| {
        let number = server.number;
        server.reachable && group.voters.contains(&number) && !group.placed.contains(&number)
    });
    let to = back.map(|server| server.number).or_else(|| candidate(status, group, None))?;
    Some(exchange(group, Some(stuck), to))
}

/// Gives a seat that nobody has, or that a server has which goes, to a server that can take it.
fn repair(status: &ClusterStatus, group: &GroupStatus) -> Option<Placement> {
    let goes = status
        .servers
        .iter()
        .find(|server| server.state != ServerState::Active && group.placed.contains(&server.number));
    if goes.is_none() && group.placed.len() >= status.voters {
        return None;
    }
    let to = candidate(status, group, goes.and_then(|server| server.replaced_by))?;
    Some(exchange(group, goes.map(|server| server.number), to))
}

/// Moves a seat from the server that has most to the one that has fewest. The difference is two at least, so the next
/// placement never undoes it.
fn spread(status: &ClusterStatus, stable: &BTreeSet<u64>) -> Option<Placement> {
    let active = status.servers.iter();
    let active = active.filter(|server| server.state == ServerState::Active && server.reachable);
    let mut by_seats: Vec<(usize, &ServerStatus)> =
        active.map(|server| (seats(status, server.number), server)).collect();
    by_seats.sort_by_key(|(seats, server)| (*seats, server.number));
    for (most, from) in by_seats.iter().rev() {
        for (_, to) in by_seats.iter().take_while(|(fewest, _)| fewest + 1 < *most) {
            let (from, to) = (from.number, to.number);
            let movable = status.groups.iter().filter(|group| {
                stable.contains(&group.group)
                    && group.placed.contains(&from)
                    && !group.placed.contains(&to)
                    && is_whole(status, group)
                    && lacks_at_most(group, to, BALANCE_LAG_MAX)
            });
            // A group whose leader can stay moves first; the catalogue moves last.
            let best = movable
                .max_by_key(|group| (group.leader != Some(from), Reverse(group.group == 0), group.group));
            if let Some(group) = best {
                return Some(exchange(group, Some(from), to));
            }
        }
    }
    None
}

/// Returns true if all servers that are to vote in the group do so, and are there.
fn is_whole(status: &ClusterStatus, group: &GroupStatus) -> bool {
    let is_there = |server: &u64| group.voters.contains(server) && is_able(status, group, *server);
    group.placed.len() == status.voters && group.placed.iter().all(is_there)
}

/// The server that can take a seat in a group: `preferred` if it can, or else the one that has fewest.
fn candidate(status: &ClusterStatus, group: &GroupStatus, preferred: Option<u64>) -> Option<u64> {
    let able = status.servers.iter().map(|server| server.number);
    let able = able.filter(|server| !group.placed.contains(server) && is_able(status, group, *server));
    able.min_by_key(|server| (Some(*server) != preferred, seats(status, *server), *server))
}

/// Returns true if a server is active, answers, and has almost all entries of the group.
fn is_able(status: &ClusterStatus, group: &GroupStatus, server: u64) -> bool {
    let is_there = |known: &ServerStatus| {
        known.number == server && known.state == ServerState::Active && known.reachable
    };
    status.servers.iter().any(is_there) && lacks_at_most(group, server, MEMBER_LAG_MAX)
}

/// The number of groups in which a server is to vote.
fn seats(status: &ClusterStatus, server: u64) -> usize {
    status.groups.iter().filter(|group| group.placed.contains(&server)).count()
}

/// The placement in which `to` has the seat of `from`, or a free one.
fn exchange(group: &GroupStatus, from: Option<u64>, to: u64) -> Placement {
    let mut voters: BTreeSet<u64> = group.placed.iter().copied().collect();
    if let Some(from) = from {
        voters.remove(&from);
    }
    voters.insert(to);
    Placement { group: group.group, voters: voters.into_iter().collect() }
}

#[cfg(test)]
mod tests;
