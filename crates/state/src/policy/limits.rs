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

/// What a ledger says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct LimitCheck {
    /// The rules that were asked about.
    #[n(0)]
    pub rules: Vec<LedgerRule>,
    /// What the call is believed to cost.
    #[n(1)]
    pub estimate: Micros,
    /// When.
    #[n(2)]
    pub at: Time,
    /// The result.
    #[n(3)]
    pub outcome: LimitOutcome,
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
        /// Whether the call is reserved.
        #[n(1)]
        reserved: bool,
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
        /// When the limit may allow a call again.
        #[n(2)]
        until: Time,
    },
}

impl LimitCheck {
    /// What several ledgers say together of these rules: the first full limit, or that none is full. The call is reserved
    /// if every ledger has reserved it, since the earliest of them.
    #[must_use]
    pub fn joined(rules: &[LedgerRule], estimate: Micros, parts: &[Self]) -> Self {
        let at = parts.iter().map(|part| part.at).min().unwrap_or(Time(0));
        let mut left = Remaining::default();
        let mut held = !parts.is_empty();
        let mut outcome = None;
        for part in parts {
            match &part.outcome {
                LimitOutcome::Available { remaining, reserved } => {
                    left = left.least(*remaining);
                    held &= *reserved;
                }
                LimitOutcome::Full { .. } => outcome = outcome.or_else(|| Some(part.outcome.clone())),
            }
        }
        let outcome = outcome.unwrap_or(LimitOutcome::Available { remaining: left, reserved: held });
        Self { rules: rules.to_vec(), estimate, at, outcome }
    }
}
