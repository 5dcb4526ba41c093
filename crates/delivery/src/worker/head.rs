//! What a delivery job is, without its input.

use serde::{Deserialize, Serialize};
use switchward_machine::{SessionId, TenantId};

use super::ids;
use super::job::{DeliveryJob, JobInput, Origin};
use crate::channels::Webhook;

/// Which job an outcome is of. Sent form: a process that only delivers sends it to a server, and never the input of the job,
/// which has tokens and the words of people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobHead {
    /// The tenant whose session sends it.
    #[serde(with = "ids::tenant")]
    pub tenant: TenantId,
    /// The session that waits for it.
    #[serde(with = "ids::session")]
    pub session: SessionId,
    /// What of the session waits for it.
    pub origin: Origin,
    /// The channel of its input.
    pub channel: JobChannel,
}

/// The channel of a job, named in lower case where it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobChannel {
    /// A request whose answer is the result.
    Http,
    /// A question to a language model.
    Model,
    /// A mail by SMTP.
    Mail,
    /// A message of a definition to a URL.
    Message,
    /// An event for an endpoint.
    Event {
        /// The endpoint's id.
        endpoint: String,
    },
}

impl JobHead {
    /// Returns the name of the attempt: no other attempt of any tenant has it.
    #[must_use]
    pub fn name(&self) -> String {
        let (tenant, session) = (self.tenant.0, self.session);
        match self.origin {
            Origin::Work { item, fence } => format!("{tenant}/{session}-{}.{fence}", item.0),
            Origin::Effect { number, round, attempt } => {
                format!("{tenant}/{session}-{number}.{round}.{attempt}")
            }
            Origin::Ping { number } => format!("{tenant}/{session}-ping.{number:016x}"),
        }
    }
}

impl DeliveryJob {
    /// Returns the job without its input.
    #[must_use]
    pub fn head(&self) -> JobHead {
        let channel = match &self.input {
            JobInput::Http(_) => JobChannel::Http,
            JobInput::Model { .. } => JobChannel::Model,
            JobInput::Mail(_) => JobChannel::Mail,
            JobInput::Webhook(Webhook::Message(_)) => JobChannel::Message,
            JobInput::Webhook(Webhook::Event(event)) => {
                JobChannel::Event { endpoint: event.endpoint.clone() }
            }
        };
        JobHead { tenant: self.tenant, session: self.session, origin: self.origin, channel }
    }
}
