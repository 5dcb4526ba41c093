use super::super::checks::lacks_at_most;
use super::super::plan::{Seat, Seats, Seen, Step, step};
use super::super::samples::{cluster, group, lag, lose};
use super::super::status::ReplicaStatus;
use super::*;
use ServerState::{Active, Draining, Removed};
use proptest::prelude::*;

const FOUR: [(u64, ServerState); 4] = [(1, Active), (2, Active), (3, Active), (4, Active)];

fn all(status: &ClusterStatus) -> BTreeSet<u64> {
    status.groups.iter().map(|group| group.group).collect()
}

fn next(status: &ClusterStatus) -> Option<(u64, Vec<u64>)> {
    next_placement(status, &all(status)).map(|placement| (placement.group, placement.voters))
}

/// Three voters of four servers, in each group; the fourth one is a learner.
fn four() -> ClusterStatus {
    cluster(&FOUR, [1, 2, 3, 1].map(|leader| group(leader, &[1, 2, 3], &[4])).to_vec())
}

#[test]
fn a_fourth_server_gets_seats_and_the_catalogue_moves_last() {
    let mut status = four();
    let mut moved = Vec::new();
    while let Some((group, voters)) = next(&status) {
        moved.push((group, voters.clone()));
        let at = usize::try_from(group).unwrap();
        status.groups[at].placed.clone_from(&voters);
        assert_eq!(next(&status), None, "one seat moves at a time");
        status.groups[at].voters = voters;
        assert!(moved.len() < 10, "{moved:?}");
    }
    assert_eq!(moved, [(3, vec![1, 2, 4]), (2, vec![1, 3, 4]), (1, vec![2, 3, 4])]);
    assert_eq!([1, 2, 3, 4].map(|server| seats(&status, server)), [3; 4]);
}

#[test]
fn seats_are_spread_only_in_stable_groups_that_have_all_their_voters() {
    let status = four();
    assert_eq!(next_placement(&status, &BTreeSet::new()), None);
    let of = |stable: u64| next_placement(&status, &BTreeSet::from([stable])).map(|one| one.group);
    assert_eq!([0, 2].map(of), [Some(0), Some(2)]);
    let mut lagging = four();
    (0..4).for_each(|group| lag(&mut lagging, group, 4, BALANCE_LAG_MAX + 1));
    assert_eq!(next(&lagging), None);
    let mut lost = four();
    lose(&mut lost, 2);
    assert_eq!(next(&lost), None, "who is lost keeps the seats until an operator says otherwise");
    let mut electing = four();
    electing.groups[1].leader = None;
    assert_eq!(next(&electing), None);
    let alone = ClusterStatus { cluster: None, ..four() };
    assert_eq!(next(&alone), None);
    let three = cluster(&FOUR[..3], vec![group(1, &[1, 2, 3], &[]); 4]);
    assert_eq!(next(&three), None);
}

#[test]
fn the_seats_of_a_server_that_goes_move_at_once() {
    let mut drained = four();
    drained.servers[1].state = Draining;
    assert_eq!(next_placement(&drained, &BTreeSet::new()).map(|one| one.voters), Some(vec![1, 3, 4]));
    lag(&mut drained, 0, 4, MEMBER_LAG_MAX + 1);
    assert_eq!(next(&drained), Some((1, vec![1, 3, 4])), "it lags in one group alone");
    let states = [(1, Active), (2, Active), (3, Draining), (4, Active), (5, Active)];
    let mut replaced = cluster(&states, vec![group(1, &[1, 2, 3], &[4, 5])]);
    lose(&mut replaced, 3);
    assert_eq!(next(&replaced), Some((0, vec![1, 2, 4])), "those with fewest seats come first");
    replaced.servers[2].replaced_by = Some(5);
    assert_eq!(next(&replaced), Some((0, vec![1, 2, 5])), "the operator has named a server");
    lose(&mut replaced, 5);
    assert_eq!(next(&replaced), Some((0, vec![1, 2, 4])));
    lose(&mut replaced, 4);
    assert_eq!(next(&replaced), None, "nobody can take the seat");
    let mut removed =
        cluster(&[(1, Active), (2, Removed), (3, Active), (4, Active)], vec![group(1, &[1, 3], &[4])]);
    assert_eq!(next(&removed), Some((0, vec![1, 3, 4])), "a seat is free");
    removed.voters = 1;
    assert_eq!(next(&removed), None);
}

#[test]
fn a_move_whose_new_server_is_gone_takes_another_way() {
    let mut status = four();
    status.groups[1].placed = vec![1, 2, 4];
    assert_eq!(next(&status), None, "it goes on");
    lose(&mut status, 4);
    assert_eq!(next(&status), Some((1, vec![1, 2, 3])), "the seat goes back");
    status.servers[2].state = Draining;
    assert_eq!(next(&status), None, "nobody can take it");
    let states = [(1, Active), (2, Active), (3, Draining), (4, Active), (5, Active)];
    let mut other = cluster(&states, vec![group(1, &[1, 2, 3], &[4, 5])]);
    other.groups[0].placed = vec![1, 2, 4];
    lose(&mut other, 4);
    assert_eq!(next(&other), Some((0, vec![1, 2, 5])));
}

