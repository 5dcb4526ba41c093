//! What readers of a history see of tool calls, and of approvals of them.

use switchward_machine::{BudgetUnit, Micros};
use switchward_state::PublicEvent;
use switchward_state::policy::{LayerDecision, MatchedRule, PolicyEvent};

/// The event with the layer that decided, and with what each layer said if several did.
fn ruled(mut event: PublicEvent, rule: Option<&MatchedRule>, layers: &[LayerDecision]) -> PublicEvent {
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

/// Returns what a reader sees of an event; `None` if it is internal.
pub(crate) fn public(event: &PolicyEvent) -> Option<PublicEvent> {
    Some(match event {
        PolicyEvent::CallPermitted { call, digest, rule, layers, .. } => {
            let event = PublicEvent::new("policy.allowed")
                .with("capability", &call.capability)
                .with("call_id", &call.call_id)
                .with("args_digest", digest);
            ruled(event, rule.as_ref(), layers)
        }
        PolicyEvent::CallDenied { capability, digest, reason, call_id, rule, layers } => {
            let event = PublicEvent::new("policy.denied")
                .with("capability", capability)
                .with("reason", reason.code())
                .with("call_id", call_id)
                .with("args_digest", digest);
            ruled(event, rule.as_ref(), layers)
        }
        PolicyEvent::CallAsked { capability, digest, gate, call_id, rule, layers } => {
            let event = PublicEvent::new("policy.asked")
                .with("capability", capability)
                .with("gate", gate.0)
                .with("call_id", call_id)
                .with("args_digest", digest);
            ruled(event, rule.as_ref(), layers)
        }
        PolicyEvent::CallReported { capability, success, .. } => {
            PublicEvent::new("tool.reported").with("capability", capability).with("success", success)
        }
        PolicyEvent::GrantMade { grant, .. } => {
            PublicEvent::new("grant.made").with("gate", grant.gate).with("capability", &grant.capability)
        }
        PolicyEvent::GrantUsed { .. } => PublicEvent::new("grant.used"),
        PolicyEvent::GrantLapsed { .. } => PublicEvent::new("grant.lapsed"),
        PolicyEvent::Metered { cost, tokens } if cost.0 > 0 || *tokens > 0 => {
            PublicEvent::new("usage.reported").with("cost_usd", cost).with("tokens", tokens)
        }
        PolicyEvent::BudgetExhausted { unit: BudgetUnit::UsdMicros, cap } => {
            PublicEvent::new("budget.exhausted").with("cap_usd", Micros(*cap))
        }
        PolicyEvent::BudgetExhausted { unit: BudgetUnit::Mails, cap } => {
            PublicEvent::new("budget.exhausted").with("cap_mails", cap)
        }
        PolicyEvent::CapRaised { value, .. } => PublicEvent::new("cap.raised").with("value", value),
        PolicyEvent::Metered { .. }
        | PolicyEvent::CallLapsed { .. }
        | PolicyEvent::LedgerReserved { .. }
        | PolicyEvent::LedgerConfirmed { .. }
        | PolicyEvent::LedgerSettled { .. }
        | PolicyEvent::Swept(_)
        | PolicyEvent::Policies(_) => return None,
    })
}
