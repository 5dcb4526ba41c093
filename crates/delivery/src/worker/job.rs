//! The delivery job, as it travels over the bus.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchward_bus::Envelope;

/// A delivery job, and where its outcome belongs. Stored form. As JSON it is the body of an [`Envelope`]; unknown fields
/// are ignored, so that a newer writer is understood.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryJob {
    /// Its stable name.
    pub name: String,
    /// The number of its tenant, the same as in the envelope.
    pub tenant: u32,
    /// The session that waits for it.
    pub session: String,
    /// Which of the session's open items waits for it.
    pub item: u64,
    /// Proves that an outcome is for this attempt. Never shown.
    pub token: String,
    /// `http`, `post`, `hook`, `mail`, or one of [`Kind`](crate::model::Kind).
    pub kind: String,
    /// For `http`, `post` and `hook`: `{method, url, headers?: {name: value}, body?}`, of a `hook` with its signature; for
    /// `mail` an [`OutboundMail`](crate::mail::OutboundMail); else as the kind of question says.
    pub input: Value,
    /// The JSON Schema that a result of a question must meet.
    pub result_schema: Value,
    /// The deadline, in milliseconds since 1970.
    pub deadline_ms: u64,
    /// The same for all attempts; an HTTP request carries it.
    pub idempotency_key: String,
    /// The trace (`traceparent`) that it belongs to; an HTTP request carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// The body of an envelope is not a job of the envelope's tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It cannot be read.
    #[error("failed to read the delivery job: {0}")]
    Unreadable(String),
    /// The envelope names another tenant.
    #[error("the envelope and the delivery job name different tenants")]
    OtherTenant,
}

impl DeliveryJob {
    /// Reads the job of an envelope.
    ///
    /// # Errors
    ///
    /// [`JobError`] if the body is not a job, or belongs to another tenant.
    pub fn read(envelope: &Envelope) -> Result<Self, JobError> {
        let job: Self = serde_json::from_slice(&envelope.body).map_err(|error| {
            JobError::Unreadable(format!("{:?} at line {}", error.classify(), error.line()))
        })?;
        if job.tenant == envelope.tenant { Ok(job) } else { Err(JobError::OtherTenant) }
    }
}

/// Shows where it belongs, and neither its token nor its input.
impl fmt::Debug for DeliveryJob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DeliveryJob")
            .field("name", &self.name)
            .field("tenant", &self.tenant)
            .field("session", &self.session)
            .field("item", &self.item)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
