//! The delivery job, as it travels over the bus.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchward_bus::{Envelope, Stream};
use switchward_machine::{OpenId, SessionId, TenantId};

use super::ids;
use crate::channels::{HttpRequest, Webhook};
use crate::mail::OutboundMail;
use crate::model::Question;

/// A delivery job, and where its outcome belongs. Stored form. As JSON it is the body of an [`Envelope`]; unknown fields
/// are ignored, so that a newer writer is understood.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct DeliveryJob {
    /// Its tenant, the same as in the envelope.
    #[serde(with = "ids::tenant")]
    pub tenant: TenantId,
    /// The session that waits for it.
    #[serde(with = "ids::session")]
    pub session: SessionId,
    /// What of the session waits for it.
    pub origin: Origin,
    /// The input of its channel.
    pub input: JobInput,
    /// How long the attempt may take from its publishing on, milliseconds. No clock of a server is compared with another's:
    /// the bus says how long ago the job was published.
    pub ttl_ms: u64,
    /// The same for all attempts; a request carries it, except an event for an endpoint.
    pub idempotency_key: String,
    /// The trace (`traceparent`) that it belongs to; a request carries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

/// What of a session waits for the outcome of a job, and for which attempt. An outcome of another attempt is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A work item.
    Work {
        /// Its number in the session.
        #[serde(with = "ids::item")]
        item: OpenId,
        /// The fence of the lease under which the job was published.
        fence: u64,
    },
    /// An effect in the outbox.
    Effect {
        /// Its number in the session.
        number: u64,
        /// How often the effect was retried by an operator, from 0.
        round: u32,
        /// How many attempts of this round came before, from 0.
        attempt: u32,
    },
    /// A single message to an endpoint, about no session: the server that sent it waits on the bus for the [answer] under the job's
    /// name. It is attempted once.
    ///
    /// [answer]: crate::channels::PingAnswer
    Ping {
        /// A random number, which no other message has.
        number: u64,
    },
}

/// The input of a job, by channel.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobInput {
    /// A request whose answer of any status is the result.
    Http(HttpRequest),
    /// A question to a language model.
    Model {
        /// What the model is asked, with the text that it is about.
        question: Question,
        /// The JSON Schema that the result must meet; null for any result.
        result_schema: Value,
    },
    /// A mail to one recipient.
    Mail(Box<OutboundMail>),
    /// A message to a URL.
    Webhook(Webhook),
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

impl JobInput {
    /// Returns the stream that jobs with this input go over.
    #[must_use]
    pub fn stream(&self) -> Stream {
        match self {
            Self::Http(_) => Stream::Http,
            Self::Model { .. } => Stream::Model,
            Self::Mail(_) => Stream::Mail,
            Self::Webhook(_) => Stream::Webhook,
        }
    }
}

impl DeliveryJob {
    /// Returns the name of the attempt: no other attempt of any tenant has it.
    #[must_use]
    pub fn name(&self) -> String {
        self.head().name()
    }

    /// Puts the job into an envelope.
    #[must_use]
    pub fn envelope(&self) -> Envelope {
        let body = serde_json::to_vec(self).expect("all maps of a job have keys that are strings");
        Envelope { tenant: self.tenant.0, id: self.name(), body }
    }

    /// Reads the job of an envelope.
    ///
    /// # Errors
    ///
    /// [`JobError`] if the body is not a job, or belongs to another tenant.
    pub fn read(envelope: &Envelope) -> Result<Self, JobError> {
        let job: Self = serde_json::from_slice(&envelope.body).map_err(|error| {
            JobError::Unreadable(format!("{:?} at line {}", error.classify(), error.line()))
        })?;
        if job.tenant.0 == envelope.tenant { Ok(job) } else { Err(JobError::OtherTenant) }
    }
}

/// Shows where it belongs, and not its input: that has tokens and the words of people.
impl fmt::Debug for DeliveryJob {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("DeliveryJob")
            .field("name", &self.name())
            .field("stream", &self.input.stream())
            .finish_non_exhaustive()
    }
}
