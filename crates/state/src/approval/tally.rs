//! Approvals are counted.

use crate::approval::{OpenGate, Quorum, Vote};
use crate::catalogue::Directory;

impl Vote {
    /// Whether it is this person's.
    #[must_use]
    pub fn is_of(&self, person: &str, people: &Directory) -> bool {
        people.one_person(&self.by, person) || people.one_person(&self.address, person)
    }
}

/// How the approvals of a gate are counted at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// How many there are.
    pub have: usize,
    /// How many it takes, at least 1.
    pub need: usize,
    /// An address of each person who may approve and has not.
    pub missing: Vec<String>,
}

impl Tally {
    /// Tallies the votes, plus `more` if given. Excludes the requester if they may not decide.
    pub fn of(open: &OpenGate, quorum: Quorum, more: Option<&Vote>, people: &Directory) -> Self {
        let asked = open.body.asked.as_ref();
        let shown = asked.map(crate::approval::GateRequest::digest);
        let given = asked.and_then(|asked| asked.voting.as_ref()).map(|voting| voting.votes.as_slice());
        let counts = |vote: &&Vote| Some(vote.shown) == shown;
        let votes: Vec<&Vote> = given.unwrap_or_default().iter().chain(more).filter(counts).collect();
        let mut missing: Vec<String> = Vec::new();
        for one in asked.iter().flat_map(|asked| &asked.to) {
            let own = open.body.kind.needs_another() && people.one_person(one, &open.body.requester);
            let counted = votes.iter().any(|vote| vote.is_of(one, people))
                || missing.iter().any(|known| people.one_person(known, one));
            if !own && !counted {
                missing.push(one.clone());
            }
        }
        let need = match quorum {
            Quorum::All => votes.len() + missing.len(),
            // Never fewer because fewer are asked: data that names them would choose how many approve.
            Quorum::AtLeast(least) => usize::try_from(least).unwrap_or(usize::MAX),
        };
        Self { have: votes.len(), need: need.max(1), missing }
    }

    /// Whether it is enough.
    pub fn is_enough(&self) -> bool {
        self.have >= self.need
    }

    /// The number that it takes, as it is stored.
    pub fn need(&self) -> u32 {
        u32::try_from(self.need).unwrap_or(u32::MAX)
    }
}
