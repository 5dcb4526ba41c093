//! Leadership moves from server to server, and callers notice nothing but a pause.

use std::sync::atomic::Ordering;
use switchward_shard::{ClockOffset, Cluster, ClusterStatus, HandOver, MemberStart, NotHandedOver};
use switchward_state::catalogue::ServerState;
use switchward_testkit::until;

use crate::ensemble::{Ensemble, set_server_state};
use crate::joining::{Callers, Load, callers, verify};

/// How often leadership is handed over in one run.
const HAND_OVERS: usize = 6;

fn clusters(ensemble: &Ensemble, numbers: &[u64]) -> Vec<Cluster> {
    numbers.iter().map(|number| ensemble.cluster(*number).clone()).collect()
}

#[test]
fn leadership_is_handed_over_under_load_without_a_failed_call() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    let load = Load::begin(&runtime, "over", &clusters(&ensemble, &[1, 2, 3]), Callers::Strict);
    runtime.block_on(async {
        for at in 0..HAND_OVERS {
            let group = 1 + at % 2;
            load.goes_on(10).await;
            let old = ensemble.leader(group).await;
            let new = ensemble.shard(old, group).hand_over(None).await.unwrap();
            assert_ne!(old, new);
            load.goes_on(10).await;
        }
        // Any server passes the request on to the leader.
        let old = ensemble.leader(1).await;
        let (to, asked) = (1 + old % 3, 1 + (old + 1) % 3);
        assert_eq!(ensemble.cluster(asked).hand_over(1, Some(to)).await, Ok(to));
        load.goes_on(10).await;
        verify(&ensemble, &load.end().await).await;
    });
}

#[test]
fn what_cannot_lead_is_not_handed_anything() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    runtime.block_on(async {
        let leader = ensemble.leader(1).await;
        let shard = ensemble.shard(leader, 1);
        assert_eq!(shard.hand_over(Some(9)).await, Err(NotHandedOver::NoSuccessor));
        assert_eq!(shard.hand_over(Some(leader)).await, Err(NotHandedOver::NoSuccessor));
        let other = ensemble.shard(1 + leader % 3, 1);
        assert_eq!(other.hand_over(None).await, Err(NotHandedOver::NotLeading));
        assert_eq!(ensemble.cluster(leader).hand_over(99, None).await, Err(HandOver::NoGroup(99)));
        until("it goes on leading", async || shard.leads()).await;
    });
    ensemble.assert_sound();
}

#[test]
fn a_server_whose_clock_differs_is_handed_nothing() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    ensemble.kill(2);
    let offset = |server| ClockOffset { server, ms: -3_600_000 };
    ensemble.network.set_clock_offsets(2, vec![offset(1), offset(3)]);
    ensemble.begin(2, MemberStart::Resume).unwrap();
    runtime.block_on(async {
        let seen = |status: &ClusterStatus| {
            let server = status.servers.iter().find(|server| server.number == 2).unwrap();
            let answer = server.answer.as_ref();
            answer.map(|answer| (server.may_lead, answer.clock_bars, answer.clock_offset_ms))
        };
        until("all see its own clock, and that it must not lead", async || {
            let status = ensemble.cluster(1).status().await.unwrap();
            seen(&status) == Some((false, true, 3_600_000))
        })
        .await;
        for group in 0..ensemble.groups() {
            let leader = ensemble.leader(group).await;
            let (cluster, number) = (ensemble.cluster(leader), u64::try_from(group).unwrap());
            let refused = cluster.hand_over(number, Some(2)).await.unwrap_err();
            assert_eq!(refused, HandOver::Failed(NotHandedOver::NoSuccessor.to_string()));
            let other = if leader == 1 { 3 } else { 1 };
            until("the other one is ready", async || cluster.hand_over(number, None).await == Ok(other))
                .await;
        }
        // The replica refuses too, for a leader that has not asked whether it may lead.
        let leader = ensemble.leader(1).await;
        let handed = ensemble.shard(leader, 1).hand_over(Some(2)).await;
        assert!(handed.is_err() || handed.is_ok_and(|to| to != 2));
        until("a server leads that may", async || ensemble.leader(1).await != 2).await;
    });
    ensemble.assert_sound();
}

#[test]
fn a_draining_server_leads_nothing_and_answers_all_the_same() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    let load = Load::begin(&runtime, "drain", &clusters(&ensemble, &[1, 2, 3]), Callers::Strict);
    runtime.block_on(async {
        load.goes_on(10).await;
        for (number, other) in [(1, 2), (2, 3)] {
            set_server_state(ensemble.cluster(other), number, ServerState::Draining).await;
            until("it leads nothing", async || {
                (0..ensemble.groups()).all(|group| !ensemble.shard(number, group).leads())
            })
            .await;
            for group in 0..ensemble.groups() {
                assert_ne!(ensemble.leader(group).await, number);
            }
            load.goes_on(10).await;
            set_server_state(ensemble.cluster(other), number, ServerState::Active).await;
        }
        ensemble.votes(&[1, 2, 3]).await;
        verify(&ensemble, &load.end().await).await;
    });
}

#[test]
fn a_server_that_shuts_down_hands_its_groups_over() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three(&runtime);
    let leader = runtime.block_on(ensemble.leader(1));
    let others: Vec<u64> = [1, 2, 3].into_iter().filter(|number| *number != leader).collect();
    let load = Load::begin(&runtime, "down", &clusters(&ensemble, &others), Callers::Strict);
    runtime.block_on(load.goes_on(10));
    ensemble.shut_down(leader);
    runtime.block_on(load.goes_on(20));
    ensemble.begin(leader, MemberStart::Resume).unwrap();
    runtime.block_on(async {
        load.goes_on(10).await;
        verify(&ensemble, &load.end().await).await;
    });
}

#[test]
fn the_death_of_a_leader_is_only_a_pause_for_callers_of_others() {
    let runtime = callers();
    let mut ensemble = Ensemble::of_three_brisk(&runtime);
    for round in 0..2 {
        let leader = runtime.block_on(ensemble.leader(1));
        let others: Vec<u64> = [1, 2, 3].into_iter().filter(|number| *number != leader).collect();
        let name = format!("death {round}");
        let load = Load::begin(&runtime, &name, &clusters(&ensemble, &others), Callers::Insist);
        runtime.block_on(load.goes_on(10));
        ensemble.kill(leader);
        runtime.block_on(load.goes_on(20));
        assert!(load.done.load(Ordering::SeqCst) >= 30);
        ensemble.begin(leader, MemberStart::Resume).unwrap();
        runtime.block_on(async { verify(&ensemble, &load.end().await).await });
    }
}
