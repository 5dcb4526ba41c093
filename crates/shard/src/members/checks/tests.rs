use super::super::samples::{bar, cluster, group, lag, lose};
use super::*;
use ServerState::{Active, Draining, Removed};

const THREE: [(u64, ServerState); 3] = [(1, Active), (2, Active), (3, Active)];

fn three() -> ClusterStatus {
    cluster(&THREE, vec![group(1, &[1, 2, 3], &[]), group(2, &[1, 2, 3], &[])])
}

fn too_few(server: u64) -> Result<(), NotNow> {
    Err(NotNow::TooFewVoters { server, group: 0 })
}

#[test]
fn a_server_is_drained_if_a_majority_is_left_without_it() {
    let lost = |number| {
        let mut status = three();
        lose(&mut status, number);
        status
    };
    let barred = |numbers: &[u64]| {
        let mut status = three();
        numbers.iter().for_each(|number| bar(&mut status, *number));
        status
    };
    let drained = |number: u64| {
        let states = THREE.map(|(one, state)| (one, if one == number { Draining } else { state }));
        cluster(&states, vec![group(1, &[1, 2, 3], &[])])
    };
    let four = [(1, Active), (2, Active), (3, Active), (4, Active)];
    let five = [(1, Active), (2, Active), (3, Active), (4, Active), (5, Draining)];
    let of_two = || {
        let seats = GroupStatus { placed: vec![1, 2], ..group(1, &[1], &[2]) };
        cluster(&[(1, Active), (2, Active)], vec![seats])
    };
    let lagging = || {
        let mut status = of_two();
        lag(&mut status, 0, 2, 5_000);
        status
    };
    for (what, status, server, expected) in [
        ("one of three", three(), 3, Ok(())),
        ("the leader", three(), 1, Ok(())),
        ("one of three, of which another is lost", lost(2), 3, too_few(3)),
        ("one of three, of which another must not lead", barred(&[2]), 3, Ok(())),
        ("the only one of three that may lead", barred(&[2, 3]), 1, too_few(1)),
        ("the lost one itself", lost(3), 3, Ok(())),
        ("one that drains already", drained(3), 3, Ok(())),
        ("a second one of three", drained(3), 2, too_few(2)),
        ("a learner", cluster(&four, vec![group(1, &[1, 2, 3], &[4])]), 4, Ok(())),
        ("a voter beside a learner", cluster(&four, vec![group(1, &[1, 2, 3], &[4])]), 2, Ok(())),
        ("a second one of five", cluster(&five, vec![group(1, &[1, 2, 3, 4, 5], &[])]), 4, Ok(())),
        ("the only server", cluster(&[(1, Active)], vec![group(1, &[1], &[])]), 1, too_few(1)),
        ("the voter of two", of_two(), 1, Ok(())),
        ("the voter of two, and the learner lags", lagging(), 1, too_few(1)),
        ("no server", three(), 9, Err(NotNow::NoServer(9))),
    ] {
        assert_eq!(status.check_drain(server), expected, "{what}");
    }
    let mut electing = three();
    electing.groups[1].leader = None;
    assert_eq!(electing.check_drain(3), Err(NotNow::NoLeader(1)));
}

#[test]
fn a_server_is_removed_when_it_votes_nowhere() {
    let states = [(1, Active), (2, Active), (3, Active), (4, Draining), (5, Removed)];
    let status = cluster(&states, vec![group(1, &[1, 2, 3], &[4]), group(2, &[1, 2, 3], &[4])]);
    assert_eq!(status.check_remove(4), Ok(()));
    assert_eq!(status.check_remove(5), Ok(()), "it is removed already");
    assert_eq!(status.check_remove(3), Err(NotNow::Votes { server: 3, groups: vec![0, 1] }));
    let mut lost = status.clone();
    lose(&mut lost, 3);
    assert_eq!(lost.check_remove(3), Err(NotNow::Votes { server: 3, groups: vec![0, 1] }));
    let mut electing = status;
    electing.groups[0].leader = None;
    assert_eq!(electing.check_remove(4), Err(NotNow::NoLeader(0)), "nobody knows who votes");
}

