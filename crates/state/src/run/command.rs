//! Commands about a run.

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};

use crate::AdmissionClass::{Begins, Ends};
use crate::session::ReplyToken;
use crate::size::weigh;
use crate::{CommandTraits, ScopeKind, Shown};

/// A command about a run.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum RunCommand {
    /// Answer a checkpoint.
    #[n(0)]
    Answer(#[n(0)] Answer),
    /// The agent's turn is over.
    #[n(1)]
    EndTurn(#[n(0)] EndTurn),
    /// The agent records data.
    #[n(2)]
    RecordData(#[n(0)] RecordData),
    /// The agent says that its work here is done.
    #[n(3)]
    SignalCompletion,
    /// The agent asks for another attempt.
    #[n(4)]
    RetryNode,
    /// An event comes from outside.
    #[n(5)]
    RecordEvent(#[n(0)] RecordEvent),
}

impl RunCommand {
    /// What each kind says of itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        let of_session = |admission| CommandTraits::of(ScopeKind::Session, admission);
        match self {
            Self::Answer(_)
            | Self::EndTurn(_)
            | Self::RecordData(_)
            | Self::SignalCompletion
            | Self::RetryNode => of_session(Begins).grows().shows(Shown::Session),
            Self::RecordEvent(_) => of_session(Ends).grows().fills().shows(Shown::Session),
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Answer(answer) => answer.note.len(),
            Self::EndTurn(end) => end.text.len(),
            Self::RecordData(record) => {
                record.values.iter().map(|(key, value)| key.len() + weigh(value)).sum()
            }
            Self::RecordEvent(event) => event.data.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
            Self::SignalCompletion | Self::RetryNode => 0,
        }
    }
}

/// Answer the checkpoint that the session stands at.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Answer {
    /// The state that the caller believes it stands at.
    #[n(0)]
    pub state: Option<String>,
    /// One of the answers that the checkpoint's definition lists.
    #[n(1)]
    pub answer: String,
    /// Free text for the history.
    #[n(2)]
    pub note: String,
}

/// The agent's turn is over.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct EndTurn {
    /// What the agent said; may be empty.
    #[n(0)]
    pub text: String,
}

/// The agent records data.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RecordData {
    /// Top-level keys and their values.
    #[cbor(n(0), with = "crate::run::data::object")]
    pub values: Map<String, Value>,
}

/// An event comes from outside.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RecordEvent {
    /// Its key: what kind of event it is.
    #[n(0)]
    pub key: String,
    /// What it brings, merged into the data.
    #[cbor(n(1), with = "crate::run::data::object")]
    pub data: Map<String, Value>,
    /// The state that it is for; `None` if it is for any.
    #[n(2)]
    pub state: Option<String>,
    /// Whether a model is at hand that can be asked what it means.
    #[n(3)]
    pub model: bool,
    /// The token that a sender without another credential sent it with; it is then for the state of the token alone.
    #[n(4)]
    pub token: Option<ReplyToken>,
    /// The name of the tenant's source of webhooks that has sent it, if one has.
    #[n(5)]
    pub webhook: Option<String>,
    /// What its sender signed, if a copy of the message must be recognised.
    #[n(6)]
    pub once: Option<Once>,
}

/// A message that is recorded once, however often a copy of it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Once {
    /// What is signed: 16 bytes of its digest.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub message: [u8; 16],
    /// How long copies are known, milliseconds.
    #[n(1)]
    pub known_ms: u64,
}
