//! What people do at gates.

use switchward_machine::{Decision, Digest, OpenId};

use crate::policy::LimitCheck;
use crate::{LinkAuth, MailToken};

/// A person decides.
#[derive(Debug, Clone)]
pub struct DecideGate {
    /// The gate.
    pub gate: OpenId,
    /// The decision.
    pub decision: Decision,
    /// Free text for the history.
    pub comment: String,
    /// What the person was shown; if given, it must be what the gate shows.
    pub shown: Option<Digest>,
    /// The ledger's answer, if approving a call meets limits.
    pub limits: Option<LimitCheck>,
    /// What the decision page that it was said on proves; `None` if it was said elsewhere.
    pub proof: Option<PageProof>,
}

/// A person says something about a decision, and does not make it.
#[derive(Debug, Clone)]
pub struct DiscussGate {
    /// The gate, which stays open.
    pub gate: OpenId,
    /// What is said.
    pub comment: String,
    /// What the person was shown; if given, it must be what the gate shows.
    pub shown: Option<Digest>,
    /// What the decision page that it was said on proves; `None` if it was said elsewhere.
    pub proof: Option<PageProof>,
}

/// A participant answers their part of a task.
#[derive(Debug, Clone)]
pub struct AnswerGate {
    /// The gate, which this answer ends.
    pub gate: OpenId,
    /// Any value; the definition gives it its meaning.
    pub answer: serde_json::Value,
    /// Words beside it.
    pub comment: String,
    /// What the person was shown; if given, it must be what the gate shows.
    pub shown: Option<Digest>,
    /// What the decision page that it was said on proves; `None` if it was said elsewhere.
    pub proof: Option<PageProof>,
}

/// What a decision page proves of its visitor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageProof {
    /// The page's token: made for the command's actor, for the newest request.
    pub token: MailToken,
    /// How the person was recognised. The caller has seen to it.
    pub by: LinkAuth,
}

/// A code is mailed to the person whose decision page this is, so that the page recognises them.
#[derive(Debug, Clone)]
pub struct SendPageCode {
    /// The page's token: made for the command's actor, for the newest request of an open gate.
    pub token: MailToken,
}

/// Somebody enters the code that was mailed to them.
#[derive(Debug, Clone)]
pub struct EnterPageCode {
    /// The page's token: made for the command's actor, for the newest request of an open gate.
    pub token: MailToken,
    /// What was entered; blanks in it do not count.
    pub code: String,
}