/// A server of the model.
#[derive(Debug, Clone, Copy)]
struct Machine {
    state: ServerState,
    replaced_by: Option<u64>,
    is_up: bool,
}

/// A group of the model. The members are all servers that are not removed.
#[derive(Debug, Clone)]
struct Replicated {
    placed: Vec<u64>,
    voters: BTreeSet<u64>,
    leader: Option<u64>,
}

/// A cluster whose servers have all entries at once, unless they are down.
#[derive(Debug, Clone)]
struct Model {
    voters: usize,
    machines: Vec<Machine>,
    groups: Vec<Replicated>,
}

/// What happens to a cluster.
#[derive(Debug, Clone, Copy)]
enum Act {
    Join,
    Fail(u8),
    Start(u8),
    Drain(u8),
    Activate(u8),
    Replace(u8, u8),
    /// The leader of the catalogue looks once.
    Assign,
    /// The leader of a group looks once.
    Follow(u8),
}

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Join),
        2 => any::<u8>().prop_map(Act::Fail),
        2 => any::<u8>().prop_map(Act::Start),
        2 => any::<u8>().prop_map(Act::Drain),
        1 => any::<u8>().prop_map(Act::Activate),
        1 => any::<(u8, u8)>().prop_map(|(lost, by)| Act::Replace(lost, by)),
        8 => Just(Act::Assign),
        8 => any::<u8>().prop_map(Act::Follow),
    ]
}

impl Model {
    fn new(voters: usize, groups: usize) -> Self {
        let group = Replicated { placed: vec![1], voters: BTreeSet::from([1]), leader: Some(1) };
        let mut model = Self { voters, machines: Vec::new(), groups: vec![group; groups] };
        model.machines.push(Machine { state: Active, replaced_by: None, is_up: true });
        model
    }

    fn is_up(&self, server: u64) -> bool {
        self.machines[usize::try_from(server).unwrap() - 1].is_up
    }

    fn machine(&mut self, at: u8) -> (u64, &mut Machine) {
        let at = usize::from(at) % self.machines.len();
        (u64::try_from(at).unwrap() + 1, &mut self.machines[at])
    }

    fn status(&self) -> ClusterStatus {
        let states: Vec<(u64, ServerState)> =
            (1..).zip(&self.machines).map(|(number, machine)| (number, machine.state)).collect();
        let groups = self.groups.iter().map(|known| {
            let present = |number: &u64| states.iter().any(|(one, state)| one == number && *state != Removed);
            let learners =
                (1..=states.len() as u64).filter(|one| present(one) && !known.voters.contains(one));
            let voters: Vec<u64> = known.voters.iter().copied().collect();
            let seen = group(1, &voters, &learners.collect::<Vec<_>>());
            GroupStatus { leader: known.leader, placed: known.placed.clone(), ..seen }
        });
        let mut status = cluster(&states, groups.collect());
        status.voters = self.voters;
        for (number, machine) in (1..).zip(&self.machines) {
            if !machine.is_up {
                lose(&mut status, number);
            }
        }
        for (server, machine) in status.servers.iter_mut().zip(&self.machines) {
            server.replaced_by = machine.replaced_by;
        }
        status
    }

    /// Those with a majority elect somebody whenever the leader is gone.
    fn elect(&mut self) {
        let up: BTreeSet<u64> = (1..=self.machines.len() as u64).filter(|one| self.is_up(*one)).collect();
        for group in &mut self.groups {
            let there: Vec<u64> = group.voters.intersection(&up).copied().collect();
            let has_majority = there.len() * 2 > group.voters.len();
            let stays = group.leader.filter(|leader| there.contains(leader));
            group.leader = if has_majority { stays.or_else(|| there.first().copied()) } else { None };
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Join => {
                if self.machines.len() < 8 {
                    self.machines.push(Machine { state: Active, replaced_by: None, is_up: true });
                    let new = u64::try_from(self.machines.len()).unwrap();
                    let seats = self.voters;
                    let free = self.groups.iter_mut().filter(|group| group.placed.len() < seats);
                    free.for_each(|group| group.placed.push(new));
                }
            }
            Act::Fail(at) => self.machine(at).1.is_up = false,
            Act::Start(at) => self.machine(at).1.is_up = true,
            Act::Drain(at) => {
                let (number, _) = self.machine(at);
                if self.status().check_drain(number).is_ok() {
                    self.machine(at).1.state = Draining;
                }
            }
            Act::Activate(at) => {
                let machine = self.machine(at).1;
                (machine.state, machine.replaced_by) = (Active, None);
            }
            Act::Replace(lost, by) => {
                let (number, by) = (self.machine(lost).0, self.machine(by).0);
                if number != by && self.status().check_replace(number, by).is_ok() {
                    let machine = self.machine(lost).1;
                    (machine.state, machine.replaced_by) = (Draining, Some(by));
                }
            }
            Act::Assign => drop(self.assign()),
            Act::Follow(at) => drop(self.follow(usize::from(at) % self.groups.len())),
        }
        self.elect();
    }

