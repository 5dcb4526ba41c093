//! Which leader moves next, so that each active server leads about the same number of groups. Pure.
//!
//! A group moves only if its leader then leads no fewer groups than the other server, so a move is never undone by the next
//! one. It moves only after its leader and its term have been the same for [`BALANCE_STABLE_FOR`].

use std::collections::{BTreeMap, BTreeSet};
use switchward_state::catalogue::ServerState;
use tokio::time::Instant;

use super::placement::is_moving;
use super::status::ClusterStatus;
use crate::limits::{BALANCE_LAG_MAX, BALANCE_STABLE_FOR};

/// A group that another server is to lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    /// The number of the group; 0 is the catalogue.
    pub(crate) group: u64,
    /// The server that leads it.
    pub(crate) from: u64,
    /// The server that is to lead it.
    pub(crate) to: u64,
}

/// The next move; `None` if the leaders are spread, or if a group has no leader. Only `stable` groups move. Of several, the
/// one with the highest number moves, so that the catalogue's moves last.
pub(crate) fn next_move(status: &ClusterStatus, stable: &BTreeSet<u64>) -> Option<Move> {
    if status.groups.iter().any(|group| group.leader.is_none()) {
        return None;
    }
    let able = status.servers.iter();
    let able = able.filter(|server| server.may_lead && server.state == ServerState::Active);
    let mut by_leads: Vec<(usize, u64)> = able.map(|server| (server.leads.len(), server.number)).collect();
    by_leads.sort_unstable();
    for (most, from) in by_leads.iter().rev() {
        let fewer = by_leads.iter().take_while(|(fewest, _)| fewest + 1 < *most);
        for (_, to) in fewer {
            let led = status.groups.iter().rev().filter(|group| group.leader == Some(*from));
            let mut movable = led.filter(|group| stable.contains(&group.group) && !is_moving(group));
            if let Some(group) = movable.find(|group| status.can_lead(*to, group, BALANCE_LAG_MAX)) {
                return Some(Move { group: group.group, from: *from, to: *to });
            }
        }
    }
    None
}