#[test]
fn a_lost_server_is_replaced_by_one_that_has_all() {
    let four = [(1, Active), (2, Active), (3, Active), (4, Active)];
    let status = cluster(&four, vec![group(1, &[1, 2, 3], &[4]), group(2, &[1, 2, 3], &[4])]);
    assert_eq!(status.check_replace(3, 4), Err(NotNow::NotLost(3)));
    let mut lost = status;
    lose(&mut lost, 3);
    assert_eq!(lost.check_replace(3, 4), Ok(()));
    assert_eq!(lost.check_replace(3, 9), Err(NotNow::NoServer(9)));
    let mut lagging = lost.clone();
    lag(&mut lagging, 1, 4, 5_000);
    assert_eq!(lagging.check_replace(3, 4), Err(NotNow::NotReady { server: 4, group: 1 }));
    let mut recent = lost.clone();
    recent.groups[1].replicas[2].silent_ms = Some(500);
    assert_eq!(recent.check_replace(3, 4), Err(NotNow::NotLost(3)), "it may only be slow");
    let mut drained = lost.clone();
    drained.servers[3].state = Draining;
    assert_eq!(drained.check_replace(3, 4), Err(NotNow::NotReady { server: 4, group: 0 }));
    let mut begun = lost;
    (begun.servers[2].state, begun.servers[2].replaced_by) = (Draining, Some(4));
    begun.groups[0].leader = None;
    assert_eq!(begun.check_replace(3, 4), Ok(()), "a replacement that was begun is not checked again");
}

#[test]
fn leaders_are_transferred_to_those_who_can_lead() {
    let groups = || vec![group(1, &[1, 2, 3], &[]), group(1, &[1, 2, 3], &[]), group(2, &[1, 2, 3], &[])];
    let status = cluster(&THREE, groups());
    let to = |transfers: Vec<(u64, u64)>| {
        Ok(transfers.into_iter().map(|(group, to)| LeaderTransfer { group, to }).collect::<Vec<_>>())
    };
    assert_eq!(status.plan_transfers(1, &[], None), to(vec![(0, 3), (1, 2)]), "those that lead fewest");
    assert_eq!(status.plan_transfers(1, &[1], Some(3)), to(vec![(1, 3)]));
    assert_eq!(status.plan_transfers(3, &[], None), to(vec![]), "it leads nothing");
    assert_eq!(status.plan_transfers(1, &[2], Some(3)), to(vec![]), "another one leads it");
    assert_eq!(status.plan_transfers(1, &[], Some(1)), to(vec![]));
    assert_eq!(status.plan_transfers(1, &[7], None), Err(NotNow::NoGroup(7)));
    assert_eq!(status.plan_transfers(1, &[], Some(7)), Err(NotNow::NoServer(7)));
    let mut lagging = status.clone();
    lag(&mut lagging, 1, 3, 5_000);
    assert_eq!(lagging.plan_transfers(1, &[1], Some(3)), Err(NotNow::NotReady { server: 3, group: 1 }));
    assert_eq!(lagging.plan_transfers(1, &[1], None), to(vec![(1, 2)]));
    let mut barred = status.clone();
    bar(&mut barred, 3);
    assert_eq!(barred.plan_transfers(1, &[1], Some(3)), Err(NotNow::NotReady { server: 3, group: 1 }));
    assert_eq!(barred.plan_transfers(1, &[], None), to(vec![(0, 2), (1, 2)]));
    let states = [(1, Active), (2, Draining), (3, Active)];
    let mut alone = cluster(&states, groups());
    lose(&mut alone, 3);
    assert_eq!(alone.plan_transfers(1, &[0], None), Err(NotNow::NoSuccessor(0)));
}
