//! The form of events that readers see.

use switchward_machine::{Channel, OpenId};

use crate::delivery::MessageText;

/// An event for a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicEvent {
    /// Its type: `session.started`, `policy.denied`.
    pub kind: &'static str,
    /// Name and value, in order.
    pub fields: Vec<(&'static str, PublicValue)>,
}

/// A value that a reader sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicValue {
    /// Shown without a change.
    Text(String),
    /// The subject of a message on this channel, maybe empty.
    Subject(Channel, MessageText),
}

impl PublicEvent {
    /// An event of this type, without fields.
    #[must_use]
    pub fn new(kind: &'static str) -> Self {
        Self { kind, fields: Vec::new() }
    }

    /// An event of this type about a gate.
    #[must_use]
    pub fn of_gate(kind: &'static str, gate: OpenId) -> Self {
        Self::new(kind).with("gate", gate.0)
    }

    /// The same with a field. An empty value is left out.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        if !value.is_empty() {
            self.fields.push((name, PublicValue::Text(value)));
        }
        self
    }

    /// The same with the subject of a message. A reader leaves it out if it is empty.
    #[must_use]
    pub fn with_subject(mut self, channel: Channel, text: MessageText) -> Self {
        self.fields.push(("subject", PublicValue::Subject(channel, text)));
        self
    }
}
