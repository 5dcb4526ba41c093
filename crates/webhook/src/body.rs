//! The body of a message: what happened, when, to whom, and links to more. Never the text of messages or decisions, so that
//! a message that reaches the wrong people reveals little.

use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::event::EventType;
use crate::limits::{LINKS_MAX, OUT_BODY_BYTES_MAX};
use crate::schema;

/// The body of a message: `{type, timestamp, data}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Body {
    #[serde(rename = "type")]
    kind: &'static str,
    timestamp: String,
    data: Data,
}

/// The fields of an event. Its [`schema`] says which of them an event of a type has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Data {
    /// The tenant's name.
    pub tenant: String,
    /// The session's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The session's sequence after the event: within one session, a larger number is later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// The definition's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The number of the definition's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The name of the session's state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The approval's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    /// The task's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The capability of the call that a policy evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The budget's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
    /// The name of the message that was not delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// The endpoint's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The outcome or reason: a stable word, never text written by people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Links to more: their names and addresses.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
}

/// Why there is no body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// A required field of this type is missing; its name.
    #[error("the event has no {0}")]
    Missing(&'static str),
    /// A field that events of this type do not have is present; its name.
    #[error("an event of this type has no {0}")]
    Unexpected(&'static str),
    /// More than [`LINKS_MAX`] links.
    #[error("the event has more than {LINKS_MAX} links")]
    Links,
    /// The time is after the year 9999.
    #[error("the time is after the year 9999")]
    Moment,
    /// The body would have more than [`OUT_BODY_BYTES_MAX`] bytes.
    #[error("the body is larger than {OUT_BODY_BYTES_MAX} bytes")]
    TooLarge,
}

impl Body {
    /// Creates the body of an event that happened at the time `at`.
    ///
    /// # Errors
    /// A field is missing or unexpected, there are too many links, or the time cannot be written.
    pub fn new(kind: EventType, at: Duration, data: Data) -> Result<Self, BodyError> {
        let fields = schema::fields(kind);
        for (name, given) in data.given() {
            if given && !fields.may(name) {
                return Err(BodyError::Unexpected(name));
            }
            if !given && fields.must(name) {
                return Err(BodyError::Missing(name));
            }
        }
        if data.links.len() > LINKS_MAX {
            return Err(BodyError::Links);
        }
        let millis = i64::try_from(at.as_millis()).map_err(|_| BodyError::Moment)?;
        let timestamp = Timestamp::from_millisecond(millis).map_err(|_| BodyError::Moment)?;
        Ok(Self { kind: kind.name(), timestamp: format!("{timestamp:.3}"), data })
    }

    /// Returns the body as it is signed and sent.
    ///
    /// # Errors
    /// [`BodyError::TooLarge`].
    pub fn to_json(&self) -> Result<String, BodyError> {
        let json = serde_json::to_string(self).expect("texts, numbers and maps of texts are JSON");
        if json.len() > OUT_BODY_BYTES_MAX { Err(BodyError::TooLarge) } else { Ok(json) }
    }
}

impl Data {
    /// Returns every field but the links, and whether it is present.
    fn given(&self) -> [(&'static str, bool); 13] {
        [
            ("tenant", !self.tenant.is_empty()),
            ("session", self.session.is_some()),
            ("sequence", self.sequence.is_some()),
            ("definition", self.definition.is_some()),
            ("version", self.version.is_some()),
            ("state", self.state.is_some()),
            ("approval", self.approval.is_some()),
            ("task", self.task.is_some()),
            ("capability", self.capability.is_some()),
            ("budget", self.budget.is_some()),
            ("delivery", self.delivery.is_some()),
            ("endpoint", self.endpoint.is_some()),
            ("reason", self.reason.is_some()),
        ]
    }
}
