//! A leader task of the catalogue: seats and leaders are spread over the active servers, and a server that was replaced is
//! removed when it votes nowhere any more.

use std::collections::BTreeSet;
use std::sync::Weak;
use switchward_state::Body;
use switchward_state::catalogue::{AssignVoters, CatalogueCommand, ServerState, SetServerState};
use tokio::time::{Instant, sleep};

use super::balance::{Stability, next_move};
use super::join::of_catalogue;
use super::placement::{is_moving, next_placement};
use super::status::{ClusterStatus, status};
use super::transfer::hand_over;
use crate::limits::{BALANCE_LOOK, PLACEMENT_LOOK};
use crate::shards::Shards;

/// Runs until the cluster or the catalogue's replica is gone. Does one step at a time.
pub(crate) async fn work(cluster: Weak<Shards>) {
    let mut stability = Stability::default();
    let mut pause = BALANCE_LOOK;
    loop {
        sleep(std::mem::replace(&mut pause, BALANCE_LOOK)).await;
        let Some(cluster) = cluster.upgrade() else { return };
        if cluster.catalogue().draining() {
            return;
        }
        if !cluster.catalogue().leads() {
            stability.clear();
            continue;
        }
        match status(&cluster).await {
            Ok(status) => {
                remove_replaced(&cluster, &status).await;
                let stable = stability.observe(&status, Instant::now());
                if assign(&cluster, &status, &stable).await {
                    pause = PLACEMENT_LOOK;
                }
                balance(&cluster, &status, &stable, &mut stability).await;
            }
            Err(error) => tracing::warn!(%error, "failed to read the servers of the cluster"),
        }
    }
}

/// Gives the next seat to another server, if one must move. Returns true while the voters of a group change.
async fn assign(cluster: &Shards, status: &ClusterStatus, stable: &BTreeSet<u64>) -> bool {
    let Some(next) = next_placement(status, stable) else { return status.groups.iter().any(is_moving) };
    let (group, voters) = (next.group, next.voters);
    // If the servers have changed since they were asked, the map has another epoch.
    let assign = AssignVoters { group, voters: voters.clone(), epoch: status.epoch };
    let assign = of_catalogue(Body::Catalogue(CatalogueCommand::AssignVoters(assign)));
    match cluster.catalogue().submit(assign).await {
        Ok(_) => tracing::info!(group, ?voters, "these servers are to vote in a group from now on"),
        Err(error) => tracing::debug!(group, %error, "the voters of a group stay"),
    }
    true
}

/// Makes the next move of a leader, if there is one.
async fn balance(
    cluster: &Shards,
    status: &ClusterStatus,
    stable: &BTreeSet<u64>,
    stability: &mut Stability,
) {
    let Some(next) = next_move(status, stable) else { return };
    match hand_over(cluster, next.group, Some(next.to)).await {
        Ok(to) => {
            let (group, from) = (next.group, next.from);
            tracing::info!(
                group,
                from,
                to,
                "moved a leader, so that servers lead about the same number of groups"
            );
        }
        Err(error) => {
            stability.disturb(next.group);
            tracing::debug!(group = next.group, %error, "a leader was not moved");
        }
    }
}

/// Removes the servers whose seats others have taken.
async fn remove_replaced(cluster: &Shards, status: &ClusterStatus) {
    let replaced = status.servers.iter().filter(|server| server.state == ServerState::Draining);
    for server in replaced.filter(|server| server.replaced_by.is_some()) {
        let number = server.number;
        if status.check_remove(number).is_err() {
            continue;
        }
        let (state, replaced_by) = (ServerState::Removed, server.replaced_by);
        // If it is used again meanwhile, the map has another epoch.
        let set = SetServerState { number, state, replaced_by, epoch: Some(status.epoch) };
        let set = of_catalogue(Body::Catalogue(CatalogueCommand::SetServerState(set)));
        match cluster.catalogue().submit(set).await {
            Ok(_) => tracing::info!(server = number, by = replaced_by, "removed a server that was replaced"),
            Err(error) => tracing::debug!(server = number, %error, "a replaced server was not removed yet"),
        }
    }
}
