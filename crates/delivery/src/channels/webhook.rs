//! Messages to URLs, of whose answer only the status matters.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchward_state::delivery::ExchangeProblem;
use switchward_webhook::retry::{Attempt, AttemptOutcome};

use super::CallContext;
use crate::http::{Client, Request, Response};
use crate::limits::HOOK_MS_MAX;
use crate::{DeliveryReason, Failed};

/// A message to a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Webhook {
    /// A message of a definition.
    Message(Message),
    /// An event for an endpoint of the tenant.
    Event(Event),
}

/// A message of a definition to a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The address.
    pub url: String,
    /// Sent verbatim: as JSON if it is valid JSON, else as text.
    pub body: String,
}

/// A signed event for an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The endpoint's id.
    pub endpoint: String,
    /// The endpoint's address.
    pub url: String,
    /// All headers, with the signature. Only a trace is added.
    pub headers: BTreeMap<String, String>,
    /// Sent verbatim, as it was signed.
    pub body: String,
}

impl Event {
    /// Returns the request that sends the event.
    #[must_use]
    pub fn request(&self, deadline: Duration) -> Request {
        Request {
            method: "POST".to_owned(),
            url: self.url.clone(),
            headers: self.headers.clone().into_iter().collect(),
            body: Some(Value::String(self.body.clone())),
            deadline,
        }
    }
}

/// Sends a message. Returns the status of the answer, which is a success.
pub(crate) async fn perform(
    client: &Client,
    call: &CallContext<'_>,
    webhook: &Webhook,
) -> Result<u16, Failed> {
    match webhook {
        Webhook::Message(message) => send_message(client, call, message).await,
        Webhook::Event(event) => send_event(client, call, event).await,
    }
}

async fn send_message(client: &Client, call: &CallContext<'_>, message: &Message) -> Result<u16, Failed> {
    let mut headers = vec![("content-type".to_owned(), content_type(&message.body).to_owned())];
    call.add_key(&mut headers);
    call.add_trace(&mut headers);
    let (method, url, body) = ("POST".to_owned(), message.url.clone(), message.body.clone().into());
    let request = Request { method, url, headers, body: Some(body), deadline: call.deadline };
    let Response { status, retry_after, .. } = client.notify(call.tenant, &request).await?;
    if (200..300).contains(&status) {
        return Ok(status);
    }
    let problem = ExchangeProblem::ReceiverStatus { status };
    Err(Failed { retry_after, ..Failed::new(DeliveryReason::ReceiverRefused, problem) })
}

/// Returns the content type of a message.
fn content_type(body: &str) -> &'static str {
    match serde_json::from_str::<IgnoredAny>(body) {
        Ok(_) => "application/json",
        Err(_) => "text/plain; charset=utf-8",
    }
}

async fn send_event(client: &Client, call: &CallContext<'_>, event: &Event) -> Result<u16, Failed> {
    let mut request = event.request(call.deadline.min(Duration::from_millis(HOOK_MS_MAX)));
    call.add_trace(&mut request.headers);
    let response = client.notify(call.tenant, &request).await?;
    judged(&response)
}

/// The status of an endpoint's answer to an event.
///
/// # Errors
/// It is not a success; an endpoint that is gone fails with a reason of its own.
pub(super) fn judged(response: &Response) -> Result<u16, Failed> {
    let (status, retry_after) = (response.status, response.retry_after);
    let problem = ExchangeProblem::EndpointStatus { status };
    match Attempt::Answered(status).verdict() {
        AttemptOutcome::Delivered => Ok(status),
        AttemptOutcome::Gone => Err(Failed::new(DeliveryReason::ReceiverGone, problem)),
        AttemptOutcome::Failed => {
            Err(Failed { retry_after, ..Failed::new(DeliveryReason::ReceiverRefused, problem) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_json_if_it_is_valid_json() {
        for body in ["{\"paid\": 12.50}", "12.50", "[1e999]", "null"] {
            assert_eq!(content_type(body), "application/json", "{body}");
        }
        for body in ["paid, thanks", "", "{\"paid\":", "1 2", "007"] {
            assert_eq!(content_type(body), "text/plain; charset=utf-8", "{body}");
        }
    }
}
