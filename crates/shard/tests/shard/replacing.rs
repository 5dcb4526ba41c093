//! A lost server is replaced by one with a new number, and what would harm the cluster is refused.

use switchward_machine::TenantId;
use switchward_shard::{Cluster, ClusterStatus, MemberStart, NotNow};
use switchward_state::catalogue::{CatalogueCommand, ServerState, SetServerState};
use switchward_state::{Body, Command, Scope};
use switchward_testkit::until;

use crate::ensemble::{Ensemble, insist};
use crate::joining::{Callers, Load, callers, verify};

/// The status once all groups have a leader.
async fn status(cluster: &Cluster) -> ClusterStatus {
    let mut settled = None;
    until("all groups have a leader", async || {
        let seen = cluster.status().await.unwrap();
        let all = seen.groups.iter().all(|group| group.leader.is_some());
        settled = all.then_some(seen);
        all
    })
    .await;
    settled.unwrap()
}

async fn set(cluster: &Cluster, number: u64, state: ServerState, replaced_by: Option<u64>) {
    let set = SetServerState { number, state, replaced_by, epoch: None };
    let body = Body::Catalogue(CatalogueCommand::SetServerState(set));
    insist(cluster, Command::of_server(TenantId(0), Scope::Catalogue, body)).await;
}

#[test]
fn a_lost_server_is_replaced_and_then_removed_under_load() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    let answers = runtime.block_on(status(ensemble.cluster(2))).servers;
    assert!(answers.iter().all(|server| server.answer.as_ref().is_some_and(|said| !said.version.is_empty())));
    ensemble.kill(3);
    let clusters = [1, 2].map(|number| ensemble.cluster(number).clone());
    let load = Load::begin(&runtime, "replace", &clusters, Callers::Insist);
    runtime.block_on(async {
        load.goes_on(20).await;
        until("the leaders know that one is lost", async || {
            let seen = status(ensemble.cluster(1)).await;
            assert_eq!(seen.check_remove(3), Err(NotNow::Votes { server: 3, groups: vec![0, 1, 2] }));
            seen.check_drain(2) == Err(NotNow::TooFewVoters { server: 2, group: 0 })
        })
        .await;
        set(ensemble.cluster(1), 3, ServerState::Draining, None).await;
    });
    ensemble.begin(4, MemberStart::Join { peers: vec![1, 2] }).unwrap();
    runtime.block_on(async {
        until("the new server can take the seats", async || {
            ensemble.cluster(2).status().await.unwrap().check_replace(3, 4) == Ok(())
        })
        .await;
        set(ensemble.cluster(2), 3, ServerState::Draining, Some(4)).await;
        ensemble.votes(&[1, 2, 4]).await;
        until("the lost server is removed", async || {
            let servers = ensemble.cluster(4).servers().unwrap();
            servers.iter().any(|server| server.number == 3 && server.state == ServerState::Removed)
        })
        .await;
        load.goes_on(20).await;
        verify(&ensemble, &load.end().await).await;
    });
}

#[test]
fn leaders_are_transferred_as_they_were_planned() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    runtime.block_on(async {
        let from = ensemble.leader(1).await;
        let cluster = ensemble.cluster(1 + from % 3);
        let mut planned = Vec::new();
        until("the leaders know the others", async || {
            match status(cluster).await.plan_transfers(from, &[], None) {
                Ok(transfers) => planned = transfers,
                Err(_) => return false,
            }
            true
        })
        .await;
        assert!(planned.iter().any(|transfer| transfer.group == 1 && transfer.to != from), "{planned:?}");
        for transfer in planned {
            assert_eq!(cluster.hand_over(transfer.group, Some(transfer.to)).await, Ok(transfer.to));
        }
        assert_eq!(status(cluster).await.plan_transfers(from, &[], None), Ok(Vec::new()));
    });
    ensemble.assert_sound();
}
