//! Commands about gates.

use minicbor::{Decode, Encode};
use switchward_machine::{Decision, Digest, OpenId};

use crate::approval::{MailToken, ReplyEvidence};
use crate::catalogue::LinkAuth;
use crate::policy::LimitCheck;
use crate::size::weigh;
use crate::{AdmissionClass, CommandTraits, ScopeKind, Shown};

/// A command about gates.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum ApprovalCommand {
    /// A reply comes by mail.
    #[n(0)]
    RecordReply(#[n(0)] RecordReply),
    /// A person decides.
    #[n(1)]
    DecideGate(#[n(0)] DecideGate),
    /// A person says something about a decision, and does not make it.
    #[n(2)]
    DiscussGate(#[n(0)] DiscussGate),
    /// A participant answers their part of a task.
    #[n(3)]
    AnswerGate(#[n(0)] AnswerGate),
    /// A code is mailed to the person whose decision page it is.
    #[n(4)]
    SendPageCode(#[n(0)] SendPageCode),
    /// Somebody enters the code that was mailed to them.
    #[n(5)]
    EnterPageCode(#[n(0)] EnterPageCode),
    /// An open gate, or somebody's part of it, is handed to somebody else.
    #[n(6)]
    AssignGate {
        /// The gate, which stays open.
        #[n(0)]
        gate: OpenId,
        /// Whose part is handed over: a name or an address. `None`: an approver's own part; if an operator or an admin
        /// assigns, the whole gate.
        #[n(1)]
        from: Option<String>,
        /// Who gets it: a name of the directory that leads to one person, or an address that it holds.
        #[n(2)]
        to: String,
        /// Words beside it.
        #[n(3)]
        comment: String,
        /// What the person was shown; if given, it must be what the gate shows.
        #[n(4)]
        shown: Option<Digest>,
        /// What the decision page that it was said on proves; `None` if it was said elsewhere.
        #[n(5)]
        proof: Option<PageProof>,
    },
}

impl ApprovalCommand {
    /// What each kind says of itself. A decision page shows the gate itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        let at_gate = CommandTraits::of(ScopeKind::Session, AdmissionClass::Ends);
        let shown = |proof: &Option<PageProof>| if proof.is_none() { Shown::Gate } else { Shown::Nothing };
        match self {
            Self::RecordReply(_) => at_gate.decides_gate().may_need_ledger().shows(Shown::Session),
            Self::DecideGate(decide) => at_gate.decides_gate().may_need_ledger().shows(shown(&decide.proof)),
            Self::DiscussGate(discuss) => at_gate.decides_gate().shows(shown(&discuss.proof)),
            Self::AnswerGate(answer) => at_gate.decides_gate().shows(shown(&answer.proof)),
            Self::AssignGate { proof, .. } => at_gate.decides_gate().shows(shown(proof)),
            Self::SendPageCode(_) | Self::EnterPageCode(_) => at_gate,
        }
    }

    /// Where the ledger's answer goes; `None` for kinds that need none.
    pub fn limits_mut(&mut self) -> Option<&mut Option<LimitCheck>> {
        match self {
            Self::RecordReply(reply) => Some(&mut reply.limits),
            Self::DecideGate(decide) => Some(&mut decide.limits),
            Self::DiscussGate(_)
            | Self::AnswerGate(_)
            | Self::SendPageCode(_)
            | Self::EnterPageCode(_)
            | Self::AssignGate { .. } => None,
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::RecordReply(reply) => reply.text.len(),
            Self::AnswerGate(answer) => weigh(&answer.answer),
            Self::DecideGate(_)
            | Self::DiscussGate(_)
            | Self::SendPageCode(_)
            | Self::EnterPageCode(_)
            | Self::AssignGate { .. } => 0,
        }
    }
}

/// A person decides.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DecideGate {
    /// The number of the open gate.
    #[n(0)]
    pub gate: OpenId,
    /// What the person decides; the gate's kind says which decisions it takes.
    #[n(1)]
    pub decision: Decision,
    /// Free text for the history.
    #[n(2)]
    pub comment: String,
    /// What the person was shown; if given, it must be what the gate shows.
    #[n(3)]
    pub shown: Option<Digest>,
    /// The ledger's answer, if approving a call meets limits.
    #[n(4)]
    pub limits: Option<LimitCheck>,
    /// What the decision page that it was said on proves; `None` if it was said elsewhere.
    #[n(5)]
    pub proof: Option<PageProof>,
}

/// A person says something about a decision, and does not make it.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DiscussGate {
    /// The gate, which stays open.
    #[n(0)]
    pub gate: OpenId,
    /// What is said.
    #[n(1)]
    pub comment: String,
    /// What the person was shown; if given, it must be what the gate shows.
    #[n(2)]
    pub shown: Option<Digest>,
    /// What the decision page that it was said on proves; `None` if it was said elsewhere.
    #[n(3)]
    pub proof: Option<PageProof>,
}

/// A participant answers their part of a task.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct AnswerGate {
    /// The gate, which this answer ends.
    #[n(0)]
    pub gate: OpenId,
    /// Any value; the definition gives it its meaning.
    #[cbor(n(1), with = "crate::wire::value")]
    pub answer: serde_json::Value,
    /// Words beside it.
    #[n(2)]
    pub comment: String,
    /// What the person was shown; if given, it must be what the gate shows.
    #[n(3)]
    pub shown: Option<Digest>,
    /// What the decision page that it was said on proves; `None` if it was said elsewhere.
    #[n(4)]
    pub proof: Option<PageProof>,
}

/// What a decision page proves of its visitor.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct PageProof {
    /// The page's token: made for the command's actor, for the newest request.
    #[n(0)]
    pub token: MailToken,
    /// How the person was recognised. The caller has seen to it.
    #[n(1)]
    pub by: LinkAuth,
}

