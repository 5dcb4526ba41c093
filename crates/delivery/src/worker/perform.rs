//! Performs one delivery job, by the channel of its input.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Delivered, DeliveryJob, DeliveryWorker, JobInput, Outcome};
use crate::channels::{CallContext, http, mail, model, webhook};
use crate::limits::DEADLINE_MS_MAX;
use crate::{Failed, Reason};

impl DeliveryWorker {
    pub(super) async fn perform(&self, job: &DeliveryJob) -> Outcome {
        let left = job.deadline_ms.saturating_sub(now_ms()).min(DEADLINE_MS_MAX);
        if left == 0 {
            return Err(Failed::new(Reason::NotBegun, "the deadline passed before the job began"));
        }
        let call = CallContext {
            tenant: job.tenant.0,
            deadline: Duration::from_millis(left),
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

/// Milliseconds since 1970; a clock before that reads 0.
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
