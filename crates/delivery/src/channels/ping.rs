//! Single messages, which people send to try an endpoint: one attempt, whose result goes back to the server that asked for it.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use switchward_machine::DeliveryReason;
use switchward_state::delivery::DeliveryDetail;

use super::webhook::{Event, judged};
use crate::Failed;
use crate::http::Client;
use crate::reason_code;

/// How a single message was answered. Sent form, as JSON; unknown fields are ignored, so that a newer writer is understood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingAnswer {
    /// The status of the answer, 100 to 599; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why it failed; `None` if the endpoint accepted the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<PingFailure>,
    /// From the beginning of the request to the end of the answer, milliseconds.
    pub took_ms: u64,
}

/// Why a single message failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingFailure {
    /// Sent as its code.
    #[serde(with = "reason_code")]
    pub reason: DeliveryReason,
    /// What has gone wrong, for people.
    pub detail: DeliveryDetail,
}

impl PingAnswer {
    /// The answer to a message that was not sent, or whose answer is not known.
    #[must_use]
    pub fn failed(failed: Failed) -> Self {
        let Failed { reason, detail, .. } = failed;
        Self { status: None, failure: Some(PingFailure { reason, detail }), took_ms: 0 }
    }

    /// The bytes that are sent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("its fields have names and are numbers and text")
    }

    /// Decodes an answer. Returns `None` if the bytes are not one.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Sends an event to an endpoint of a tenant once. Its answer is judged as that of every event.
pub async fn ping(client: &Client, tenant: u32, event: &Event, deadline: Duration) -> PingAnswer {
    let began = Instant::now();
    let answer = client.notify(tenant, &event.request(deadline)).await;
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let status = answer.as_ref().ok().map(|answer| answer.status);
    let failure = answer.and_then(|answer| judged(&answer)).err();
    let failure = failure.map(|Failed { reason, detail, .. }| PingFailure { reason, detail });
    PingAnswer { status, failure, took_ms }
}

#[cfg(test)]
mod tests {
    use switchward_state::delivery::{ExchangeProblem, JobProblem};

    use super::*;

    #[test]
    fn answers_keep_their_form() {
        let detail = ExchangeProblem::EndpointStatus { status: 410 }.into();
        let failure = Some(PingFailure { reason: DeliveryReason::ReceiverGone, detail });
        for (answer, text) in [
            (PingAnswer { status: Some(204), failure: None, took_ms: 12 }, r#"{"status":204,"took_ms":12}"#),
            (
                PingAnswer { status: Some(410), failure, took_ms: 7 },
                r#"{"status":410,"failure":{"reason":"receiver_gone","detail":{"exchange":{"endpoint_status":{"status":410}}}},"took_ms":7}"#,
            ),
            (
                PingAnswer::failed(Failed::new(DeliveryReason::NotBegun, JobProblem::Late)),
                r#"{"failure":{"reason":"not_begun","detail":{"job":"late"}},"took_ms":0}"#,
            ),
        ] {
            assert_eq!(String::from_utf8(answer.encode()).unwrap(), text);
            assert_eq!(PingAnswer::decode(text.as_bytes()), Some(answer));
        }
        let newer = br#"{"status":204,"took_ms":12,"newer":true}"#;
        assert_eq!(PingAnswer::decode(newer).and_then(|answer| answer.status), Some(204));
        let unknown = br#"{"failure":{"reason":"unknown","detail":{"job":"late"}},"took_ms":0}"#;
        assert_eq!(PingAnswer::decode(unknown), None);
    }
}
