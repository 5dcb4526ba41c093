//! A failed attempt.

use std::time::Duration;

use switchward_machine::DeliveryReason;
use switchward_messages::delivery_detail;
use switchward_state::delivery::DeliveryDetail;

/// A failed delivery. Its text is in the words of the crate `messages`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", delivery_detail(.detail))]
pub struct Failed {
    /// The stable reason code.
    pub reason: DeliveryReason,
    /// What has gone wrong, for the author of the request. Never contains an address that a name resolves to, sent content, or a
    /// credential.
    pub detail: DeliveryDetail,
    /// How long to wait before the next attempt, if the other side said so.
    pub retry_after: Option<Duration>,
}

impl Failed {
    /// Creates a failure after which the other side did not say when to try again.
    pub fn new(reason: DeliveryReason, detail: impl Into<DeliveryDetail>) -> Self {
        Self { reason, detail: detail.into(), retry_after: None }
    }

    /// Creates a failure with a text from outside, such as a mail server's reply or an error of a library. Words of our own are a
    /// detail with its facts.
    pub fn quoting(reason: DeliveryReason, text: impl Into<String>) -> Self {
        Self::new(reason, DeliveryDetail::Quoted { text: text.into() })
    }
}

/// A length as a fact of a detail.
pub(crate) fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
