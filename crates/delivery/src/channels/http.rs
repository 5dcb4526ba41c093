//! HTTP requests of definitions. An answer of any status is a result.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchward_state::delivery::RequestProblem;

use super::CallContext;
use super::bounds::bounded;
use crate::http::{Client, Request};
use crate::{DeliveryReason, Failed};

/// The HTTP request of a definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The method's name, such as `POST`.
    pub method: String,
    /// The address, as the definition has it.
    pub url: String,
    /// The headers by name. An idempotency key and a trace are added unless they are among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// Sent as JSON. A string is sent verbatim if the headers name another `content-type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
}

impl HttpRequest {
    /// Reads the input of work: `{method, url, headers?: {name: value}, body?}`. Unknown fields are ignored.
    ///
    /// # Errors
    /// [`DeliveryReason::JobInvalid`] if a field is missing or has another type.
    pub fn read(input: &Value) -> Result<Self, Failed> {
        Self::deserialize(input).map_err(|error| {
            let problem = RequestProblem::Unreadable { diagnostic: error.to_string() };
            Failed::new(DeliveryReason::JobInvalid, problem)
        })
    }
}

/// The answer to an HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The body as JSON; a string if it is not JSON; null if it is empty.
    pub body: Value,
}

impl Answer {
    /// Returns the result of the work: `{"status", "body"}`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "status": self.status, "body": self.body })
    }
}

/// Sends a request.
pub(crate) async fn perform(
    client: &Client,
    call: &CallContext<'_>,
    request: &HttpRequest,
) -> Result<Answer, Failed> {
    let mut headers: Vec<(String, String)> =
        request.headers.clone().unwrap_or_default().into_iter().collect();
    call.add_key(&mut headers);
    call.add_trace(&mut headers);
    let request = Request {
        method: request.method.clone(),
        url: request.url.clone(),
        headers,
        body: request.body.clone(),
        deadline: call.deadline,
    };
    let response = client.send(call.tenant, &request).await?;
    let answer = Answer { status: response.status, body: response.body };
    bounded(&answer.to_json()).map(|()| answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_cannot_be_read_is_invalid() {
        let read = |input: Value| HttpRequest::read(&input).map_err(|failed| failed.reason);
        for input in [
            json!({ "url": "https://a.example" }),
            json!({ "method": "GET", "url": 1 }),
            json!({ "method": "GET", "url": "https://a.example", "headers": { "x": 1 } }),
            json!(null),
        ] {
            assert_eq!(read(input), Err(DeliveryReason::JobInvalid));
        }
        let least =
            HttpRequest { method: "GET".into(), url: "https://a.example".into(), headers: None, body: None };
        let input =
            json!({ "method": "GET", "url": "https://a.example", "headers": null, "body": null, "more": 1 });
        assert_eq!(read(input), Ok(least));
    }
}
