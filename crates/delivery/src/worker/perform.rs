//! Performs one delivery job.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};
use switchward_webhook::retry::{Attempt, Verdict};

use super::{DeliveryJob, DeliveryWorker, Outcome};
use crate::http::{Request, Response};
use crate::limits::{DEADLINE_MS_MAX, HOOK_MS_MAX, RESULT_BYTES_MAX};
use crate::mail::{OutboundMail, compose};
use crate::model::Kind;
use crate::{Failed, Reason};

const HTTP: &str = "http";
/// The kind of a job that sends a mail.
pub const MAIL: &str = "mail";
/// The kind of a job that sends a request whose answer must be a success.
pub const POST: &str = "post";
/// The kind of a job that sends a signed message to an endpoint: a request whose answer must be a success, sent verbatim
/// with only the trace added.
pub const HOOK: &str = "hook";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The header that carries the trace. Source: W3C Trace Context.
const TRACEPARENT: &str = "traceparent";

/// The input of a job of kind `http`.
#[derive(Deserialize)]
struct HttpInput {
    method: String,
    url: String,
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    body: Option<Value>,
}

impl DeliveryWorker {
    pub(super) async fn perform(&self, job: &DeliveryJob) -> Outcome {
        let left = job.deadline_ms.saturating_sub(now_ms()).min(DEADLINE_MS_MAX);
        if left == 0 {
            return Failed::new(Reason::NotBegun, "the deadline passed before the job began").into();
        }
        let left = Duration::from_millis(left);
        let result = if job.kind == POST {
            self.post(job, left).await
        } else if job.kind == HOOK {
            self.hook(job, left).await
        } else if job.kind == MAIL {
            self.write(job, left).await
        } else if job.kind == HTTP {
            self.ask(job, left).await
        } else if let Some(kind) = Kind::read(&job.kind) {
            self.question(job, kind, left).await
        } else {
            Err(Failed::new(Reason::JobInvalid, "unknown kind of delivery job"))
        };
        result.and_then(bounded).map_or_else(Outcome::from, Outcome::Done)
    }

    async fn ask(&self, job: &DeliveryJob, deadline: Duration) -> Result<Value, Failed> {
        let response = self.request(job, deadline).await?;
        Ok(json!({ "status": response.status, "body": response.body }))
    }

    async fn request(&self, job: &DeliveryJob, deadline: Duration) -> Result<Response, Failed> {
        let input = HttpInput::deserialize(&job.input).map_err(|error| {
            Failed::new(Reason::JobInvalid, format!("the request cannot be read: {error}"))
        })?;
        let mut headers: Vec<(String, String)> = input.headers.unwrap_or_default().into_iter().collect();
        let key = Some(&job.idempotency_key).filter(|_| job.kind != HOOK);
        let ours = [(IDEMPOTENCY_KEY, key), (TRACEPARENT, job.traceparent.as_ref())];
        for (name, value) in ours {
            let own = headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
            headers.extend(value.filter(|_| !own).map(|value| (name.to_owned(), value.clone())));
        }
        let request = Request { method: input.method, url: input.url, headers, body: input.body, deadline };
        if job.kind == HOOK {
            return self.client.send_as_is(job.tenant, &request).await;
        }
        self.client.send(job.tenant, &request).await
    }

    /// Sends a signed message. An endpoint that is gone fails with a reason of its own.
    async fn hook(&self, job: &DeliveryJob, deadline: Duration) -> Result<Value, Failed> {
        let response = self.request(job, deadline.min(Duration::from_millis(HOOK_MS_MAX))).await?;
        let (status, retry_after) = (response.status, response.retry_after);
        let message = format!("the endpoint answered {status}");
        match Attempt::Answered(status).verdict() {
            Verdict::Delivered => Ok(json!({ "status": status })),
            Verdict::Gone => Err(Failed::new(Reason::ReceiverGone, message)),
            Verdict::Failed => Err(Failed { retry_after, ..Failed::new(Reason::ReceiverRefused, message) }),
        }
    }

    /// Sends a request of whose answer only the status matters.
    async fn post(&self, job: &DeliveryJob, deadline: Duration) -> Result<Value, Failed> {
        let answer = self.ask(job, deadline).await?;
        let status = answer.get("status").and_then(Value::as_u64).unwrap_or_default();
        if (200..300).contains(&status) {
            return Ok(json!({ "status": status }));
        }
        Err(Failed::new(Reason::ReceiverRefused, format!("the receiver answered {status}")))
    }

    async fn write(&self, job: &DeliveryJob, deadline: Duration) -> Result<Value, Failed> {
        let Some(channel) = &self.mail else {
            return Err(Failed::new(Reason::NotConfigured, "this server has no mail server configured"));
        };
        let outbound = OutboundMail::deserialize(&job.input)
            .map_err(|error| Failed::new(Reason::JobInvalid, format!("the mail cannot be read: {error}")))?;
        let mail = compose(&outbound, &channel.sender)?;
        let late = || Failed::new(Reason::Timeout, "the mail server took too long");
        let sent = tokio::time::timeout(deadline, channel.post.send(job.tenant, &mail));
        sent.await.unwrap_or_else(|_| Err(late())).map(|()| json!({ "message_id": mail.message_id }))
    }

    async fn question(&self, job: &DeliveryJob, kind: Kind, deadline: Duration) -> Result<Value, Failed> {
        let Some(model) = &self.model else {
            return Err(Failed::new(Reason::NotConfigured, "this server has no model configured"));
        };
        model.perform(job.tenant, kind, &job.input, &job.result_schema, deadline).await
    }
}

/// Refuses a result that is too large.
fn bounded(result: Value) -> Result<Value, Failed> {
    let bytes = result.to_string().len();
    if bytes <= RESULT_BYTES_MAX {
        return Ok(result);
    }
    let message = format!("the result has {bytes} bytes as JSON, at most {RESULT_BYTES_MAX} are allowed");
    Err(Failed::new(Reason::AnswerTooLarge, message))
}

/// Milliseconds since 1970; a clock before that reads 0.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
