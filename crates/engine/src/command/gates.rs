//! What people do at gates.

use switchward_machine::{Decision, Digest, OpenId};

use crate::MailToken;
use crate::policy::LimitCheck;

/// A person decides.
#[derive(Debug, Clone)]
pub struct DecideGate {
    /// The gate.
    pub gate: OpenId,
    /// The decision.
    pub decision: Decision,
    /// Free text for the history.
    pub comment: String,
    /// What the person was shown; where given it must be what the gate shows.
    pub shown: Option<Digest>,
    /// What the ledger said, where approving a call meets limits.
    pub limits: Option<LimitCheck>,
    /// The token of the decision page that it was said on, where it was said on one: made for whoever commands it, for the
    /// newest request.
    pub proof: Option<MailToken>,
}

/// A person says something about a decision, and does not make it.
#[derive(Debug, Clone)]
pub struct DiscussGate {
    /// The gate, which stays open.
    pub gate: OpenId,
    /// What is said.
    pub comment: String,
    /// What the person was shown; where given it must be what the gate shows.
    pub shown: Option<Digest>,
    /// The token of the decision page that it was said on, where it was said on one: made for whoever commands it, for the
    /// newest request.
    pub proof: Option<MailToken>,
}

/// A participant answers her part of a task.
#[derive(Debug, Clone)]
pub struct AnswerGate {
    /// The gate, which this answer ends.
    pub gate: OpenId,
    /// Any value; what it means is the definition's affair.
    pub answer: serde_json::Value,
    /// Words beside it.
    pub comment: String,
    /// What the person was shown; where given it must be what the gate shows.
    pub shown: Option<Digest>,
    /// The token of the decision page that it was said on, where it was said on one: made for whoever commands it, for the
    /// newest request.
    pub proof: Option<MailToken>,
}
