//! The form of events that readers see.

use switchward_machine::{Channel, OpenId};

use crate::approval::ReplyEvidence;
use crate::delivery::{DeliveryDetail, FailureCode, MessageText};
use crate::run::{EndComment, Fault};
use crate::session::SessionWarning;
use crate::work::WorkProblem;

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
    /// What has gone wrong in a run.
    Fault(Fault),
    /// What is said about the end of a run.
    EndComment(EndComment),
    /// Why work was in vain.
    WorkProblem(WorkProblem),
    /// What should be looked at in a session.
    Warning(SessionWarning),
    /// What the checks of a mail have shown of its origin.
    ReplyEvidence(ReplyEvidence),
    /// Why a delivery has failed, and what exactly has gone wrong; `None` if the code says it all.
    DeliveryFailure(FailureCode, Option<DeliveryDetail>),
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

    /// The same with facts that a reader is shown in words.
    #[must_use]
    pub fn with_facts(mut self, name: &'static str, facts: impl Into<PublicValue>) -> Self {
        self.fields.push((name, facts.into()));
        self
    }

    /// The same with the comment on an end. One of no words is left out.
    #[must_use]
    pub fn with_comment(self, comment: &EndComment) -> Self {
        match comment {
            EndComment::Written(text) => self.with("comment", text),
            EndComment::Fault(_) | EndComment::RemovedAfterBackup => self.with_facts("comment", comment),
        }
    }
}

impl From<&Fault> for PublicValue {
    fn from(fault: &Fault) -> Self {
        Self::Fault(fault.clone())
    }
}

impl From<&EndComment> for PublicValue {
    fn from(comment: &EndComment) -> Self {
        Self::EndComment(comment.clone())
    }
}

impl From<&WorkProblem> for PublicValue {
    fn from(problem: &WorkProblem) -> Self {
        Self::WorkProblem(problem.clone())
    }
}

impl From<&ReplyEvidence> for PublicValue {
    fn from(evidence: &ReplyEvidence) -> Self {
        Self::ReplyEvidence(evidence.clone())
    }
}

impl From<&SessionWarning> for PublicValue {
    fn from(warning: &SessionWarning) -> Self {
        Self::Warning(warning.clone())
    }
}
