//! A session's history as messages.

use prost_types::value::Kind;
use std::collections::BTreeMap;
use switchward_api::v1;
use switchward_engine::{Machines, public_events};
use switchward_messages::public_value;
use switchward_state::catalogue::DefaultSetIn;
use switchward_state::policy::{CallEffect, LayerDecision, PolicyEvent};
use switchward_state::{Event, History};
use switchward_state::{PublicEvent, PublicValue};

use super::timestamp;
use crate::auth::Caller;
use crate::hide::without_mail;
use crate::names;

/// Returns the events of one row of history as they are shown. The first event of a row has the sequence `first` + 1.
pub(crate) fn of_history(first: u64, history: &History, machines: &Machines) -> Vec<v1::SessionEvent> {
    let events = public_events(&history.events, machines);
    events
        .map(|(at, event)| {
            let sequence = first + 1 + u64::try_from(at).unwrap_or(0);
            self::event(sequence, history, &event)
        })
        .collect()
}

fn event(sequence: u64, history: &History, event: &PublicEvent) -> v1::SessionEvent {
    let shown = event.fields.iter().map(|(name, value)| (*name, self::shown(value)));
    let shown: Vec<(&str, String)> = shown.filter(|(_, value)| !value.is_empty()).collect();
    let find = |name: &str| shown.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let fields: BTreeMap<String, prost_types::Value> = shown
        .iter()
        .map(|(name, value)| {
            ((*name).to_owned(), prost_types::Value { kind: Some(Kind::StringValue(value.clone())) })
        })
        .collect();
    let words: Vec<String> = shown.iter().map(|(name, value)| format!("{name}={value}")).collect();
    v1::SessionEvent {
        sequence,
        time: Some(timestamp(history.at)),
        r#type: event.kind.to_owned(),
        state: find("state").unwrap_or_default(),
        by: history.by.subject.clone(),
        message: words.join(" "),
        data: Some(prost_types::Struct { fields }),
    }
}

/// A value as it is shown. What somebody wrote, or answered, may hold the address that replies go to, or the link of a
/// page, which are left out.
fn shown(value: &PublicValue) -> String {
    let value = public_value(value);
    without_mail(&value).unwrap_or_else(|| value.into_owned())
}

/// Returns the decision about a call, if the event is one.
#[expect(clippy::wildcard_enum_match_arm, reason = "only three kinds of event are decisions about calls")]
pub(crate) fn decision(
    caller: &Caller,
    session: switchward_machine::SessionId,
    sequence: u64,
    history: &History,
    event: &Event,
) -> Option<v1::DecisionRecord> {
    let base = |capability: &str, digest: &switchward_machine::Digest, call_id: &str| v1::DecisionRecord {
        sequence,
        time: Some(timestamp(history.at)),
        capability: capability.to_owned(),
        args_digest: digest.to_string(),
        call_id: call_id.to_owned(),
        ..v1::DecisionRecord::default()
    };
    Some(match event {
        Event::Policy(PolicyEvent::CallPermitted { call, digest, rule, layers, .. }) => v1::DecisionRecord {
            layers: self::layers(layers),
            decision: v1::ToolDecision::Allow.into(),
            matched_rule: rule.as_ref().map(self::rule),
            grant_used: history
                .events
                .iter()
                .any(|event| matches!(event, Event::Policy(PolicyEvent::GrantUsed { .. }))),
            ..base(&call.capability, digest, &call.call_id)
        },
        Event::Policy(PolicyEvent::CallDenied { capability, digest, reason, rule, call_id, layers }) => {
            v1::DecisionRecord {
                layers: self::layers(layers),
                decision: v1::ToolDecision::Deny.into(),
                reason: reason.code().to_owned(),
                matched_rule: rule.as_ref().map(self::rule),
                ..base(capability, digest, call_id)
            }
        }
        Event::Policy(PolicyEvent::CallAsked { capability, digest, gate, rule, call_id, layers }) => {
            v1::DecisionRecord {
                layers: self::layers(layers),
                decision: v1::ToolDecision::Ask.into(),
                matched_rule: rule.as_ref().map(self::rule),
                gate: names::of_gate(caller, session, *gate),
                ..base(capability, digest, call_id)
            }
        }
        _ => return None,
    })
}

/// Converts a rule, identified by its position in the policy.
pub(crate) fn rule(rule: &switchward_state::policy::MatchedRule) -> v1::MatchedRule {
    let list = match rule.list.as_str() {
        "deny" => v1::RuleList::Deny,
        "ask" => v1::RuleList::Ask,
        "allow" => v1::RuleList::Allow,
        _ => v1::RuleList::Default,
    };
    let set_in = match rule.default_set_in {
        None => v1::DefaultSetIn::Unspecified,
        Some(DefaultSetIn::Source) => v1::DefaultSetIn::Source,
        Some(DefaultSetIn::Configuration) => v1::DefaultSetIn::Configuration,
        Some(DefaultSetIn::Tenant) => v1::DefaultSetIn::Tenant,
        Some(DefaultSetIn::Document) => v1::DefaultSetIn::Policy,
    };
    v1::MatchedRule {
        list: list.into(),
        capability: rule.capability.clone(),
        layer: rule.layer.clone(),
        default_set_in: set_in.into(),
    }
}

/// What each layer says.
pub(crate) fn layers(layers: &[LayerDecision]) -> Vec<v1::LayerDecision> {
    let one = |said: &LayerDecision| v1::LayerDecision {
        decision: effect(said.effect).into(),
        rule: Some(rule(&said.rule)),
    };
    layers.iter().map(one).collect()
}

/// What policy says.
pub(crate) fn effect(effect: CallEffect) -> v1::ToolDecision {
    match effect {
        CallEffect::Allow => v1::ToolDecision::Allow,
        CallEffect::Ask => v1::ToolDecision::Ask,
        CallEffect::Deny => v1::ToolDecision::Deny,
    }
}
