//! What the leader of a group does next, so that the group's members become those of the map. Pure.
//!
//! The map says which servers are to vote in a group; the other servers hold it as learners.
//!
//! An even number of voters survives no more failures than one voter less, and each failure is more likely. So an even
//! number of servers has one learner: of two servers one votes, of four three. A draining server votes only while the
//! others would be an even number. A server that is being replaced votes until another one can take its seat.

use std::collections::{BTreeMap, BTreeSet};
use switchward_state::catalogue::{Server, ServerState};

use crate::limits::VOTERS_KEPT;

/// What a server is for in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    /// It votes and leads.
    Active,
    /// It leads nothing, and votes only while the others would be an even number.
    Draining,
    /// It is being replaced, or others are to vote in the group: it leads nothing, and votes until they do.
    Leaving,
}

impl Seat {
    /// The seat of a server in a group in which these are to vote; `None` if it was removed.
    pub(crate) fn of(server: &Server, placed: &[u64]) -> Option<Self> {
        Self::in_state(server.state, server.replaced_by, placed.contains(&server.number).into())
    }

    /// The seat of a server in this state; `None` if it was removed.
    pub(crate) fn in_state(state: ServerState, replaced_by: Option<u64>, wanted: Wanted) -> Option<Self> {
        match (state, replaced_by, wanted) {
            (ServerState::Active, _, Wanted::Voter) => Some(Self::Active),
            (ServerState::Active, _, Wanted::Learner) => Some(Self::Leaving),
            (ServerState::Draining, None, _) => Some(Self::Draining),
            (ServerState::Draining, Some(_), _) => Some(Self::Leaving),
            (ServerState::Removed, ..) => None,
        }
    }
}

/// What a server is to be in a group by the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// It has a seat: its acknowledgement is to count.
    Voter,
    /// It is not.
    Learner,
}

impl From<bool> for Wanted {
    fn from(votes: bool) -> Self {
        if votes { Self::Voter } else { Self::Learner }
    }
}

/// The servers that hold a group by the map, none of which is removed.
pub(crate) type Seats = BTreeMap<u64, Seat>;

/// The members of a group, as its leader knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The leader.
    pub(crate) own: u64,
    /// The voters; two sets while a change is under way.
    pub(crate) voters: Vec<BTreeSet<u64>>,
    /// All members, learners included.
    pub(crate) members: BTreeSet<u64>,
    /// Those whose last contact is just now and that have almost all entries, the leader included.
    pub(crate) current: BTreeSet<u64>,
    /// Those that said that they must not lead now.
    pub(crate) barred: BTreeSet<u64>,
    /// The most voters that the group may have.
    pub(crate) voters_max: usize,
}

impl Seen {
    /// Returns true if a server has almost all entries and is not barred from leading.
    fn may_take_over(&self, server: u64) -> bool {
        self.current.contains(&server) && !self.barred.contains(&server)
    }
}

/// The next change of a group's members; one at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is nothing to do, or nothing can be done now.
    Rest,
    /// This server becomes a learner.
    Learn(u64),
    /// These servers become the voters; others that vote now become learners.
    Vote(BTreeSet<u64>),
    /// This learner is no longer a member.
    Forget(u64),
    /// This server becomes the leader.
    HandOver(u64),
}

