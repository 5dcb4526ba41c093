//! The decision on a tool call.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Micros, OpenId};

use crate::Reason;
use crate::approval::Warning;
use crate::catalogue::DefaultSetIn;
use crate::policy::CallGrounds;

/// What the policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Authorized {
    /// Allow, ask or deny.
    #[n(0)]
    pub effect: CallEffect,
    /// Why it is denied; `None` if it is not.
    #[n(1)]
    pub reason: Option<Reason>,
    /// Why it is decided like this; `None` if the rule says it all.
    #[n(2)]
    pub grounds: Option<CallGrounds>,
    /// The rule that decided, if one did.
    #[n(3)]
    pub rule: Option<MatchedRule>,
    /// The gate that a person decides, if one is asked.
    #[n(4)]
    pub gate: Option<OpenId>,
    /// The gate whose approval this call used up.
    #[n(5)]
    pub granted_by: Option<OpenId>,
    /// The call's name, for its report.
    #[n(6)]
    pub call_id: String,
    /// When a denied call may be allowed again, milliseconds from the decision.
    #[n(7)]
    pub retry_after_ms: Option<u64>,
    /// What is left after this call.
    #[n(8)]
    pub remaining: Remaining,
    /// What each layer said, if several did.
    #[cbor(n(9), default, skip_if = "Vec::is_empty")]
    pub layers: Vec<LayerDecision>,
    /// The session's sequence after the command.
    #[n(10)]
    pub sequence: u64,
    /// Whether nobody who may decide the gate was notified of it by mail.
    #[n(11)]
    pub unnotified: bool,
    /// What a reader of the gate should know.
    #[cbor(n(12), default, skip_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Allow, ask or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum CallEffect {
    /// It may be made now.
    #[n(0)]
    Allow,
    /// A person is asked first.
    #[n(1)]
    Ask,
    /// It may not be made.
    #[n(2)]
    Deny,
}

impl CallEffect {
    /// The effect's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A rule, by its position in the policy.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct MatchedRule {
    /// The layer's name: `policy`, `allowed_tools`, `email_config`.
    #[n(0)]
    pub layer: String,
    /// `deny`, `ask`, `allow`, or `default`.
    #[n(1)]
    pub list: String,
    /// Its pattern; empty for a default.
    #[n(2)]
    pub capability: String,
    /// Where the default was set, if it is one.
    #[n(3)]
    pub default_set_in: Option<DefaultSetIn>,
}

/// What is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Remaining {
    /// Calls, by the tightest rate limit.
    #[n(0)]
    pub calls: Option<u64>,
    /// Money, by the tightest limit or cap.
    #[n(1)]
    pub usd: Option<Micros>,
}

impl Remaining {
    /// The least of both.
    #[must_use]
    pub fn least(self, other: Self) -> Self {
        let calls = self.calls.into_iter().chain(other.calls).min();
        let usd = self.usd.into_iter().chain(other.usd).min();
        Self { calls, usd }
    }
}

/// What one layer says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct LayerDecision {
    /// Allow, ask or deny, limits apart.
    #[n(0)]
    pub effect: CallEffect,
    /// The rule that says so, with the layer's name.
    #[n(1)]
    pub rule: MatchedRule,
}
