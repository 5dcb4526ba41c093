//! How many people must approve, and who has.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, Time};

use super::{Directory, Open, Via};

/// How many of those whom a gate asks must approve, if one is not enough. Stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Quorum {
    /// Everybody who was asked, those whom an escalation added among them.
    #[n(0)]
    All,
    /// This many people, at least 1, however few are asked: then others have to be asked first.
    #[n(1)]
    AtLeast(#[n(0)] u32),
}

/// What a gate that needs several approvals has of them. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Voting {
    /// The rule.
    #[n(0)]
    pub quorum: Quorum,
    /// How many approvals that came to when it was counted last: when the gate opened, escalated or was approved.
    #[n(1)]
    pub need: u32,
    /// The approvals, oldest first; no two of one person.
    #[n(2)]
    pub votes: Vec<Vote>,
}

/// One person's approval. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Vote {
    /// Who, by the name that the person decided under.
    #[n(0)]
    pub by: String,
    /// Their address among those who are asked.
    #[n(1)]
    pub address: String,
    /// When.
    #[n(2)]
    pub at: Time,
    /// Their words beside it.
    #[n(3)]
    pub comment: String,
    /// Which way it came.
    #[n(4)]
    pub via: Via,
    /// The digest of what they were shown; it counts for nothing else.
    #[n(5)]
    pub shown: Digest,
}

impl Vote {
    /// Whether it is this person's.
    #[must_use]
    pub fn is_of(&self, person: &str, people: &Directory) -> bool {
        people.one_person(&self.by, person) || people.one_person(&self.address, person)
    }
}

impl Voting {
    /// How far it has come, in words.
    #[must_use]
    pub fn so_far(&self) -> String {
        format!("{} of {} approvals so far{}", self.votes.len(), self.need, self.who())
    }

    /// The same beside a label: how many of how many, and whose.
    #[must_use]
    pub fn count(&self) -> String {
        format!("{} of {}{}", self.votes.len(), self.need, self.who())
    }

    fn who(&self) -> String {
        let who: Vec<String> = self.votes.iter().map(|vote| vote.via.who(&vote.by)).collect();
        if who.is_empty() { String::new() } else { format!(" ({})", who.join(", ")) }
    }
}

/// How the approvals of a gate are counted at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    /// How many there are.
    pub(crate) have: usize,
    /// How many it takes, at least 1.
    pub(crate) need: usize,
    /// An address of each person who may approve and has not.
    pub(crate) missing: Vec<String>,
}

impl Tally {
    /// Tallies the votes, plus `more` if given. Excludes the requester if they may not decide.
    pub(crate) fn of(open: &Open, quorum: Quorum, more: Option<&Vote>, people: &Directory) -> Self {
        let asked = open.gate.asked.as_ref();
        let shown = asked.map(super::Asked::digest);
        let cast = asked.and_then(|asked| asked.voting.as_ref()).map(|voting| voting.votes.as_slice());
        let counts = |vote: &&Vote| Some(vote.shown) == shown;
        let votes: Vec<&Vote> = cast.unwrap_or_default().iter().chain(more).filter(counts).collect();
        let mut missing: Vec<String> = Vec::new();
        for one in asked.iter().flat_map(|asked| &asked.to) {
            let own = open.gate.kind.needs_another() && people.one_person(one, &open.gate.requester);
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
    pub(crate) fn is_enough(&self) -> bool {
        self.have >= self.need
    }

    /// The number that it takes, as it is stored.
    pub(crate) fn need(&self) -> u32 {
        u32::try_from(self.need).unwrap_or(u32::MAX)
    }
}
