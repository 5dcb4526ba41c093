//! What readers of a history see of what goes out.

use switchward_machine::Channel;
use switchward_state::delivery::{
    DeliveryDetail, DeliveryEvent, Effect, EffectBody, FailureCode, MessageText,
};
use switchward_state::{PublicEvent, PublicValue};

/// Returns what a reader sees of an event; `None` if it is internal.
pub(crate) fn public(event: &DeliveryEvent) -> Option<PublicEvent> {
    Some(match event {
        DeliveryEvent::Queued { effect } => return queued(effect),
        DeliveryEvent::Failed { number, code, detail } => {
            failed(PublicEvent::new("delivery.exhausted").with("number", number), code, detail.as_ref())
        }
        DeliveryEvent::Retried { number } => PublicEvent::new("delivery.retried").with("number", number),
        DeliveryEvent::Dismissed { number } => PublicEvent::new("delivery.dismissed").with("number", number),
        DeliveryEvent::Deferred { number, until, code, detail }
        | DeliveryEvent::Held { number, until, code, detail } => {
            let public = PublicEvent::new("delivery.deferred").with("number", number);
            failed(public.with("until_ms", until.0), code, detail.as_ref())
        }
        DeliveryEvent::MailBounced { gate, to, message, proved } => {
            PublicEvent::new("approval.undeliverable")
                .with("gate", gate.0)
                .with("to", to)
                .with("message", message)
                .with("proved", proved)
        }
        DeliveryEvent::Acked { .. }
        | DeliveryEvent::EndpointNoted { .. }
        | DeliveryEvent::WebhookSources(_) => {
            return None;
        }
    })
}

/// The same event with what has gone wrong with a delivery.
fn failed(public: PublicEvent, code: &FailureCode, detail: Option<&DeliveryDetail>) -> PublicEvent {
    let failure = PublicValue::DeliveryFailure(code.clone(), detail.cloned());
    public.with("code", code).with_facts("message", failure)
}

fn queued(effect: &Effect) -> Option<PublicEvent> {
    let public = PublicEvent::new("effect.queued").with("number", effect.number);
    let trace = effect.trace.as_deref().unwrap_or_default();
    Some(match &effect.body {
        EffectBody::Notice { gate, kind, subject } => public
            .with("kind", "notice")
            .with("gate", gate.0)
            .with("gate_kind", kind.word())
            .with_subject(
                Channel::Chat,
                MessageText::Request { subject: subject.clone(), body: String::new() },
            )
            .with("traceparent", trace),
        EffectBody::Message { channel, to, text, .. } => public
            .with("kind", channel.word())
            .with("to", to)
            .with_subject(*channel, text.clone())
            .with("traceparent", trace),
        EffectBody::Confirm { .. } | EffectBody::Settle { .. } | EffectBody::Publish { .. } => return None,
    })
}