/// The next step.
pub(crate) fn step(replicas: &Seats, seen: &Seen) -> Step {
    if replicas.is_empty() {
        return Step::Rest;
    }
    let voters = match seen.voters.as_slice() {
        [] => return Step::Rest,
        [voters] => voters,
        // A leader that is gone has begun it.
        [.., last] => return completed(last, seen),
    };
    if let Some(new) = replicas.keys().find(|server| !seen.members.contains(*server)) {
        return Step::Learn(*new);
    }
    let gone = |server: &&u64| !replicas.contains_key(*server) && !voters.contains(*server);
    if let Some(gone) = seen.members.iter().find(gone) {
        return Step::Forget(*gone);
    }
    let wanted = wanted(replicas, voters, seen);
    let able =
        |server: &&u64| **server != seen.own && voters.contains(*server) && seen.may_take_over(**server);
    let successor = wanted.iter().filter(|server| is_active(replicas, **server)).find(able).copied();
    if wanted == *voters {
        let drains = replicas.contains_key(&seen.own) && !is_active(replicas, seen.own);
        return successor.filter(|_| drains).map_or(Step::Rest, Step::HandOver);
    }
    if wanted.contains(&seen.own) {
        return votable(wanted, seen);
    }
    match successor {
        Some(to) => Step::HandOver(to),
        // Nobody who stays votes yet, so they vote beside this server first.
        None => {
            let both: BTreeSet<u64> = voters.union(&wanted).copied().collect();
            if both == *voters { Step::Rest } else { votable(both, seen) }
        }
    }
}

/// Completes a change of voters. A leader that will not vote hands over first: it would go on as a learner, which keeps the
/// others from electing and does not count as a leader.
fn completed(last: &BTreeSet<u64>, seen: &Seen) -> Step {
    if last.contains(&seen.own) {
        return Step::Vote(last.clone());
    }
    last.iter()
        .find(|server| seen.may_take_over(**server))
        .map_or(Step::Rest, |server| Step::HandOver(*server))
}

/// The servers that should vote, among those that can. Servers that go vote as long as there would be too few without
/// them: those that are there first.
fn wanted(replicas: &Seats, voters: &BTreeSet<u64>, seen: &Seen) -> BTreeSet<u64> {
    let mut wanted = seated(replicas, voters, seen);
    let mut going: Vec<u64> = voters
        .iter()
        .copied()
        .filter(|server| replicas.contains_key(server) && !wanted.contains(server))
        .collect();
    let leaves = |server: &u64| replicas.get(server) == Some(&Seat::Leaving);
    going.retain(|server| !is_active(replicas, *server));
    going.sort_by_key(|server| (!seen.current.contains(server), leaves(server), *server));
    let missing = kept(voters.len()).saturating_sub(wanted.len());
    wanted.extend(going.into_iter().take(missing));
    wanted
}

/// The number of voters that a group with this number keeps while servers go. An even number survives no more failures than
/// one voter less.
fn kept(voters: usize) -> usize {
    let kept = voters.min(VOTERS_KEPT);
    if kept.is_multiple_of(2) { kept.saturating_sub(1) } else { kept }
}

/// The servers that vote once those that go are not needed any more.
pub(crate) fn seated(replicas: &Seats, voters: &BTreeSet<u64>, seen: &Seen) -> BTreeSet<u64> {
    let able = |server: &u64| voters.contains(server) || seen.current.contains(server);
    let mut active: Vec<u64> =
        replicas.keys().copied().filter(|server| is_active(replicas, *server)).filter(able).collect();
    // Those stay that vote now, the leader first.
    active.sort_by_key(|server| (*server != seen.own, !voters.contains(server), *server));
    active.truncate(seen.voters_max);
    if active.is_empty() {
        return voters.clone();
    }
    if active.len().is_multiple_of(2) {
        let shrinks = active.len() <= voters.len();
        let stays = |server: &&u64| match replicas.get(*server) {
            Some(Seat::Draining) => true,
            // Without it, there would be fewer voters than now: another one is to take its seat first.
            Some(Seat::Leaving) => shrinks,
            Some(Seat::Active) | None => false,
        };
        match voters.iter().find(stays) {
            Some(draining) => active.push(*draining),
            None => drop(active.pop()),
        }
    }
    active.into_iter().collect()
}

/// The step to these voters, if a majority of them is there.
fn votable(voters: BTreeSet<u64>, seen: &Seen) -> Step {
    let present = voters.intersection(&seen.current).count();
    if present * 2 > voters.len() { Step::Vote(voters) } else { Step::Rest }
}

