//! What the layers of a policy say of a capability, limits and budgets apart.

use switchward_machine::{Fallback, GateIx, Layer, Machine, Otherwise, Rule};
use switchward_state::catalogue::{DefaultEffect, DefaultSetIn, Settings};
use switchward_state::policy::{Args, CallEffect, CallProblem, LayerDecision, LedgerRule, MatchedRule};
use switchward_state::session::Session;

use crate::policy::arguments;
use crate::policy::in_force::InForce;

/// What all layers say together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judged {
    /// The strictest decision.
    pub(crate) decision: PolicyDecision,
    /// The rule that it comes from.
    pub(crate) rule: Option<MatchedRule>,
    /// What each layer says that speaks.
    pub(crate) layers: Vec<LayerDecision>,
    /// Every limited rule of each layer's deciding list, one entry per capability, role and ledger.
    pub(crate) limited: Vec<LedgerRule>,
}

/// Deny beats ask, ask beats allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PolicyDecision {
    /// Freely.
    Allow,
    /// If a person allows it at this gate of the definition.
    Ask(GateIx),
    /// Never; this is why.
    Deny(CallProblem),
}

impl PolicyDecision {
    /// Without the gate and the reason.
    pub(crate) fn effect(&self) -> CallEffect {
        match self {
            Self::Allow => CallEffect::Allow,
            Self::Ask(_) => CallEffect::Ask,
            Self::Deny(_) => CallEffect::Deny,
        }
    }
}

impl Judged {
    /// The layers that want a person asked.
    pub(crate) fn asking(&self) -> Vec<String> {
        let asks = self.layers.iter().filter(|said| said.effect == CallEffect::Ask);
        asks.map(|said| said.rule.layer.clone()).collect()
    }

    /// What each layer says, if the rule alone does not show it.
    pub(crate) fn several(&self) -> Vec<LayerDecision> {
        if self.layers.len() > 1 { self.layers.clone() } else { Vec::new() }
    }
}

/// The name of the layer that a session of a foreign role runs without.
const POLICY: &str = "policy";

/// A layer that has a say.
pub(crate) struct Voice<'a> {
    pub(crate) layer: &'a Layer,
    pub(crate) name: String,
    ledger: &'a str,
    role: &'a str,
    /// Whether its rules have none, because the session's role is another.
    pub(crate) without_rules: bool,
}

/// The layers that speak about a capability: that of the control of processes, the machine's own, then those of the
/// documents. If a document holds, an own policy that was never written has nothing to add to it.
pub(crate) fn voices<'a>(force: &'a InForce, session: &'a Session, capability: &str) -> Vec<Voice<'a>> {
    let machine = &force.machine;
    let documents = if machine.policy.exempts(capability) { &[] } else { force.documents.as_slice() };
    let mut voices = Vec::new();
    for layer in force.control.iter().filter(|layer| layer.speaks(capability, force.run.node)) {
        let (name, ledger) = (layer.name.clone(), session.definition.as_str());
        voices.push(Voice { layer, name, ledger, role: "", without_rules: false });
    }
    for layer in machine.policy.layers.iter().filter(|layer| layer.speaks(capability, force.run.node)) {
        let without_rules = session.without_policy && layer.name == POLICY;
        if !documents.is_empty() && (without_rules || layer.is_unwritten()) {
            continue;
        }
        let role = machine.opening.role.as_deref().unwrap_or_default();
        let (name, ledger) = (layer.name.clone(), session.definition.as_str());
        voices.push(Voice { layer, name, ledger, role, without_rules });
    }
    for document in documents {
        let role = document.machine.opening.role.as_deref().unwrap_or_default();
        let layers = document.machine.policy.layers.iter();
        for layer in layers.filter(|layer| layer.speaks(capability, force.run.node)) {
            let name = match layer.name.as_str() {
                POLICY => document.layer.clone(),
                part => format!("{}/{part}", document.layer),
            };
            voices.push(Voice { layer, name, ledger: &document.ledger, role, without_rules: false });
        }
    }
    voices
}

/// Asks every layer that speaks about the capability.
pub(crate) fn judge(
    force: &InForce,
    session: &Session,
    settings: Settings,
    capability: &str,
    args: &Args,
) -> Judged {
    let mut judged =
        Judged { decision: PolicyDecision::Allow, rule: None, layers: Vec::new(), limited: Vec::new() };
    for voice in voices(force, session, capability) {
        let said = if voice.without_rules {
            otherwise(&voice, &force.machine, settings)
        } else {
            listed(&voice, &force.machine, settings, capability, args, &mut judged.limited)
        };
        let Some((decision, rule)) = said else { continue };
        judged.layers.push(LayerDecision { effect: decision.effect(), rule: rule.clone() });
        if judged.rule.is_none() || decision.effect() > judged.decision.effect() {
            judged.decision = decision;
            judged.rule = Some(rule);
        }
    }
    judged
}

