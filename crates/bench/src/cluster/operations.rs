//! What an operator does with the servers of a cluster, and which share of it a server has.

use switchward_api::v1::{self, ClusterServerState};

use super::servers::{Servers, authorized, is_whole};

impl Servers {
    /// Drains a server.
    ///
    /// # Errors
    /// The cluster refuses, or does not know the server yet.
    pub(super) async fn drain(&self, server: u64) -> anyhow::Result<()> {
        let drain = v1::DrainServerRequest { server, ..v1::DrainServerRequest::default() };
        self.client().await?.drain_server(authorized(drain)?).await?;
        Ok(())
    }

    /// Uses a drained server again.
    ///
    /// # Errors
    /// The cluster refuses.
    pub(super) async fn activate(&self, server: u64) -> anyhow::Result<()> {
        let activate = v1::ActivateServerRequest { server, ..v1::ActivateServerRequest::default() };
        self.client().await?.activate_server(authorized(activate)?).await?;
        Ok(())
    }

    /// Replaces a lost server by another one.
    ///
    /// # Errors
    /// The cluster refuses: it has answered within the last ten seconds, or the other one lags.
    pub(super) async fn replace(&self, server: u64, replaced_by: u64) -> anyhow::Result<()> {
        let replace = v1::ReplaceServerRequest { server, replaced_by, ..v1::ReplaceServerRequest::default() };
        self.client().await?.replace_server(authorized(replace)?).await?;
        Ok(())
    }

    /// Removes a server for good.
    ///
    /// # Errors
    /// The cluster refuses: the server votes in a group.
    pub(super) async fn remove(&self, server: u64) -> anyhow::Result<()> {
        let remove = v1::RemoveServerRequest { server, ..v1::RemoveServerRequest::default() };
        self.client().await?.remove_server(authorized(remove)?).await?;
        Ok(())
    }
}

/// The share of the replicas that vote which a server holds, 0 to 1.
pub(super) fn share_of_voters(cluster: &v1::GetClusterResponse, server: u64) -> f64 {
    let voters = cluster.groups.iter().flat_map(|group| &group.replicas).filter(|replica| replica.voter);
    let (all, its) = voters.fold((0.0, 0.0), |(all, its), replica| {
        (all + 1.0, its + f64::from(u8::from(replica.server == server)))
    });
    if all > 0.0 { its / all } else { 0.0 }
}

/// The share of the groups that a server leads, 0 to 1.
pub(super) fn share_of_leaders(cluster: &v1::GetClusterResponse, server: u64) -> f64 {
    let led = cluster.groups.iter().filter(|group| group.leader == Some(server)).count();
    led as f64 / cluster.groups.len().max(1) as f64
}

/// Returns true if a server neither leads nor votes in any group, and each group has all its voters.
pub(super) fn has_given_back(cluster: &v1::GetClusterResponse, server: u64) -> bool {
    let votes = share_of_voters(cluster, server) > 0.0;
    !votes && share_of_leaders(cluster, server) == 0.0 && is_whole(cluster)
}

/// Returns true if a server is removed, and each group has three other voters that have caught up.
pub(super) fn is_replaced(cluster: &v1::GetClusterResponse, server: u64) -> bool {
    let removed =
        |one: &v1::ClusterServer| one.number == server && one.state() == ClusterServerState::Removed;
    cluster.servers.iter().any(removed) && has_given_back(cluster, server)
}

/// Returns true if a server has a replica of each group that lacks at most `lag_max` entries.
pub(super) fn has_all_rows(cluster: &v1::GetClusterResponse, server: u64, lag_max: u64) -> bool {
    let current = |group: &v1::ClusterGroup| {
        let mut replicas = group.replicas.iter().filter(|replica| replica.server == server);
        replicas.any(|replica| replica.lag_entries.is_some_and(|lag| lag <= lag_max))
    };
    !cluster.groups.is_empty() && cluster.groups.iter().all(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group with this leader and these voters, and with a learner that lacks entries.
    fn group(leader: u64, voters: [u64; 3], learner: u64, lag: u64) -> v1::ClusterGroup {
        let replica = |server, voter, lag| v1::ClusterReplica {
            server,
            voter,
            lag_entries: Some(lag),
            ..v1::ClusterReplica::default()
        };
        let mut replicas = voters.map(|server| replica(server, true, 0)).to_vec();
        replicas.push(replica(learner, false, lag));
        v1::ClusterGroup { leader: Some(leader), replicas, ..v1::ClusterGroup::default() }
    }

    fn cluster(groups: Vec<v1::ClusterGroup>) -> v1::GetClusterResponse {
        v1::GetClusterResponse { groups, ..v1::GetClusterResponse::default() }
    }

    #[test]
    fn shares_are_of_all_voters_and_of_all_groups() {
        let seen = cluster(vec![group(4, [1, 2, 4], 3, 0), group(1, [1, 2, 3], 4, 0)]);
        assert_eq!((share_of_voters(&seen, 4), share_of_leaders(&seen, 4)), (1.0 / 6.0, 0.5));
        assert_eq!((share_of_voters(&seen, 1), share_of_leaders(&seen, 2)), (2.0 / 6.0, 0.0));
        let none = cluster(Vec::new());
        assert_eq!((share_of_voters(&none, 1), share_of_leaders(&none, 1)), (0.0, 0.0));
    }

    #[test]
    fn a_server_has_given_back_what_it_neither_leads_nor_votes_in() {
        assert!(has_given_back(&cluster(vec![group(1, [1, 2, 3], 4, 9_999)]), 4));
        assert!(!has_given_back(&cluster(vec![group(1, [1, 2, 4], 3, 0)]), 4), "it votes");
        assert!(!has_given_back(&cluster(vec![group(4, [1, 2, 3], 4, 0)]), 4), "it leads");
        let mut lame = group(1, [1, 2, 3], 4, 0);
        lame.replicas[0].voter = false;
        assert!(!has_given_back(&cluster(vec![lame]), 4), "a voter is missing");
    }

    #[test]
    fn a_server_is_replaced_once_it_is_removed_and_others_vote() {
        let removed = |number, state: ClusterServerState| v1::ClusterServer {
            number,
            state: state.into(),
            ..v1::ClusterServer::default()
        };
        let mut seen = cluster(vec![group(1, [1, 2, 4], 5, 0)]);
        seen.servers = vec![removed(3, ClusterServerState::Draining)];
        assert!(!is_replaced(&seen, 3));
        seen.servers = vec![removed(3, ClusterServerState::Removed)];
        assert!(is_replaced(&seen, 3));
        seen.groups.push(group(1, [1, 2, 3], 4, 0));
        assert!(!is_replaced(&seen, 3), "it votes in a group");
    }

    #[test]
    fn a_server_has_all_rows_if_its_replica_of_each_group_has_caught_up() {
        let mut seen = cluster(vec![group(1, [1, 2, 3], 4, 5), group(1, [1, 2, 3], 4, 6)]);
        assert!(has_all_rows(&seen, 4, 6) && !has_all_rows(&seen, 4, 5) && !has_all_rows(&seen, 5, 6));
        seen.groups.clear();
        assert!(!has_all_rows(&seen, 4, 6));
    }
}