fn is_active(replicas: &Seats, server: u64) -> bool {
    replicas.get(&server) == Some(&Seat::Active)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Seat::{Active, Draining, Leaving};

    fn set(servers: &[u64]) -> BTreeSet<u64> {
        servers.iter().copied().collect()
    }

    fn seen(own: u64, voters: &[u64], members: &[u64], current: &[u64]) -> Seen {
        let (members, current) = (set(members), set(current));
        let (voters, barred) = (vec![set(voters)], BTreeSet::new());
        Seen { own, voters, members, current, barred, voters_max: 5 }
    }

    fn map(servers: &[(u64, Seat)]) -> Seats {
        servers.iter().copied().collect()
    }

    #[test]
    fn servers_join_as_learners_and_vote_three_at_a_time() {
        let two = map(&[(1, Active), (2, Active)]);
        assert_eq!(step(&two, &seen(1, &[1], &[1], &[1])), Step::Learn(2));
        assert_eq!(step(&two, &seen(1, &[1], &[1, 2], &[1, 2])), Step::Rest, "two voters survive no failure");
        let three = map(&[(1, Active), (2, Active), (3, Active)]);
        assert_eq!(step(&three, &seen(1, &[1], &[1, 2], &[1, 2])), Step::Learn(3));
        assert_eq!(step(&three, &seen(1, &[1], &[1, 2, 3], &[1, 2])), Step::Rest, "the third lags");
        assert_eq!(step(&three, &seen(1, &[1], &[1, 2, 3], &[1, 2, 3])), Step::Vote(set(&[1, 2, 3])));
        assert_eq!(step(&three, &seen(1, &[1, 2, 3], &[1, 2, 3], &[1, 2])), Step::Rest);
    }

    #[test]
    fn four_servers_have_three_voters_and_five_have_five() {
        let four = map(&[(1, Active), (2, Active), (3, Active), (4, Active)]);
        let all = [1, 2, 3, 4];
        assert_eq!(step(&four, &seen(2, &[1, 2, 3], &all, &all)), Step::Rest);
        let five = map(&[(1, Active), (2, Active), (3, Active), (4, Active), (5, Active)]);
        let all = [1, 2, 3, 4, 5];
        assert_eq!(step(&five, &seen(2, &[1, 2, 3], &all, &all)), Step::Vote(set(&all)));
    }

    #[test]
    fn three_of_five_servers_vote_if_the_map_says_so() {
        let servers = map(&[(1, Active), (2, Leaving), (3, Active), (4, Active), (5, Leaving)]);
        let all = [1, 2, 3, 4, 5];
        let three = |seen: Seen| Seen { voters_max: 3, ..seen };
        let expected = Step::Vote(set(&[1, 3, 4]));
        assert_eq!(step(&servers, &three(seen(1, &[1, 2, 3], &all, &all))), expected);
        assert_eq!(step(&servers, &three(seen(2, &[1, 2, 3], &all, &all))), Step::HandOver(1));
        assert_eq!(
            step(&servers, &three(seen(1, &[1, 2, 3], &all, &[1, 2, 3, 5]))),
            Step::Rest,
            "the new one lags"
        );
        assert_eq!(step(&servers, &three(seen(1, &[1, 3, 4], &all, &all))), Step::Rest);
        let five = all.map(|server| (server, Active));
        assert_eq!(step(&map(&five), &three(seen(1, &[1, 2, 3], &all, &all))), Step::Rest);
        assert_eq!(Seat::in_state(ServerState::Active, None, Wanted::Learner), Some(Leaving));
    }

    #[test]
    fn a_change_that_another_leader_began_is_completed_by_one_that_votes_after_it() {
        let servers = map(&[(1, Active), (2, Active), (4, Leaving), (5, Active)]);
        let all = [1, 2, 4, 5];
        let both = |seen: Seen| Seen { voters: vec![set(&[1, 2, 4]), set(&[1, 2, 5])], ..seen };
        let expected = Step::Vote(set(&[1, 2, 5]));
        assert_eq!(step(&servers, &both(seen(2, &[1], &all, &all))), expected);
        assert_eq!(step(&servers, &both(seen(4, &[1], &all, &all))), Step::HandOver(1));
        assert_eq!(step(&servers, &both(seen(4, &[1], &all, &[4, 5]))), Step::HandOver(5));
        assert_eq!(step(&servers, &both(seen(4, &[1], &all, &[4]))), Step::Rest, "nobody can take over");
    }

    #[test]
    fn a_removed_server_hands_over_and_goes() {
        let left = map(&[(2, Active), (3, Active)]);
        let all = [1, 2, 3];
        assert_eq!(step(&left, &seen(1, &all, &all, &all)), Step::HandOver(2));
        assert_eq!(step(&left, &seen(2, &all, &all, &all)), Step::Vote(set(&[2])));
        assert_eq!(step(&left, &seen(2, &[2], &all, &[2, 3])), Step::Forget(1));
        assert_eq!(step(&left, &seen(2, &[2], &[2, 3], &[2, 3])), Step::Rest);
        // A dead server is replaced by the fourth one.
        let replaced = map(&[(2, Active), (3, Active), (4, Active)]);
        let all = [1, 2, 3, 4];
        assert_eq!(step(&replaced, &seen(2, &[1, 2, 3], &all, &[2, 3, 4])), Step::Vote(set(&[2, 3, 4])));
    }

    #[test]
    fn a_draining_server_leads_nothing_and_votes_only_if_it_is_needed() {
        let three = map(&[(1, Draining), (2, Active), (3, Active)]);
        let all = [1, 2, 3];
        assert_eq!(step(&three, &seen(1, &all, &all, &all)), Step::HandOver(2));
        assert_eq!(step(&three, &seen(1, &all, &all, &[1, 3])), Step::HandOver(3));
        assert_eq!(step(&three, &seen(2, &all, &all, &all)), Step::Rest, "with it three vote");
        let four = map(&[(1, Draining), (2, Active), (3, Active), (4, Active)]);
        let all = [1, 2, 3, 4];
        assert_eq!(step(&four, &seen(2, &[1, 2, 3], &all, &all)), Step::Vote(set(&[2, 3, 4])));
        let none = map(&[(1, Draining), (2, Draining), (3, Draining)]);
        assert_eq!(step(&none, &seen(1, &[1, 2, 3], &[1, 2, 3], &[1, 2, 3])), Step::Rest);
    }

    #[test]
    fn a_server_that_is_replaced_votes_until_its_seat_is_taken() {
        let three = map(&[(1, Active), (2, Active), (3, Leaving)]);
        let all = [1, 2, 3];
        assert_eq!(step(&three, &seen(1, &all, &all, &[1, 2])), Step::Rest, "nobody can take the seat");
        let four = map(&[(1, Active), (2, Active), (3, Leaving), (4, Active)]);
        assert_eq!(step(&four, &seen(1, &all, &all, &[1, 2])), Step::Learn(4));
        let members = [1, 2, 3, 4];
        assert_eq!(step(&four, &seen(1, &all, &members, &[1, 2])), Step::Rest, "the new one lags");
        assert_eq!(step(&four, &seen(1, &all, &members, &[1, 2, 4])), Step::Vote(set(&[1, 2, 4])));
        assert_eq!(step(&four, &seen(1, &[1, 2, 4], &members, &[1, 2, 4])), Step::Rest);
        assert_eq!(step(&four, &seen(3, &all, &members, &members)), Step::HandOver(1), "it leads nothing");
        // A learner takes the seat at once, and the new server becomes the learner.
        let five = map(&[(1, Active), (2, Active), (3, Leaving), (4, Active), (5, Active)]);
        let members = [1, 2, 3, 4, 5];
        assert_eq!(step(&five, &seen(1, &all, &members, &[1, 2, 4, 5])), Step::Vote(set(&[1, 2, 4])));
    }

    #[test]
    fn servers_that_go_vote_until_others_can_take_their_seats() {
        let four = map(&[(1, Active), (2, Draining), (3, Leaving), (4, Active)]);
        let five = map(&[(1, Active), (2, Draining), (3, Leaving), (4, Leaving), (5, Draining)]);
        let two = map(&[(1, Active), (2, Draining), (3, Draining)]);
        for (what, servers, voters, current, expected) in [
            ("the new one lags", &four, vec![1, 2, 3], vec![1, 2], vec![1, 2, 3]),
            ("the drained one is away too", &four, vec![1, 2, 3], vec![1], vec![1, 2, 3]),
            ("the new one has all", &four, vec![1, 2, 3], vec![1, 2, 4], vec![1, 2, 4]),
            ("those that are there come first", &five, vec![1, 2, 3, 4, 5], vec![1, 3, 5], vec![1, 3, 5]),
            (
                "a drained one comes before one that leaves",
                &five,
                vec![1, 2, 3, 4, 5],
                vec![1, 4],
                vec![1, 2, 4],
            ),
            ("two drain", &two, vec![1, 2, 3], vec![1, 2, 3], vec![1, 2, 3]),
            ("one of two voters drains", &two, vec![1, 2], vec![1, 2], vec![1]),
        ] {
            let members: Vec<u64> = servers.keys().copied().collect();
            let seen = seen(1, &voters, &members, &current);
            assert_eq!(wanted(servers, &set(&voters), &seen), set(&expected), "{what}");
        }
    }

    #[test]
    fn no_server_gets_a_group_that_must_not_lead() {
        let three = map(&[(1, Draining), (2, Active), (3, Active)]);
        let all = [1, 2, 3];
        for (barred, expected) in [
            (vec![], Step::HandOver(2)),
            (vec![2], Step::HandOver(3)),
            (vec![3], Step::HandOver(2)),
            (vec![2, 3], Step::Rest),
        ] {
            let seen = Seen { barred: set(&barred), ..seen(1, &all, &all, &all) };
            assert_eq!(step(&three, &seen), expected, "{barred:?}");
        }
    }

    #[test]
    fn the_only_voter_drains_through_a_second_one() {
        let two = map(&[(1, Draining), (2, Active)]);
        assert_eq!(step(&two, &seen(1, &[1], &[1, 2], &[1])), Step::Rest, "the other one lags");
        assert_eq!(step(&two, &seen(1, &[1], &[1, 2], &[1, 2])), Step::Vote(set(&[1, 2])));
        assert_eq!(step(&two, &seen(1, &[1, 2], &[1, 2], &[1, 2])), Step::HandOver(2));
        assert_eq!(step(&two, &seen(2, &[1, 2], &[1, 2], &[1, 2])), Step::Vote(set(&[2])));
    }

    #[test]
    fn a_change_that_was_begun_is_ended_and_a_server_alone_has_none() {
        let three = map(&[(1, Active), (2, Active), (3, Active)]);
        let all = [1, 2, 3];
        let begun = Seen { voters: vec![set(&[1]), set(&all)], ..seen(2, &[], &all, &all) };
        assert_eq!(step(&three, &begun), Step::Vote(set(&all)));
        assert_eq!(step(&map(&[]), &seen(1, &[1], &[1], &[1])), Step::Rest);
    }

    #[test]
    fn no_change_is_made_without_a_majority_of_the_new_voters() {
        let left = map(&[(2, Active), (3, Active), (4, Active)]);
        let all = [1, 2, 3, 4];
        assert_eq!(step(&left, &seen(2, &[1, 2, 3, 4], &all, &[1, 2])), Step::Rest);
    }
}
