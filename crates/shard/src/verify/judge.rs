//! What the digests of a group's replicas say.

use std::collections::BTreeMap;

use crate::members::Marked;

/// The digests of a group's replicas at one entry of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupVerification {
    /// The number of the group; 0 is the catalogue.
    pub group: u64,
    /// The entry.
    pub index: u64,
    /// The digest that the replicas agree on: that of a majority of the voters, or of all that answered. `None` if those
    /// that answered differ, and no majority agrees.
    pub digest: Option<[u8; 32]>,
    /// The replicas: the voters by their servers, then the learners.
    pub replicas: Vec<ReplicaVerification>,
}

/// How the rows of one server compare with those of the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaVerification {
    /// The server that holds it.
    pub server: u64,
    /// Whether it votes.
    pub votes: bool,
    /// How it compares.
    pub outcome: VerifyOutcome,
}

/// How a replica compares with the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerifyOutcome {
    /// It has the digest that the replicas agree on.
    Agrees,
    /// It has another one, or the replicas agree on none.
    Differs {
        /// The digest of its rows.
        digest: [u8; 32],
    },
    /// It has not said its digest.
    Unreachable {
        /// Why not.
        why: String,
    },
}

impl GroupVerification {
    /// Returns true if two replicas that answered have different rows.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.replicas.iter().any(|replica| matches!(replica.outcome, VerifyOutcome::Differs { .. }))
    }

    /// The servers whose replicas agree.
    #[must_use]
    pub fn agreeing(&self) -> Vec<u64> {
        self.servers(|replica| replica.outcome == VerifyOutcome::Agrees)
    }

    /// The servers whose replicas differ.
    #[must_use]
    pub fn differing(&self) -> Vec<u64> {
        self.servers(|replica| matches!(replica.outcome, VerifyOutcome::Differs { .. }))
    }

    /// Returns true if a majority of the voters agrees: then a replica that differs is wrong.
    #[must_use]
    pub(crate) fn is_decided(&self) -> bool {
        let votes = self.servers(|replica| replica.votes).len();
        let agree = self.servers(|replica| replica.votes && replica.outcome == VerifyOutcome::Agrees).len();
        is_majority(agree, votes)
    }

    fn servers(&self, wanted: impl Fn(&ReplicaVerification) -> bool) -> Vec<u64> {
        self.replicas.iter().filter(|replica| wanted(replica)).map(|replica| replica.server).collect()
    }
}

/// Returns true if this number of servers is more than half of the voters.
pub(super) fn is_majority(servers: usize, voters: usize) -> bool {
    servers * 2 > voters
}

/// Compares what the replicas of a group have said.
pub(super) fn judge(
    group: u64,
    marked: &Marked,
    mut said: BTreeMap<u64, Result<[u8; 32], String>>,
) -> GroupVerification {
    let digest = agreed(marked, &said);
    let voters = marked.voters.iter().map(|server| (*server, true));
    let replicas = voters.chain(marked.learners.iter().map(|server| (*server, false)));
    let replicas = replicas.map(|(server, votes)| {
        let outcome = match said.remove(&server) {
            Some(Ok(own)) if Some(own) == digest => VerifyOutcome::Agrees,
            Some(Ok(digest)) => VerifyOutcome::Differs { digest },
            Some(Err(why)) => VerifyOutcome::Unreachable { why },
            None => VerifyOutcome::Unreachable { why: "it was not asked".to_owned() },
        };
        ReplicaVerification { server, votes, outcome }
    });
    GroupVerification { group, index: marked.index, digest, replicas: replicas.collect() }
}

/// The digest of a majority of the voters, or of all that answered.
fn agreed(marked: &Marked, said: &BTreeMap<u64, Result<[u8; 32], String>>) -> Option<[u8; 32]> {
    let mut votes: BTreeMap<[u8; 32], usize> = BTreeMap::new();
    for (server, digest) in said.iter().filter_map(|(server, said)| Some((server, said.as_ref().ok()?))) {
        *votes.entry(*digest).or_default() += usize::from(marked.voters.contains(server));
    }
    let majority = votes.iter().find(|(_, votes)| is_majority(**votes, marked.voters.len()));
    let only = votes.iter().next().filter(|_| votes.len() == 1);
    majority.or(only).map(|(digest, _)| *digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: [u8; 32] = [1; 32];
    const WRONG: [u8; 32] = [2; 32];

    fn judged(voters: &[u64], learners: &[u64], said: &[(u64, Option<[u8; 32]>)]) -> GroupVerification {
        let marked = Marked { index: 9, voters: voters.to_vec(), learners: learners.to_vec() };
        let said =
            said.iter().map(|(server, digest)| (*server, digest.ok_or_else(|| "it is silent".to_owned())));
        judge(1, &marked, said.collect())
    }

    #[test]
    fn a_majority_of_the_voters_decides() {
        let seen = judged(
            &[1, 2, 3],
            &[4],
            &[(1, Some(RIGHT)), (2, Some(WRONG)), (3, Some(RIGHT)), (4, Some(WRONG))],
        );
        assert_eq!((seen.digest, seen.agreeing(), seen.differing()), (Some(RIGHT), vec![1, 3], vec![2, 4]));
        assert!(seen.differs() && seen.is_decided());
        let seen = judged(&[1, 2, 3], &[], &[(1, Some(RIGHT)), (2, Some(RIGHT)), (3, Some(RIGHT))]);
        assert!(!seen.differs() && seen.is_decided());
    }

    #[test]
    fn without_a_majority_nobody_is_right() {
        for (voters, said) in [
            (vec![1, 2], vec![(1, Some(RIGHT)), (2, Some(WRONG))]),
            (vec![1, 2, 3], vec![(1, Some(RIGHT)), (2, Some(WRONG)), (3, None)]),
            (vec![1, 2, 3, 4], vec![(1, Some(RIGHT)), (2, Some(RIGHT)), (3, Some(WRONG)), (4, Some(WRONG))]),
        ] {
            let seen = judged(&voters, &[], &said);
            assert!(seen.differs() && !seen.is_decided() && seen.digest.is_none(), "{seen:?}");
        }
    }

    #[test]
    fn a_silent_server_is_no_difference() {
        let seen = judged(&[1, 2, 3], &[], &[(1, Some(RIGHT)), (2, None), (3, None)]);
        assert_eq!((seen.digest, seen.differs(), seen.is_decided()), (Some(RIGHT), false, false));
        let why = "it is silent".to_owned();
        assert_eq!(seen.replicas[1].outcome, VerifyOutcome::Unreachable { why });
        let seen = judged(&[1], &[2], &[(1, Some(RIGHT)), (2, Some(WRONG))]);
        assert_eq!((seen.digest, seen.differing(), seen.is_decided()), (Some(RIGHT), vec![2], true));
    }
}