    /// Returns true if something was placed.
    fn assign(&mut self) -> bool {
        let status = self.status();
        let Some(next) = next_placement(&status, &all(&status)) else { return false };
        let group = &mut self.groups[usize::try_from(next.group).unwrap()];
        let before: BTreeSet<u64> = group.placed.iter().copied().collect();
        let after: BTreeSet<u64> = next.voters.iter().copied().collect();
        assert!(before.difference(&after).count() <= 1 && after.difference(&before).count() == 1);
        assert!(after.len() <= self.voters && next.voters.is_sorted());
        group.placed = next.voters;
        true
    }

    /// The leader of a group takes its next step. Returns true if there was one.
    fn follow(&mut self, at: usize) -> bool {
        let Some(own) = self.groups[at].leader else { return false };
        let up: BTreeSet<u64> = (1..=self.machines.len() as u64).filter(|one| self.is_up(*one)).collect();
        let members: BTreeSet<u64> = (1..=self.machines.len() as u64).collect();
        let group = &self.groups[at];
        let seat = |(number, machine): (u64, &Machine)| {
            let wanted = group.placed.contains(&number).into();
            Some((number, Seat::in_state(machine.state, machine.replaced_by, wanted)?))
        };
        let seats: Seats = (1..).zip(&self.machines).filter_map(seat).collect();
        let seen = Seen {
            own,
            voters: vec![group.voters.clone()],
            members,
            current: up.clone(),
            barred: BTreeSet::new(),
            voters_max: self.voters,
        };
        match step(&seats, &seen) {
            Step::Rest => false,
            Step::HandOver(to) => {
                assert!(up.contains(&to) && group.voters.contains(&to));
                self.groups[at].leader = Some(to);
                true
            }
            Step::Vote(voters) => {
                let there = |voters: &BTreeSet<u64>| voters.intersection(&up).count();
                let (before, after) = (group.voters.len(), voters.len());
                assert!(there(&voters) * 2 > after, "a majority of the new voters has all entries");
                // The only voter hands over through a second one, so two may become one.
                let kept = before.min(3).div_ceil(2) * 2 - 1;
                assert!(after >= kept.min(before), "{before} voters become {after}");
                assert!(there(&voters) >= there(&group.voters).min(kept.min(after) / 2 + 1));
                self.groups[at].voters = voters;
                true
            }
            Step::Learn(_) | Step::Forget(_) => panic!("all servers are members"),
        }
    }

    /// Lets the leaders work until nothing changes any more.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            self.elect();
            let placed = self.assign();
            let followed = (0..self.groups.len()).map(|at| self.follow(at)).filter(|moved| *moved).count();
            if !placed && followed == 0 {
                return;
            }
        }
        panic!("the seats move for ever: {self:?}");
    }
}

proptest! {
    #[test]
    fn no_plan_removes_a_majority_and_each_one_ends(
        five in any::<bool>(),
        groups in 1_usize..8,
        acts in proptest::collection::vec(acts(), 0..80),
    ) {
        let mut model = Model::new(if five { 5 } else { 3 }, groups);
        for act in acts {
            model.act(act);
        }
        model.settle();
        for machine in &mut model.machines {
            machine.is_up = true;
        }
        model.settle();
        let status = model.status();
        let active: Vec<u64> = (1..).zip(&model.machines)
            .filter(|(_, machine)| machine.state == Active)
            .map(|(number, _)| number)
            .collect();
        let counts: Vec<usize> = active.iter().map(|server| seats(&status, *server)).collect();
        let has_enough = active.len() >= model.voters;
        for group in &model.groups {
            prop_assert!(group.leader.is_some());
            if has_enough {
                prop_assert_eq!(&group.placed.iter().copied().collect::<BTreeSet<u64>>(), &group.voters);
                prop_assert_eq!(group.voters.len(), model.voters);
                prop_assert!(group.voters.iter().all(|voter| active.contains(voter)), "a drained server has a seat");
            }
        }
        if has_enough {
            let (most, fewest) = (counts.iter().max().unwrap(), counts.iter().min().unwrap());
            prop_assert!(most - fewest <= 1, "{:?}", counts);
        }
    }
}

#[test]
fn a_replica_that_has_failed_gets_no_seat() {
    let mut status = four();
    let failed = |replica: &mut ReplicaStatus| replica.failed = Some("it is broken".into());
    status
        .groups
        .iter_mut()
        .flat_map(|group| &mut group.replicas)
        .filter(|one| one.server == 4)
        .for_each(failed);
    assert_eq!(next(&status), None);
    assert!(!lacks_at_most(&status.groups[0], 4, MEMBER_LAG_MAX));
}
