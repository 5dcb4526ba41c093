//! What an operator may do with the servers of a cluster now, by what these report. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use switchward_state::catalogue::{LeaderTransfer, ServerState};

use super::plan::{Seat, Seats, Seen, seated};
use super::status::{ClusterStatus, GroupStatus, ReplicaStatus, ServerStatus};
use crate::limits::{MEMBER_CONTACT_MAX, MEMBER_LAG_MAX, SERVER_LOST_AFTER, VOTERS_KEPT};

/// Why something is not done with the servers of a cluster. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotNow {
    /// There is no such server.
    #[error("the cluster has no server {0}")]
    NoServer(u64),
    /// There is no such group.
    #[error("there is no group {0}")]
    NoGroup(u64),
    /// No server that answers leads the group, so nobody knows its members.
    #[error("group {0} has no leader now; try again")]
    NoLeader(u64),
    /// The server votes in these groups.
    #[error("server {server} votes in the groups {groups:?}; drain it first, or replace it if it is lost")]
    Votes {
        /// The number of the server to remove.
        server: u64,
        /// The groups, in ascending order.
        groups: Vec<u64>,
    },
    /// Without the server, the group would not have enough voters that answer.
    #[error(
        "without server {server}, group {group} would not have enough voters; add or repair a server first"
    )]
    TooFewVoters {
        /// The number of the server that would be missing.
        server: u64,
        /// Such a group; there may be more.
        group: u64,
    },
    /// The server is not lost.
    #[error(
        "server {0} answers, or did so a moment ago; only a lost server is replaced: drain and remove one that works"
    )]
    NotLost(u64),
    /// The server is not active, does not answer, must not lead, or lags in the group.
    #[error(
        "server {server} cannot take over group {group}: it is not active, does not answer, must not lead because of its \
         clock, stops, or lags behind"
    )]
    NotReady {
        /// The number of the server that is to take over.
        server: u64,
        /// A group that it cannot take over; there may be more.
        group: u64,
    },
    /// No voter of the group could lead it instead of its leader.
    #[error("no other voter of group {0} is active, answers, may lead, and has almost all entries")]
    NoSuccessor(u64),
}

impl ClusterStatus {
    /// Refuses to drain a server if a group would be left without enough voters: a majority of them must answer without it,
    /// one of them must be able to lead, and a group that has three voters keeps three.
    ///
    /// # Errors
    /// As [`NotNow`] says.
    pub fn check_drain(&self, server: u64) -> Result<(), NotNow> {
        let known = self.known(server)?;
        match known.state {
            ServerState::Active => self.check_without(server, Seat::Draining),
            ServerState::Draining | ServerState::Removed => Ok(()),
        }
    }

    /// Refuses to remove a server that votes in a group.
    ///
    /// # Errors
    /// As [`NotNow`] says.
    pub fn check_remove(&self, server: u64) -> Result<(), NotNow> {
        if self.known(server)?.state == ServerState::Removed {
            return Ok(());
        }
        let mut groups = Vec::new();
        for group in &self.groups {
            led(group)?;
            if group.voters.contains(&server) {
                groups.push(group.group);
            }
        }
        if groups.is_empty() { Ok(()) } else { Err(NotNow::Votes { server, groups }) }
    }

    /// Refuses to replace a server that is not lost, and by one that cannot take its seats.
    ///
    /// # Errors
    /// As [`NotNow`] says.
    pub fn check_replace(&self, lost: u64, by: u64) -> Result<(), NotNow> {
        let (known, new) = (self.known(lost)?, self.known(by)?);
        if known.state == ServerState::Removed || known.replaced_by == Some(by) {
            return Ok(());
        }
        for group in &self.groups {
            led(group)?;
        }
        if known.reachable || self.groups.iter().any(|group| spoke_lately(group, lost)) {
            return Err(NotNow::NotLost(lost));
        }
        let is_ready = new.state == ServerState::Active && new.reachable;
        if let Some(group) = self.groups.iter().find(|group| !(is_ready && is_current(group, by))) {
            return Err(NotNow::NotReady { server: by, group: group.group });
        }
        self.check_without(lost, Seat::Leaving)
    }

