//! Commands about a run.

use serde_json::{Map, Value};

use crate::AdmissionClass;
use crate::session::ReplyToken;
use crate::size::weigh;

/// A command about a run.
#[derive(Debug, Clone)]
pub enum RunCommand {
    /// Answer a checkpoint.
    Answer(Answer),
    /// The agent's turn is over.
    EndTurn(EndTurn),
    /// The agent records data.
    RecordData(RecordData),
    /// The agent says that its work here is done.
    SignalCompletion,
    /// The agent asks for another attempt.
    RetryNode,
    /// An event comes from outside.
    RecordEvent(RecordEvent),
}

impl RunCommand {
    /// What the command does to the load of a shard.
    #[must_use]
    pub fn admission(&self) -> AdmissionClass {
        match self {
            Self::Answer(_)
            | Self::EndTurn(_)
            | Self::RecordData(_)
            | Self::SignalCompletion
            | Self::RetryNode => AdmissionClass::Begins,
            Self::RecordEvent(_) => AdmissionClass::Ends,
        }
    }

    /// Returns true if the command makes the stored data grow.
    #[must_use]
    pub fn grows(&self) -> bool {
        match self {
            Self::Answer(_)
            | Self::EndTurn(_)
            | Self::RecordData(_)
            | Self::SignalCompletion
            | Self::RetryNode
            | Self::RecordEvent(_) => true,
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
#[derive(Debug, Clone)]
pub struct Answer {
    /// The state that the caller believes it stands at.
    pub state: Option<String>,
    /// One of its answers.
    pub answer: String,
    /// Free text for the history.
    pub note: String,
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
