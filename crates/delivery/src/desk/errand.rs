//! What is to be done, as it travels over the bus.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchward_bus::Envelope;

/// Something to do outside, and where its outcome belongs. Stored form. As JSON it is the body of an [`Envelope`];
/// parts that are not known are passed over, so that a newer writer is understood.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Errand {
    /// Its stable name.
    pub name: String,
    /// The number of the tenant that it belongs to; the envelope says the same.
    pub tenant: u32,
    /// The session that waits for it.
    pub session: String,
    /// Which of the session's open things waits for it.
    pub item: u64,
    /// What proves that an outcome is for this very attempt. Never shown.
    pub token: String,
    /// `http`, `post`, `hook`, `mail`, or one of [`Kind`](crate::model::Kind).
    pub kind: String,
    /// For `http`, `post` and `hook`: `{method, url, headers?: {name: value}, body?}`, of a `hook` with its signature; for
    /// `mail` a [`Letter`](crate::mail::Letter); else as the kind of question says.
    pub input: Value,
    /// The JSON Schema that a result of a question must meet.
    pub result_schema: Value,
    /// When nobody waits for it any more, in milliseconds since 1970.
    pub deadline_ms: u64,
    /// Stays the same over all attempts; an HTTP request carries it.
    pub idempotency_key: String,
    /// The trace (`traceparent`) that it belongs to; an HTTP request carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// The body of an envelope is not an errand of its tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrandError {
    /// It cannot be read.
    #[error("failed to read the errand: {0}")]
    Unreadable(String),
    /// The envelope names another tenant.
    #[error("the envelope and the errand name different tenants")]
    OtherTenant,
}

impl Errand {
    /// Reads the errand of an envelope.
    ///
    /// # Errors
    ///
    /// [`ErrandError`] when the body is not an errand, or one of another tenant.
    pub fn read(envelope: &Envelope) -> Result<Self, ErrandError> {
        let errand: Self = serde_json::from_slice(&envelope.body).map_err(|error| {
            ErrandError::Unreadable(format!("{:?} at line {}", error.classify(), error.line()))
        })?;
        if errand.tenant == envelope.tenant { Ok(errand) } else { Err(ErrandError::OtherTenant) }
    }
}

/// Shows where it belongs, and neither its token nor what it holds.
impl fmt::Debug for Errand {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Errand")
            .field("name", &self.name)
            .field("tenant", &self.tenant)
            .field("session", &self.session)
            .field("item", &self.item)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
