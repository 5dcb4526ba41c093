//! Performs one delivery job, by the channel of its input.

use std::time::Duration;

use switchward_bus::Delivery;
use switchward_state::delivery::JobProblem;
use tokio::time::Instant;

use super::{Delivered, DeliveryJob, DeliveryWorker, JobInput, Outcome};
use crate::channels::{CallContext, PingAnswer, Webhook, http, mail, model, ping, webhook};
use crate::limits::DEADLINE_MS_MAX;
use crate::{DeliveryReason, Failed};

impl DeliveryWorker {
    /// Performs a job that was published so long ago.
    pub(super) async fn perform(&self, job: &DeliveryJob, age: Duration) -> Outcome {
        let left = left(job, age)?;
        let call = CallContext {
            tenant: job.tenant.0,
            deadline: left,
            idempotency_key: &job.idempotency_key,
            traceparent: job.traceparent.as_deref(),
        };
        match &job.input {
            JobInput::Http(request) => http::perform(&self.client, &call, request).await.map(Delivered::Http),
            JobInput::Model { question, result_schema } => {
                let result = model::perform(self.model.as_ref(), &call, question, result_schema);
                result.await.map(Delivered::Model)
            }
            JobInput::Mail(outbound) => {
                let sent = mail::perform(self.mail.as_ref(), &call, outbound).await;
                sent.map(|message_id| Delivered::Mail { message_id })
            }
            JobInput::Webhook(message) => {
                let sent = webhook::perform(&self.client, &call, message).await;
                sent.map(|status| Delivered::Webhook { status })
            }
        }
    }

    /// Sends the single message of a job that was delivered and taken then, and answers the server that waits for it. A delivery that
    /// comes again was begun, and nobody knows how far it got: it is not attempted a second time.
    pub(super) async fn ping(&self, job: &DeliveryJob, delivery: &Delivery, taken: Instant) {
        let JobInput::Webhook(Webhook::Event(event)) = &job.input else {
            return tracing::error!(?job, "a single message is no event");
        };
        if delivery.count > 1 {
            return tracing::warn!(?job, "a single message was begun before; it is not sent again");
        }
        let answer = match left(job, delivery.age.saturating_add(taken.elapsed())) {
            Ok(left) => ping(&self.client, job.tenant.0, event, left).await,
            Err(late) => PingAnswer::failed(late),
        };
        if let Err(error) = self.bus.answer(&job.name(), answer.encode()).await {
            tracing::warn!(?job, %error, "failed to send the answer to a single message");
        }
    }
}

/// How long a job that was published so long ago may still take.
///
/// # Errors
/// NotBegun if its time is over.
fn left(job: &DeliveryJob, age: Duration) -> Result<Duration, Failed> {
    let left = Duration::from_millis(job.ttl_ms).saturating_sub(age);
    if left.is_zero() {
        return Err(Failed::new(DeliveryReason::NotBegun, JobProblem::Late));
    }
    Ok(left.min(Duration::from_millis(DEADLINE_MS_MAX)))
}
