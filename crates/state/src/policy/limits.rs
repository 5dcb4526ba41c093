//! Limits that span sessions: what is asked of a ledger, and what it says.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Limit, Micros, Time};

use crate::policy::Remaining;

/// A rule's counters, and the limits that are checked against them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct LedgerRule {
    /// Whose ledger it is in: a definition, or the tenant as a whole.
    #[cbor(n(3), default)]
    pub process: String,
    /// The policy's role; empty if it names none.
    #[n(0)]
    pub role: String,
    /// The rule's pattern.
    #[n(1)]
    pub capability: String,
    /// None of them may be full.
    #[n(2)]
    pub limits: Vec<Limit>,
    /// The layers that set them.
    #[cbor(n(4), default)]
    pub layers: Vec<String>,
}

impl LedgerRule {
    /// Whether both have the same counters.
    #[must_use]
    pub fn counts_with(&self, other: &Self) -> bool {
        self.process == other.process && self.role == other.role && self.capability == other.capability
    }

    /// The rule with the layer that sets it, if that is not the definition's own policy.
    pub(crate) fn described(&self) -> String {
        match self.layers.as_slice() {
            [own] if own == "policy" => self.capability.clone(),
            layers => format!("{} ({})", self.capability, layers.join(", ")),
        }
    }
}

/// The rules by the ledger that they count in, in the order in which the ledgers are first named.
#[must_use]
pub fn by_ledger(rules: &[LedgerRule]) -> Vec<(String, Vec<LedgerRule>)> {
    let mut parts: Vec<(String, Vec<LedgerRule>)> = Vec::new();
    for rule in rules {
        match parts.iter_mut().find(|(process, _)| *process == rule.process) {
            Some((_, of_it)) => of_it.push(rule.clone()),
            None => parts.push((rule.process.clone(), vec![rule.clone()])),
        }
    }
    parts
}

/// What a ledger says of a call. The clocks of two ledgers, or of a ledger and a session, are never compared: what is read
/// outside the ledger is a duration, and a time of the ledger goes back to it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct LimitCheck {
    /// The rules that were asked about.
    #[n(0)]
    pub rules: Vec<LedgerRule>,
    /// What the call is believed to cost.
    #[n(1)]
    pub estimate: Micros,
    /// How old the answer is, milliseconds: the age of the oldest reservation, by the clock of its ledger when it answered,
    /// and the time since the question, by the clock of the one who asked.
    #[n(2)]
    pub age_ms: u64,
    /// The result.
    #[n(3)]
    pub outcome: LimitOutcome,
    /// The ledgers that have reserved the call; empty if they were only looked at.
    #[cbor(n(4), default)]
    pub held: Vec<HeldSince>,
}

/// A ledger that has reserved a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct HeldSince {
    /// Whose ledger it is.
    #[n(0)]
    pub process: String,
    /// When it made or renewed the reservation, by its own clock: the time at which the call counts there.
    #[n(1)]
    pub at: Time,
}

/// Whether all limits allow the call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum LimitOutcome {
    /// They have, and this is what is left.
    #[n(0)]
    Available {
        /// After this call if it was reserved, before it if it was only looked at.
        #[n(0)]
        remaining: Remaining,
    },
    /// One has none.
    #[n(1)]
    Full {
        /// Whether it is money; otherwise it is a rate.
        #[n(0)]
        money: bool,
        /// The rule's pattern, and the layers that set the limit if they are not the definition's own policy.
        #[n(1)]
        capability: String,
        /// How long until the limit may allow a call again, milliseconds.
        #[n(2)]
        wait_ms: u64,
    },
}

impl LimitCheck {
    /// What several ledgers say together of these rules: the first full limit, or that none is full. It is as old as the
    /// oldest of their answers.
    #[must_use]
    pub fn joined(rules: &[LedgerRule], estimate: Micros, parts: &[Self]) -> Self {
        let age_ms = parts.iter().map(|part| part.age_ms).max().unwrap_or(0);
        let held = parts.iter().flat_map(|part| part.held.clone()).collect();
        let mut left = Remaining::default();
        let mut outcome = None;
        for part in parts {
            match &part.outcome {
                LimitOutcome::Available { remaining } => left = left.least(*remaining),
                LimitOutcome::Full { .. } => outcome = outcome.or_else(|| Some(part.outcome.clone())),
            }
        }
        let outcome = outcome.unwrap_or(LimitOutcome::Available { remaining: left });
        Self { rules: rules.to_vec(), estimate, age_ms, outcome, held }
    }

    /// The answer after this time has passed since the question, milliseconds by the clock of the one who asked.
    #[must_use]
    pub fn aged(self, passed_ms: u64) -> Self {
        Self { age_ms: self.age_ms.saturating_add(passed_ms), ..self }
    }

    /// When this ledger reserved the call; `None` if it has not.
    #[must_use]
    pub fn held_at(&self, process: &str) -> Option<Time> {
        self.held.iter().find(|held| held.process == process).map(|held| held.at)
    }

    /// Returns true if no limit is full and the ledgers of all rules have reserved the call.
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        let held = self.rules.iter().all(|rule| self.held_at(&rule.process).is_some());
        held && !self.rules.is_empty() && matches!(self.outcome, LimitOutcome::Available { .. })
    }
}
