//! Statuses of clusters for tests: servers in their states, and groups with leader and voters.

use switchward_state::catalogue::ServerState;
use switchward_state::{Level, Levels};

use super::status::{ClusterStatus, GroupStatus, ReplicaStatus, ServerStatus};

/// A cluster with these servers, all of which answer, and these groups, which are numbered from 0.
pub(crate) fn cluster(servers: &[(u64, ServerState)], groups: Vec<GroupStatus>) -> ClusterStatus {
    let leads = |number: u64| {
        groups.iter().filter(|group| group.leader == Some(number)).map(|group| group.group).collect()
    };
    let server = |(number, state): &(u64, ServerState)| ServerStatus {
        number: *number,
        address: format!("10.0.0.{number}:7401"),
        state: *state,
        levels: Levels::OF_PROGRAM,
        joined: None,
        reachable: true,
        may_lead: true,
        leads: leads(*number),
        replaced_by: None,
        answer: None,
    };
    let servers = servers.iter().map(server).collect();
    let groups = groups.into_iter().zip(0..).map(|(group, number)| GroupStatus { group: number, ..group });
    let groups = groups.collect();
    ClusterStatus { cluster: Some([7; 16]), epoch: 3, level: Level(1), own: 1, voters: 3, servers, groups }
}

/// A group in which nobody lags, and which has the voters that it is to have.
pub(crate) fn group(leader: u64, voters: &[u64], learners: &[u64]) -> GroupStatus {
    let replica = |server: &u64| ReplicaStatus {
        server: *server,
        applied: Some(10),
        lag: Some(0),
        silent_ms: Some(0),
        failed: None,
        log: Some((1_000, 10)),
    };
    GroupStatus {
        group: 0,
        leader: Some(leader),
        term: 4,
        placed: voters.to_vec(),
        voters: voters.to_vec(),
        learners: learners.to_vec(),
        last_index: 10,
        replicas: voters.iter().chain(learners).map(replica).collect(),
    }
}

/// The server does not answer, and no leader has had contact with it for a minute.
pub(crate) fn lose(status: &mut ClusterStatus, number: u64) {
    for server in status.servers.iter_mut().filter(|server| server.number == number) {
        (server.reachable, server.may_lead) = (false, false);
    }
    for group in &mut status.groups {
        for replica in group.replicas.iter_mut().filter(|replica| replica.server == number) {
            (replica.applied, replica.silent_ms) = (None, Some(60_000));
        }
    }
}

/// The server answers and must not lead.
pub(crate) fn bar(status: &mut ClusterStatus, number: u64) {
    for server in status.servers.iter_mut().filter(|server| server.number == number) {
        server.may_lead = false;
    }
}

/// The server lacks this many entries of a group.
pub(crate) fn lag(status: &mut ClusterStatus, group: usize, number: u64, entries: u64) {
    for replica in status.groups[group].replicas.iter_mut().filter(|replica| replica.server == number) {
        replica.lag = Some(entries);
    }
}
