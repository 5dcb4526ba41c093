//! Performs one delivery job, by the channel of its input.

use std::time::Duration;

use super::{Delivered, DeliveryJob, DeliveryWorker, JobInput, Outcome};
use crate::channels::{CallContext, http, mail, model, webhook};
use crate::limits::DEADLINE_MS_MAX;
use crate::{DeliveryReason, Failed};

impl DeliveryWorker {
    /// Performs a job that was published so long ago.
    pub(super) async fn perform(&self, job: &DeliveryJob, age: Duration) -> Outcome {
        let left = Duration::from_millis(job.ttl_ms).saturating_sub(age);
        if left.is_zero() {
            return Err(Failed::new(DeliveryReason::NotBegun, "the deadline passed before the job began"));
        }
        let call = CallContext {
            tenant: job.tenant.0,
            deadline: left.min(Duration::from_millis(DEADLINE_MS_MAX)),
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
}
