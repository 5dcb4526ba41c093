//! Doing one errand.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};
use switchward_webhook::retry::{Attempt, Verdict};

use super::{Desk, Errand, Outcome};
use crate::http::{Request, Response};
use crate::limits::{DEADLINE_MS_MAX, HOOK_MS_MAX, RESULT_BYTES_MAX};
use crate::mail::{Letter, compose};
use crate::model::Kind;
use crate::{Failed, Reason};

const HTTP: &str = "http";
/// The kind of errand that is a mail.
pub const MAIL: &str = "mail";
/// The kind of errand that is a request whose answer must be a success.
pub const POST: &str = "post";
/// The kind of errand that is a signed message to an endpoint: a request whose answer must be a success, as it is
/// handed in and with nothing added but the trace.
pub const HOOK: &str = "hook";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The header that carries the trace. Source: W3C Trace Context.
const TRACEPARENT: &str = "traceparent";

/// What an errand of kind `http` holds.
#[derive(Deserialize)]
struct HttpInput {
    method: String,
    url: String,
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    body: Option<Value>,
}

impl Desk {
    pub(super) async fn perform(&self, errand: &Errand) -> Outcome {
        let left = errand.deadline_ms.saturating_sub(now_ms()).min(DEADLINE_MS_MAX);
        if left == 0 {
            return Failed::new(Reason::NotBegun, "the deadline had passed before it was begun").into();
        }
        let left = Duration::from_millis(left);
        let result = if errand.kind == POST {
            self.post(errand, left).await
        } else if errand.kind == HOOK {
            self.tell(errand, left).await
        } else if errand.kind == MAIL {
            self.write(errand, left).await
        } else if errand.kind == HTTP {
            self.ask(errand, left).await
        } else if let Some(kind) = Kind::read(&errand.kind) {
            self.question(errand, kind, left).await
        } else {
            Err(Failed::new(Reason::ErrandInvalid, "the kind of errand is not known here"))
        };
        result.and_then(bounded).map_or_else(Outcome::from, Outcome::Done)
    }

    async fn ask(&self, errand: &Errand, deadline: Duration) -> Result<Value, Failed> {
        let response = self.request(errand, deadline).await?;
        Ok(json!({ "status": response.status, "body": response.body }))
    }

    async fn request(&self, errand: &Errand, deadline: Duration) -> Result<Response, Failed> {
        let input = HttpInput::deserialize(&errand.input).map_err(|error| {
            Failed::new(Reason::ErrandInvalid, format!("the request cannot be read: {error}"))
        })?;
        let mut headers: Vec<(String, String)> = input.headers.unwrap_or_default().into_iter().collect();
        let key = Some(&errand.idempotency_key).filter(|_| errand.kind != HOOK);
        let ours = [(IDEMPOTENCY_KEY, key), (TRACEPARENT, errand.traceparent.as_ref())];
        for (name, value) in ours {
            let own = headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
            headers.extend(value.filter(|_| !own).map(|value| (name.to_owned(), value.clone())));
        }
        let request = Request { method: input.method, url: input.url, headers, body: input.body, deadline };
        if errand.kind == HOOK {
            return self.client.send_as_is(errand.tenant, &request).await;
        }
        self.client.send(errand.tenant, &request).await
    }

    /// A signed message. Whoever keeps the list of endpoints is told of one that is gone.
    async fn tell(&self, errand: &Errand, deadline: Duration) -> Result<Value, Failed> {
        let response = self.request(errand, deadline.min(Duration::from_millis(HOOK_MS_MAX))).await?;
        let (status, retry_after) = (response.status, response.retry_after);
        let told = format!("the endpoint answered {status}");
        match Attempt::Answered(status).verdict() {
            Verdict::Delivered => Ok(json!({ "status": status })),
            Verdict::Gone => Err(Failed::new(Reason::ReceiverGone, told)),
            Verdict::Failed => Err(Failed { retry_after, ..Failed::new(Reason::ReceiverRefused, told) }),
        }
    }

    /// A request that nobody reads the answer of.
    async fn post(&self, errand: &Errand, deadline: Duration) -> Result<Value, Failed> {
        let answer = self.ask(errand, deadline).await?;
        let status = answer.get("status").and_then(Value::as_u64).unwrap_or_default();
        if (200..300).contains(&status) {
            return Ok(json!({ "status": status }));
        }
        Err(Failed::new(Reason::ReceiverRefused, format!("the receiver answered {status}")))
    }

    async fn write(&self, errand: &Errand, deadline: Duration) -> Result<Value, Failed> {
        let Some(office) = &self.mail else {
            return Err(Failed::new(Reason::NotConfigured, "no mail server is set up here"));
        };
        let letter = Letter::deserialize(&errand.input).map_err(|error| {
            Failed::new(Reason::ErrandInvalid, format!("the letter cannot be read: {error}"))
        })?;
        let mail = compose(&letter, &office.sender)?;
        let late = || Failed::new(Reason::Timeout, "the mail server took too long");
        let sent = tokio::time::timeout(deadline, office.post.send(errand.tenant, &mail));
        sent.await.unwrap_or_else(|_| Err(late())).map(|()| json!({ "message_id": mail.message_id }))
    }

    async fn question(&self, errand: &Errand, kind: Kind, deadline: Duration) -> Result<Value, Failed> {
        let Some(model) = &self.model else {
            return Err(Failed::new(Reason::NotConfigured, "no model is set up here"));
        };
        model.perform(errand.tenant, kind, &errand.input, &errand.result_schema, deadline).await
    }
}

/// A result that fits into the place where it goes.
fn bounded(result: Value) -> Result<Value, Failed> {
    let bytes = result.to_string().len();
    if bytes <= RESULT_BYTES_MAX {
        return Ok(result);
    }
    let told = format!("the result has {bytes} bytes as JSON, {RESULT_BYTES_MAX} are allowed");
    Err(Failed::new(Reason::AnswerTooLarge, told))
}

/// Milliseconds since 1970; a clock before that reads 0.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
