//! What is shown of tool calls, and of approvals of them.

use super::PublicEvent;
use crate::policy::LayerVerdict;
use crate::{Event, MatchedRule};

/// The event with the layer that decided, and with what each layer said if several did.
fn ruled(mut event: PublicEvent, rule: Option<&MatchedRule>, layers: &[LayerVerdict]) -> PublicEvent {
    if let Some(rule) = rule {
        event = event.with("layer", &rule.layer);
    }
    if !layers.is_empty() {
        let said: Vec<String> =
            layers.iter().map(|said| format!("{}: {}", said.rule.layer, said.effect.word())).collect();
        event = event.with("layers", said.join(", "));
    }
    event
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an event that no reader needs is shown to none")]
pub(super) fn calls(event: &Event) -> Option<PublicEvent> {
    Some(match event {
        Event::CallPermitted { call, digest, rule, layers, .. } => {
            let event = PublicEvent::new("policy.allowed")
                .with("capability", &call.capability)
                .with("call_id", &call.call_id)
                .with("args_digest", digest);
            ruled(event, rule.as_ref(), layers)
        }
        Event::CallDenied { capability, digest, reason, call_id, rule, layers } => {
            let event = PublicEvent::new("policy.denied")
                .with("capability", capability)
                .with("reason", reason)
                .with("call_id", call_id)
                .with("args_digest", digest);
            ruled(event, rule.as_ref(), layers)
        }
        Event::CallAsked { capability, digest, gate, call_id, rule, layers } => {
            let event = PublicEvent::new("policy.asked")
                .with("capability", capability)
                .with("gate", gate.0)
                .with("call_id", call_id)
                .with("args_digest", digest);
            ruled(event, rule.as_ref(), layers)
        }
        Event::CallReported { capability, success, .. } => {
            PublicEvent::new("tool.reported").with("capability", capability).with("success", success)
        }
        Event::GrantMade { grant, .. } => {
            PublicEvent::new("grant.made").with("gate", grant.gate).with("capability", &grant.capability)
        }
        Event::GrantUsed { .. } => PublicEvent::new("grant.used"),
        Event::GrantLapsed { .. } => PublicEvent::new("grant.lapsed"),
        _ => return None,
    })
}
