//! A fourth server gets its share of the seats and of the leaders, and gives them back when it is drained.

use switchward_shard::{Cluster, ClusterStatus, MemberStart};
use switchward_state::catalogue::ServerState;
use switchward_testkit::until;

use crate::ensemble::{Ensemble, set_server_state};
use crate::joining::{Callers, Load, callers, verify};

/// The number of groups in which each of the servers votes, in the order of their numbers.
fn seats(status: &ClusterStatus) -> Vec<usize> {
    let votes = |number| status.groups.iter().filter(|group| group.voters.contains(&number)).count();
    status.servers.iter().map(|server| votes(server.number)).collect()
}

/// Waits until the status is as it should be; no group may have fewer than three voters meanwhile.
async fn reaches(cluster: &Cluster, what: &str, is_so: impl Fn(&ClusterStatus) -> bool) {
    until(what, async || {
        let status = cluster.status().await.unwrap();
        let few = status.groups.iter().find(|group| group.leader.is_some() && group.voters.len() < 3);
        assert_eq!(few, None);
        is_so(&status)
    })
    .await;
}

/// Returns true if each group has the voters that it is to have, and three of them.
fn is_settled(status: &ClusterStatus) -> bool {
    let three = |voters: &[u64], placed: &[u64]| {
        let mut voters = voters.to_vec();
        voters.sort_unstable();
        voters == placed && voters.len() == 3
    };
    status.groups.iter().all(|group| group.leader.is_some() && three(&group.voters, &group.placed))
}

#[test]
fn a_fourth_server_takes_its_share_and_gives_it_back_under_load() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    let clusters = [1, 2, 3].map(|number| ensemble.cluster(number).clone());
    let load = Load::begin(&runtime, "placing", &clusters, Callers::Insist);
    ensemble.begin(4, MemberStart::Join { peers: vec![1, 2] }).unwrap();
    runtime.block_on(async {
        reaches(ensemble.cluster(4), "the fourth server has its share", |status| {
            let seats = seats(status);
            let spread = seats.iter().max().zip(seats.iter().min());
            is_settled(status) && spread.is_some_and(|(most, fewest)| most - fewest <= 1)
        })
        .await;
        load.goes_on(20).await;
        set_server_state(ensemble.cluster(2), 4, ServerState::Draining).await;
        reaches(ensemble.cluster(1), "the drained server has no seats", |status| {
            is_settled(status) && seats(status) == [3, 3, 3, 0]
        })
        .await;
        assert_eq!(ensemble.cluster(1).status().await.unwrap().check_remove(4), Ok(()));
        set_server_state(ensemble.cluster(2), 4, ServerState::Active).await;
        reaches(ensemble.cluster(3), "the fourth server has seats again", |status| {
            is_settled(status) && seats(status)[3] >= 2
        })
        .await;
        load.goes_on(20).await;
        verify(&ensemble, &load.end().await).await;
    });
}

#[test]
fn a_move_goes_on_after_the_leader_of_the_catalogue_was_lost() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three_brisk(&runtime);
    ensemble.begin(4, MemberStart::Join { peers: vec![1, 2] }).unwrap();
    let lost = runtime.block_on(async {
        reaches(ensemble.cluster(4), "a seat moves", |status| {
            status.groups.iter().any(|group| group.placed.contains(&4))
        })
        .await;
        ensemble.leader(0).await
    });
    ensemble.kill(lost);
    ensemble.begin(lost, MemberStart::Resume).unwrap();
    runtime.block_on(async {
        reaches(ensemble.cluster(2), "the seats are spread", |status| {
            is_settled(status) && seats(status).iter().all(|seats| *seats >= 2)
        })
        .await;
        ensemble.agree().await;
    });
    ensemble.assert_sound();
}
