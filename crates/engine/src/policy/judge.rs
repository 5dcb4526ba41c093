//! What the layers of a policy say of a capability, limits and budgets apart.

use switchward_machine::{GateIx, Layer, Machine, NodeIx, Otherwise, Rule};

use super::{LedgerRule, arguments};
use crate::Args;
use crate::command::{DefaultEffect, Settings};
use crate::reply::MatchedRule;
use crate::state::Session;

/// What all layers say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    /// The strictest verdict.
    pub(crate) verdict: Verdict,
    /// The rule that it comes from.
    pub(crate) rule: Option<MatchedRule>,
    /// Every limited rule of each layer's deciding list, one entry per capability.
    pub(crate) limited: Vec<LedgerRule>,
}

/// Deny beats ask, ask beats allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Freely.
    Allow,
    /// At this gate.
    Ask(GateIx),
    /// Never; this is why.
    Deny(String),
}

impl Verdict {
    fn strictness(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Ask(_) => 1,
            Self::Deny(_) => 2,
        }
    }
}

/// The name of the layer that a session of a foreign role runs without.
const POLICY: &str = "policy";

/// Asks every layer that speaks about the capability at this node.
pub(crate) fn judge(
    machine: &Machine,
    session: &Session,
    at: NodeIx,
    settings: Settings,
    capability: &str,
    args: &Args,
) -> Judged {
    let mut judged = Judged { verdict: Verdict::Allow, rule: None, limited: Vec::new() };
    let role = machine.opening.role.as_deref().unwrap_or_default();
    for layer in machine.policy.layers.iter().filter(|layer| layer.speaks(capability, at)) {
        let said = if session.without_policy && layer.name == POLICY {
            otherwise(layer, machine, settings)
        } else {
            listed(layer, machine, settings, capability, args, role, &mut judged.limited)
        };
        let Some((verdict, rule)) = said else { continue };
        if judged.rule.is_none() || verdict.strictness() > judged.verdict.strictness() {
            judged.verdict = verdict;
            judged.rule = Some(rule);
        }
    }
    judged
}

fn listed(
    layer: &Layer,
    machine: &Machine,
    settings: Settings,
    capability: &str,
    args: &Args,
    role: &str,
    limited: &mut Vec<LedgerRule>,
) -> Option<(Verdict, MatchedRule)> {
    let name = |list: &str, rule: &Rule| MatchedRule {
        layer: layer.name.clone(),
        list: list.to_owned(),
        capability: rule.pattern.as_str().to_owned(),
    };
    for (list, rules) in [("deny", &layer.deny), ("ask", &layer.ask), ("allow", &layer.allow)] {
        let matching: Vec<&Rule> = rules.iter().filter(|rule| rule.pattern.covers(capability)).collect();
        let Some(first) = matching.first() else { continue };
        for rule in &matching {
            if let Some(why) = rule.args.as_ref().and_then(|args_rule| arguments::broken(args_rule, args)) {
                return Some((Verdict::Deny(why), name(list, rule)));
            }
            charge(limited, role, rule);
        }
        let verdict = match list {
            "deny" => Verdict::Deny(format!("{capability} is on the deny list")),
            "ask" => match first.gate.or(machine.policy.ask_gate) {
                Some(gate) => Verdict::Ask(gate),
                None => Verdict::Deny(format!("{capability} must be asked about, and nobody can be asked")),
            },
            _ => Verdict::Allow,
        };
        return Some((verdict, name(list, first)));
    }
    otherwise(layer, machine, settings)
}

fn otherwise(layer: &Layer, machine: &Machine, settings: Settings) -> Option<(Verdict, MatchedRule)> {
    let verdict = match layer.otherwise {
        Otherwise::Abstain => return None,
        Otherwise::Deny => Verdict::Deny("it is not on the list of what may be called".into()),
        Otherwise::TenantDefault => match (settings.default_effect, machine.policy.ask_gate) {
            (DefaultEffect::Allow, _) => Verdict::Allow,
            (DefaultEffect::Ask, Some(gate)) => Verdict::Ask(gate),
            (DefaultEffect::Ask, None) => Verdict::Deny("no rule matches, and nobody can be asked".into()),
            (DefaultEffect::Deny, _) => {
                Verdict::Deny("no rule matches, and the tenant denies by default".into())
            }
        },
    };
    let rule = MatchedRule { layer: layer.name.clone(), list: "default".into(), capability: String::new() };
    Some((verdict, rule))
}

/// Adds the rule's limits to those of its capability: two rules of one capability share their counters, and a call
/// counts there once.
fn charge(limited: &mut Vec<LedgerRule>, role: &str, rule: &Rule) {
    if rule.limits.is_empty() {
        return;
    }
    let capability = rule.pattern.as_str();
    match limited.iter_mut().find(|known| known.capability == capability) {
        Some(known) => known.limits.extend(rule.limits.iter().copied()),
        None => limited.push(LedgerRule {
            role: role.to_owned(),
            capability: capability.to_owned(),
            limits: rule.limits.clone(),
        }),
    }
}
