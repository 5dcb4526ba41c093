//! A failed attempt.

use std::time::Duration;

use switchward_machine::DeliveryReason;

/// A failed delivery.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failed {
    /// The stable reason code.
    pub reason: DeliveryReason,
    /// What happened, for the author of the request. Never contains an address that a name resolves to, sent content, or
    /// a credential.
    pub message: String,
    /// How long to wait before the next attempt, if the other side said so.
    pub retry_after: Option<Duration>,
}

impl Failed {
    /// Creates a failure after which the other side did not say when to try again.
    pub fn new(reason: DeliveryReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_after: None }
    }
}