/// A code is mailed to the person whose decision page this is, so that the page recognises them.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct SendPageCode {
    /// The page's token: made for the command's actor, for the newest request of an open gate.
    #[n(0)]
    pub token: MailToken,
}

/// Somebody enters the code that was mailed to them.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct EnterPageCode {
    /// The page's token: made for the command's actor, for the newest request of an open gate.
    #[n(0)]
    pub token: MailToken,
    /// What was entered; blanks in it do not count.
    #[n(1)]
    pub code: String,
}

/// A reply comes by mail.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RecordReply {
    /// The bare address of who wrote it.
    #[n(0)]
    pub from: String,
    /// Its subject, for what answers it; may be empty.
    #[n(1)]
    pub subject: String,
    /// The writer's own words, without what the mail quotes, at most [`REPLY_BYTES_MAX`](crate::limits::REPLY_BYTES_MAX)
    /// bytes: the engine strips nothing.
    #[n(2)]
    pub text: String,
    /// Whether the sender is proved, as far as is asked for; what others write is recorded and moves nothing.
    #[n(3)]
    pub authenticated: bool,
    /// Whether a signature of the sender's covers the address that it was sent to: then nobody else can have sent it there.
    #[n(4)]
    pub signed: bool,
    /// Whether gates are decided on pages alone: at a gate it moves nothing.
    #[n(5)]
    pub pages_only: bool,
    /// Who brought it with a key; `None` if a mail server did. At a gate of their own it counts only if it is signed.
    #[n(6)]
    pub brought_by: Option<String>,
    /// Whether the command's actor vouches for the sender: at a gate it is then the actor's own decision.
    #[n(7)]
    pub vouched: bool,
    /// Whether a model is at hand that can be asked what a reply means.
    #[n(8)]
    pub model: bool,
    /// The token that it came with; `None` if the actor who passes it on vouches for what it is about.
    #[n(9)]
    pub token: Option<MailToken>,
    /// What the checks of the mail have shown, for the history; `None` if the actor who passes it on vouches for it.
    #[n(10)]
    pub evidence: Option<ReplyEvidence>,
    /// The ledger's answer, if the reply approves a call with limits; as `policy::plan` of the engine makes it.
    #[n(11)]
    pub limits: Option<LimitCheck>,
}
