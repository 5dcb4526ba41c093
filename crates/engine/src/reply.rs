//! Replies: what an accepted command is answered with, and what a repetition of it is answered with again.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Micros, OpenId, SessionId, TenantId, Time};

use crate::Standing;
use crate::command::DefaultSetIn;
use crate::policy::LayerVerdict;

/// The answer to an accepted command. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Reply {
    /// A session was moved, or stays in its state; its view says the rest.
    #[n(0)]
    Session {
        /// The session.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
    },
    /// What the policy says of a call.
    #[n(1)]
    Authorized(#[n(0)] Authorized),
    /// A gate was decided.
    #[n(2)]
    Gate {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// The session's sequence after the command.
        #[n(1)]
        sequence: u64,
    },
    /// A code of a decision page was looked at.
    #[n(170)]
    PageCode {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Whether it was the right one.
        #[n(1)]
        accepted: bool,
        /// How often something may still be entered before another code is needed.
        #[n(2)]
        left: u32,
    },
    /// A ledger holds the call, or does not.
    #[n(3)]
    Limits(#[n(0)] crate::policy::LimitCheck),
    /// Done, and nothing more to say.
    #[n(4)]
    Done,
    /// A tenant was made or changed.
    #[n(5)]
    Tenant(#[n(0)] TenantId),
    /// A key was made or revoked.
    #[n(6)]
    Key(#[n(0)] String),
    /// A version was made, found or activated.
    #[n(7)]
    Version {
        /// The definition.
        #[n(0)]
        name: String,
        /// Its version.
        #[n(1)]
        number: u32,
        /// Whether the command made it.
        #[n(2)]
        created: bool,
    },
    /// A worker has work.
    #[n(8)]
    Leased {
        /// The work.
        #[n(0)]
        item: OpenId,
        /// The number that its result must come with.
        #[n(1)]
        fence: u64,
        /// Until when.
        #[n(2)]
        until: Time,
    },
    /// A worker's result was looked at.
    #[n(9)]
    Worked {
        /// The session.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// Why the result was not taken, if it was not: the attempt has failed then.
        #[n(2)]
        wrong: Option<String>,
    },
    /// An event from outside was recorded.
    #[n(11)]
    Recorded {
        /// The session.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// The number of the event in its history.
        #[n(2)]
        event: u64,
    },
    /// A reply by mail was recorded.
    #[n(10)]
    Replied {
        /// The session.
        #[n(0)]
        session: SessionId,
        /// Its sequence after the command.
        #[n(1)]
        sequence: u64,
        /// What became of it.
        #[n(2)]
        standing: Standing,
    },
}

/// What the policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Authorized {
    /// Allow, ask or deny.
    #[n(0)]
    pub effect: Effect,
    /// Why a call is denied: one of the upper-case codes.
    #[n(1)]
    pub reason: Option<String>,
    /// A sentence for a person.
    #[n(2)]
    pub message: String,
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
    pub layers: Vec<LayerVerdict>,
}

/// Allow, ask or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Effect {
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

impl Effect {
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