    /// Chooses who leads the groups instead of `from`: these groups, or all that it leads if there are none; `to`, or else
    /// in turn the voters that lead fewest. Groups that `from` does not lead are left out.
    ///
    /// # Errors
    /// As [`NotNow`] says.
    pub fn plan_transfers(
        &self,
        from: u64,
        groups: &[u64],
        to: Option<u64>,
    ) -> Result<Vec<LeaderTransfer>, NotNow> {
        self.known(from)?;
        to.map(|to| self.known(to)).transpose()?;
        if let Some(unknown) =
            groups.iter().find(|number| self.groups.iter().all(|one| one.group != **number))
        {
            return Err(NotNow::NoGroup(*unknown));
        }
        let mut leads: BTreeMap<u64, usize> =
            self.servers.iter().map(|server| (server.number, server.leads.len())).collect();
        let mut transfers = Vec::new();
        for group in self.groups.iter().filter(|one| groups.is_empty() || groups.contains(&one.group)) {
            if led(group)? != from {
                continue;
            }
            let to = match to {
                Some(to) if to == from => continue,
                Some(to) if self.can_lead(to, group, MEMBER_LAG_MAX) => to,
                Some(to) => return Err(NotNow::NotReady { server: to, group: group.group }),
                None => {
                    let able = group.voters.iter().copied().filter(|voter| *voter != from);
                    let able = able.filter(|voter| self.can_lead(*voter, group, MEMBER_LAG_MAX));
                    let fewest = able.min_by_key(|voter| (leads.get(voter).copied().unwrap_or(0), *voter));
                    fewest.ok_or(NotNow::NoSuccessor(group.group))?
                }
            };
            *leads.entry(to).or_default() += 1;
            transfers.push(LeaderTransfer { group: group.group, to });
        }
        Ok(transfers)
    }

    /// Returns true if a server is active, answers, may lead, votes and is to vote in the group, had contact
    /// with its leader lately, and lacks at most `lag_max` entries.
    pub(crate) fn can_lead(&self, server: u64, group: &GroupStatus, lag_max: u64) -> bool {
        let is_active = |known: &ServerStatus| known.number == server && known.state == ServerState::Active;
        self.servers.iter().any(is_active)
            && self.may_lead(server)
            && group.voters.contains(&server)
            && group.placed.contains(&server)
            && lacks_at_most(group, server, lag_max)
    }

    /// Returns true if a server answers and may lead.
    fn may_lead(&self, number: u64) -> bool {
        self.servers.iter().any(|known| known.number == number && known.reachable && known.may_lead)
    }

    fn known(&self, number: u64) -> Result<&ServerStatus, NotNow> {
        self.servers.iter().find(|server| server.number == number).ok_or(NotNow::NoServer(number))
    }

    /// Refuses if a group would not have enough voters with the server in another seat.
    fn check_without(&self, server: u64, seat: Seat) -> Result<(), NotNow> {
        for group in &self.groups {
            let mut seats = self.seats(group);
            seats.insert(server, seat);
            let own = led(group)?;
            let voters: BTreeSet<u64> = group.voters.iter().copied().collect();
            let current: BTreeSet<u64> =
                seats.keys().copied().filter(|number| is_current(group, *number)).collect();
            let members = seats.keys().copied().collect();
            let barred = BTreeSet::new();
            let seen =
                Seen { own, voters: vec![voters.clone()], members, current, barred, voters_max: self.voters };
            let after = seated(&seats, &voters, &seen);
            let left: Vec<u64> =
                after.intersection(&seen.current).copied().filter(|left| *left != server).collect();
            let leads =
                left.iter().any(|left| seats.get(left) == Some(&Seat::Active) && self.may_lead(*left));
            let keeps = after.len() >= voters.len().min(VOTERS_KEPT);
            if !(leads && keeps && left.len() * 2 > after.len()) {
                return Err(NotNow::TooFewVoters { server, group: group.group });
            }
        }
        Ok(())
    }

    /// What each server is for in a group; removed ones are left out.
    fn seats(&self, group: &GroupStatus) -> Seats {
        let seat = |server: &ServerStatus| {
            let wanted = group.placed.contains(&server.number).into();
            Some((server.number, Seat::in_state(server.state, server.replaced_by, wanted)?))
        };
        self.servers.iter().filter_map(seat).collect()
    }
}

/// The leader of a group.
fn led(group: &GroupStatus) -> Result<u64, NotNow> {
    group.leader.ok_or(NotNow::NoLeader(group.group))
}

fn replica(group: &GroupStatus, server: u64) -> Option<&ReplicaStatus> {
    group.replicas.iter().find(|replica| replica.server == server)
}

/// Returns true if the last contact of the group's leader with the server is so recent that it may be alive.
fn spoke_lately(group: &GroupStatus, server: u64) -> bool {
    let silent = replica(group, server).and_then(|replica| replica.silent_ms);
    silent.is_some_and(|silent| Duration::from_millis(silent) < SERVER_LOST_AFTER)
}

/// Returns true if the server could vote in the group: it had contact with the leader lately and has almost all entries.
fn is_current(group: &GroupStatus, server: u64) -> bool {
    lacks_at_most(group, server, MEMBER_LAG_MAX)
}

/// Returns true if the server's replica works, had contact with the leader lately, and lacks at most `lag_max` entries.
pub(super) fn lacks_at_most(group: &GroupStatus, server: u64, lag_max: u64) -> bool {
    replica(group, server).is_some_and(|replica| replica.failed.is_none() && has_almost_all(replica, lag_max))
}

fn has_almost_all(replica: &ReplicaStatus, lag_max: u64) -> bool {
    let silent = replica.silent_ms.is_some_and(|silent| Duration::from_millis(silent) < MEMBER_CONTACT_MAX);
    silent && replica.lag.is_some_and(|lag| lag <= lag_max)
}

#[cfg(test)]
mod tests;