/// Since when each group has had its leader.
#[derive(Debug, Default)]
pub(crate) struct Stability(BTreeMap<u64, Since>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Since {
    leader: Option<u64>,
    term: u64,
    at: Instant,
}

impl Stability {
    /// Takes in what is seen now. Returns the groups that have had the same leader in the same term for
    /// [`BALANCE_STABLE_FOR`].
    pub(crate) fn observe(&mut self, status: &ClusterStatus, now: Instant) -> BTreeSet<u64> {
        let before = std::mem::take(&mut self.0);
        for group in &status.groups {
            let seen = Since { leader: group.leader, term: group.term, at: now };
            let same = before
                .get(&group.group)
                .filter(|known| (known.leader, known.term) == (seen.leader, seen.term));
            self.0.insert(group.group, same.copied().unwrap_or(seen));
        }
        let stable = self.0.iter();
        let stable = stable.filter(|(_, since)| now.duration_since(since.at) >= BALANCE_STABLE_FOR);
        stable.map(|(group, _)| *group).collect()
    }

    /// Lets a group rest that could not be moved.
    pub(crate) fn disturb(&mut self, group: u64) {
        self.0.remove(&group);
    }

    /// Forgets everything: another server watches the groups now.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{bar, cluster, group, lag, lose};
    use super::super::status::GroupStatus;
    use super::*;
    use ServerState::{Active, Draining};
    use std::time::Duration;

    const THREE: [(u64, ServerState); 3] = [(1, Active), (2, Active), (3, Active)];

    /// Groups of three voters with these leaders.
    fn led_by(leaders: &[u64]) -> Vec<GroupStatus> {
        leaders.iter().map(|leader| group(*leader, &[1, 2, 3], &[])).collect()
    }

    fn all(status: &ClusterStatus) -> BTreeSet<u64> {
        status.groups.iter().map(|group| group.group).collect()
    }

    fn moves(leaders: &[u64]) -> Option<(u64, u64, u64)> {
        let status = cluster(&THREE, led_by(leaders));
        next_move(&status, &all(&status)).map(|one| (one.group, one.from, one.to))
    }

    #[test]
    fn the_leader_of_most_groups_gives_one_to_that_of_fewest() {
        for (leaders, expected) in [
            (vec![1, 1, 1], Some((2, 1, 2))),
            (vec![1, 1, 2], Some((1, 1, 3))),
            (vec![1, 3, 2], None),
            (vec![1, 1, 2, 3], None),
            (vec![1, 1, 1, 2, 3], Some((2, 1, 2))),
            (vec![1, 1, 2, 2, 3], None),
            (vec![2, 2, 2, 2, 1], Some((3, 2, 3))),
            (vec![1], None),
        ] {
            assert_eq!(moves(&leaders), expected, "{leaders:?}");
        }
    }

    #[test]
    fn moves_come_to_an_end_and_leave_no_server_two_behind() {
        for groups in 1..=12 {
            let mut leaders = vec![1; groups];
            let mut count = 0;
            while let Some((group, _, to)) = moves(&leaders) {
                leaders[usize::try_from(group).unwrap()] = to;
                count += 1;
                assert!(count <= groups, "{leaders:?}");
            }
            let leads = [1, 2, 3].map(|server| leaders.iter().filter(|leader| **leader == server).count());
            let (most, fewest) = (leads.iter().max().unwrap(), leads.iter().min().unwrap());
            assert!(most - fewest <= 1, "{leads:?}");
        }
    }

    #[test]
    fn nobody_gets_a_group_who_drains_lags_must_not_lead_or_does_not_answer() {
        let next = |status: &ClusterStatus| next_move(status, &all(status)).map(|one| (one.group, one.to));
        let drained = cluster(&[(1, Active), (2, Draining), (3, Active)], led_by(&[1, 1, 1]));
        assert_eq!(next(&drained), Some((2, 3)));
        let mut lagging = cluster(&THREE, led_by(&[1, 1, 1]));
        lag(&mut lagging, 2, 2, BALANCE_LAG_MAX + 1);
        assert_eq!(next(&lagging), Some((1, 2)), "it lags in one group alone");
        let mut lost = cluster(&THREE, led_by(&[1, 1, 1]));
        lose(&mut lost, 2);
        assert_eq!(next(&lost), Some((2, 3)));
        lose(&mut lost, 3);
        assert_eq!(next(&lost), None);
        let mut barred = cluster(&THREE, led_by(&[1, 1, 1]));
        bar(&mut barred, 2);
        assert_eq!(next(&barred), Some((2, 3)));
        bar(&mut barred, 3);
        assert_eq!(next(&barred), None);
        let mut electing = cluster(&THREE, led_by(&[1, 1, 1]));
        electing.groups[0].leader = None;
        assert_eq!(next(&electing), None);
        let learner = cluster(&[(1, Active), (2, Active)], vec![group(1, &[1], &[2]), group(1, &[1], &[2])]);
        assert_eq!(next(&learner), None, "a learner does not lead");
    }

    #[test]
    fn only_groups_that_have_been_stable_move() {
        let mut status = cluster(&THREE, led_by(&[1, 1, 1]));
        let (mut stability, begin) = (Stability::default(), Instant::now());
        let at = |parts: u32| begin + BALANCE_STABLE_FOR * parts / 4;
        assert_eq!(stability.observe(&status, at(0)), BTreeSet::new());
        status.groups[1].term += 1;
        assert_eq!(stability.observe(&status, at(2)), BTreeSet::new());
        let stable = stability.observe(&status, at(4));
        assert_eq!(stable, BTreeSet::from([0, 2]));
        assert_eq!(next_move(&status, &stable).map(|one| one.group), Some(2));
        assert_eq!(next_move(&status, &BTreeSet::new()), None);
        stability.disturb(2);
        assert_eq!(stability.observe(&status, at(6)), BTreeSet::from([0, 1]), "one that rests is not stable");
        let long = begin + BALANCE_STABLE_FOR * 3 + Duration::from_secs(1);
        assert_eq!(stability.observe(&status, long), BTreeSet::from([0, 1, 2]));
        stability.clear();
        assert_eq!(stability.observe(&status, long), BTreeSet::new());
    }
}
