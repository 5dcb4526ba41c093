//! Single messages to an endpoint, which people send to try it.

use std::time::Duration;
use switchward_machine::TenantId;
use switchward_state::delivery::{DeliveryDetail, Endpoint, FailureCode};
use switchward_webhook::EventType;

/// Sends single messages to endpoints.
#[tonic::async_trait]
pub trait Pings: Send + Sync {
    /// Sends an example of this type, signed as every message is, and waits for the answer.
    async fn ping(&self, tenant: TenantId, tenant_name: &str, endpoint: &Endpoint, kind: EventType)
    -> Pinged;
}

/// How a single message was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pinged {
    /// The id that the message was sent under.
    pub message_id: String,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
    /// Why it failed; `None` if the message was accepted.
    pub code: Option<FailureCode>,
    /// What exactly has gone wrong; `None` if the code says it all.
    pub detail: Option<DeliveryDetail>,
    /// From the beginning of the request to the end of the answer.
    pub took: Duration,
    /// The body that was sent.
    pub body: String,
}
