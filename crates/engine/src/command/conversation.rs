//! What happens in a conversation.

use serde_json::{Map, Value};
use switchward_machine::Digest;

use crate::policy::LimitCheck;
use crate::{MailToken, ReplyToken};

/// A run that waits for the ones before it.
#[derive(Debug, Clone)]
pub struct Queued {
    /// The definition's name.
    pub definition: String,
    /// Its version.
    pub version: u32,
    /// The machine that it compiled to; must be installed in the shard.
    pub machine: Digest,
}

/// The user says something in the conversation.
#[derive(Debug, Clone)]
pub struct PostMessage {
    /// What.
    pub text: String,
}

/// The agent's turn is over.
#[derive(Debug, Clone)]
pub struct EndTurn {
    /// What the agent said; may be empty.
    pub text: String,
}

/// The agent records data.
#[derive(Debug, Clone)]
pub struct RecordData {
    /// Top-level keys and their values.
    pub values: Map<String, Value>,
}

/// An event comes from outside.
#[derive(Debug, Clone)]
pub struct RecordEvent {
    /// Its key: what kind of event it is.
    pub key: String,
    /// What it brings, merged into the data.
    pub data: Map<String, Value>,
    /// The state that it is for; `None` if it is for any.
    pub state: Option<String>,
    /// Whether a model is at hand that can be asked what it means.
    pub model: bool,
    /// The token that a sender without another credential sent it with; it is then for the state of the token alone.
    pub token: Option<ReplyToken>,
    /// The name of the tenant's source of webhooks that has sent it, if one has.
    pub webhook: Option<String>,
    /// What its sender signed, if a copy of the message must be recognised.
    pub once: Option<Once>,
}

/// A message that is recorded once, however often a copy of it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Once {
    /// What is signed: 16 bytes of its digest.
    pub message: [u8; 16],
    /// How long copies are known, milliseconds.
    pub known_ms: u64,
}

/// A reply comes by mail.
#[derive(Debug, Clone)]
pub struct RecordReply {
    /// The bare address of who wrote it.
    pub from: String,
    /// Its subject, for what answers it; may be empty.
    pub subject: String,
    /// The body as it came, with whatever it quotes.
    pub text: String,
    /// Whether the sender is proved, as far as is asked for; what others write is recorded and moves nothing.
    pub authenticated: bool,
    /// Whether a signature of the sender's covers the address that it was sent to: then nobody else can have sent it there.
    pub signed: bool,
    /// Whether gates are decided on pages alone: at a gate it moves nothing.
    pub pages_only: bool,
    /// Who brought it with a key; `None` if a mail server did. At a gate of their own it counts only if it is signed.
    pub brought_by: Option<String>,
    /// Whether the command's actor vouches for the sender: at a gate it is then the actor's own decision.
    pub vouched: bool,
    /// Whether a model is at hand that can be asked what a reply means.
    pub model: bool,
    /// The token that it came with; `None` if the actor who passes it on vouches for what it is about.
    pub token: Option<MailToken>,
    /// The evidence of its origin, for the history; at most 16 KiB.
    pub evidence: String,
    /// The ledger's answer, if the reply approves a call with limits; see [`plan`](crate::policy::plan).
    pub limits: Option<LimitCheck>,
}

/// The conversation turns to another workflow.
#[derive(Debug, Clone)]
pub struct SwitchRun {
    /// The workflow's name, one of the session's.
    pub workflow: String,
}
