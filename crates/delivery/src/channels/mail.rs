//! Composes mails and hands them to the transport.

use std::sync::Arc;

use switchward_state::delivery::MailProblem;

use super::CallContext;
use crate::mail::{OutboundMail, Post, Sender, compose};
use crate::{DeliveryReason, Failed};

/// The sender of mails, and their transport.
#[derive(Clone)]
pub struct MailChannel {
    /// The addresses that mails are sent from, and their signature.
    pub sender: Arc<Sender>,
    /// The transport of composed mails.
    pub post: Arc<dyn Post>,
}

/// Composes and sends a mail. Returns its message id.
pub(crate) async fn perform(
    channel: Option<&MailChannel>,
    call: &CallContext<'_>,
    outbound: &OutboundMail,
) -> Result<String, Failed> {
    let Some(channel) = channel else {
        return Err(Failed::new(DeliveryReason::NotConfigured, MailProblem::NotConfigured));
    };
    let mail = compose(outbound, &channel.sender)?;
    let late = || Failed::new(DeliveryReason::Timeout, MailProblem::TooSlow);
    let sent = tokio::time::timeout(call.deadline, channel.post.send(call.tenant, &mail));
    sent.await.unwrap_or_else(|_| Err(late())).map(|()| mail.message_id)
}