/// A rule, named by its layer, list and pattern.
pub(crate) fn named(layer: &str, list: &str, rule: &Rule) -> MatchedRule {
    MatchedRule {
        layer: layer.to_owned(),
        list: list.to_owned(),
        capability: rule.pattern.as_str().to_owned(),
        default_set_in: None,
    }
}

fn listed(
    voice: &Voice<'_>,
    machine: &Machine,
    settings: Settings,
    capability: &str,
    args: &Args,
    limited: &mut Vec<LedgerRule>,
) -> Option<(PolicyDecision, MatchedRule)> {
    let layer = voice.layer;
    for (list, rules) in [("deny", &layer.deny), ("ask", &layer.ask), ("allow", &layer.allow)] {
        let matching: Vec<&Rule> = rules.iter().filter(|rule| rule.pattern.covers(capability)).collect();
        let Some(first) = matching.first() else { continue };
        for rule in &matching {
            if let Some(why) = rule.args.as_ref().and_then(|args_rule| arguments::broken(args_rule, args)) {
                return Some((PolicyDecision::Deny(why), named(&voice.name, list, rule)));
            }
            charge(limited, voice, rule);
        }
        let decision = match list {
            "deny" => PolicyDecision::Deny(CallProblem::Listed { capability: capability.to_owned() }),
            "ask" => match first.gate.or(machine.policy.ask_gate) {
                Some(gate) => PolicyDecision::Ask(gate),
                None => PolicyDecision::Deny(CallProblem::NobodyToAsk { capability: capability.to_owned() }),
            },
            _ => PolicyDecision::Allow,
        };
        return Some((decision, named(&voice.name, list, first)));
    }
    otherwise(voice, machine, settings)
}

/// What a layer says if none of its rules matches.
fn otherwise(
    voice: &Voice<'_>,
    machine: &Machine,
    settings: Settings,
) -> Option<(PolicyDecision, MatchedRule)> {
    let (effect, set_in) = match voice.layer.otherwise {
        Otherwise::Abstain => return None,
        Otherwise::Deny => (None, None),
        Otherwise::Stated(stated) => (Some(of_fallback(stated)), Some(DefaultSetIn::Document)),
        Otherwise::TenantDefault => (Some(settings.default_effect), Some(settings.default_set_in)),
    };
    let decision = match (effect, machine.policy.ask_gate) {
        (None, _) => PolicyDecision::Deny(CallProblem::NotListed),
        (Some(DefaultEffect::Allow), _) => PolicyDecision::Allow,
        (Some(DefaultEffect::Ask), Some(gate)) => PolicyDecision::Ask(gate),
        (Some(DefaultEffect::Ask), None) => PolicyDecision::Deny(CallProblem::UnlistedNobodyToAsk),
        (Some(DefaultEffect::Deny), _) => {
            PolicyDecision::Deny(CallProblem::DeniedByDefault { layer: voice.name.clone(), set_in })
        }
    };
    let (layer, list) = (voice.name.clone(), "default".to_owned());
    Some((decision, MatchedRule { layer, list, capability: String::new(), default_set_in: set_in }))
}

fn of_fallback(stated: Fallback) -> DefaultEffect {
    match stated {
        Fallback::Allow => DefaultEffect::Allow,
        Fallback::Ask => DefaultEffect::Ask,
        Fallback::Deny => DefaultEffect::Deny,
    }
}

/// Adds the rule's limits to those of its capability: two rules of one capability share their counters, and a call
/// counts there once.
fn charge(limited: &mut Vec<LedgerRule>, voice: &Voice<'_>, rule: &Rule) {
    if rule.limits.is_empty() {
        return;
    }
    let capability = rule.pattern.as_str();
    let same = |known: &&mut LedgerRule| {
        known.capability == capability && known.role == voice.role && known.process == voice.ledger
    };
    match limited.iter_mut().find(same) {
        Some(known) => {
            known.limits.extend(rule.limits.iter().copied());
            if !known.layers.contains(&voice.name) {
                known.layers.push(voice.name.clone());
            }
        }
        None => limited.push(LedgerRule {
            process: voice.ledger.to_owned(),
            role: voice.role.to_owned(),
            capability: capability.to_owned(),
            limits: rule.limits.clone(),
            layers: vec![voice.name.clone()],
        }),
    }
}
