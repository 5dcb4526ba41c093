//! What servers do that notice that another one is gone.

use crate::disk::End;
use crate::faults::kill;
use crate::members::{self, Shape};
use crate::server::GROUPS;
use crate::simulation::Simulation;

/// A leader's lease, until the next in turn has asked for votes, and until it has them, milliseconds. Without notice no election
/// is due within 300 milliseconds of the lease's end.
const LEASE: u64 = 450;
const ELECTED: u64 = 150;
/// Until a server that was started is connected and follows, milliseconds.
const SETTLED: u64 = 2_000;
/// Of each of these, other servers lead.
const SEEDS: std::ops::Range<u64> = 0..6;

/// The leaders of all groups; `None` while one of them has none.
fn leaders(simulation: &Simulation) -> Option<Vec<u64>> {
    (0..GROUPS).map(|group| simulation.leader(group).map(|(leader, _)| leader)).collect()
}

/// Plays with three servers that serve.
fn with_three(seed: u64, act: impl FnOnce(&mut Simulation)) {
    Simulation::with(seed, Shape::Fixed(3), |simulation| {
        assert!(members::found(simulation), "the cluster is founded");
        assert!(simulation.comes(10_000, |it| leaders(it).is_some()), "each group has a leader");
        simulation.pass(SETTLED);
        act(simulation);
    });
}

#[test]
fn a_leader_whose_process_ends_is_followed_at_the_end_of_its_lease() {
    for seed in SEEDS {
        with_three(seed, |simulation| {
            let before = leaders(simulation).unwrap();
            let gone = before[1];
            kill(simulation, gone);
            let follow = |it: &Simulation| leaders(it).is_some_and(|now| !now.contains(&gone));
            assert!(simulation.comes(LEASE + ELECTED, follow), "seed {seed}: {before:?}, without {gone}");
        });
    }
}

#[test]
fn without_notice_an_election_is_due_later() {
    with_three(0, |simulation| {
        let gone = leaders(simulation).unwrap()[1];
        simulation.server(gone).end(End::Killed);
        let follows = |it: &Simulation| it.leader(1).is_some();
        assert!(!simulation.comes(LEASE + ELECTED, follows), "nobody asks for votes before");
        assert!(simulation.comes(LEASE + ELECTED, follows), "it is due then");
    });
}

#[test]
fn a_leader_that_the_others_reach_goes_on() {
    with_three(0, |simulation| {
        let before = leaders(simulation).unwrap();
        for server in 1..=3 {
            for other in (1..=3).filter(|other| *other != server) {
                simulation.server(server).lose(other);
            }
            simulation.pass(SETTLED);
            assert_eq!(leaders(simulation), Some(before.clone()), "server {server} has lost the others");
        }
    });
}
