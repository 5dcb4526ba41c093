//! Why a call would be decided as it would be, rule by rule. Changes nothing.

use switchward_machine::{BudgetUnit, SessionId, TenantId, Time};
use switchward_state::catalogue::{DefaultSetIn, Settings};
use switchward_state::policy::{Authorize, LayerVerdict, LedgerRule, MatchedRule};
use switchward_state::session::Session;
use switchward_state::{View, ViewError, Working};

use crate::policy::assess::{Assessment, AssessmentContext, assess, used};
use crate::policy::in_force::{InForce, in_force};
use crate::policy::judge::{Verdict, judge, named, voices};

/// What would be decided, and everything that had a say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// `allow`, `ask` or `deny`, limits apart.
    pub effect: &'static str,
    /// The upper-case code of a denial.
    pub reason: Option<&'static str>,
    /// A sentence for a person.
    pub message: String,
    /// The rule that decides.
    pub rule: Option<MatchedRule>,
    /// Whether an approval of exactly this call is at hand; it decides alone.
    pub granted: bool,
    /// Every rule of the layers that speak about the capability, in the order in which it is looked at.
    pub looked_at: Vec<LookedAt>,
    /// What each layer says, in their order.
    pub layers: Vec<LayerVerdict>,
    /// The rules whose limits are checked.
    pub limited: Vec<LedgerRule>,
    /// The session's own caps on this capability: unit, used or reserved, cap.
    pub budgets: Vec<LimitState>,
}

/// A rule, and whether it covers the capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedAt {
    /// The rule.
    pub rule: MatchedRule,
    /// Whether its pattern covers the capability.
    pub covers: bool,
}

/// A cap and what of it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// The document that caps it; `None` if it is the definition itself.
    pub layer: Option<String>,
    /// What is capped.
    pub unit: BudgetUnit,
    /// Used or reserved, in the unit.
    pub used: u64,
    /// The cap, in the unit.
    pub cap: u64,
}

/// The message about a call that a person approved.
pub(crate) const GRANTED: &str = "a person approved exactly this call, once";

/// The message about a call that a person must approve.
pub(crate) fn to_ask(capability: &str) -> String {
    format!("a person must approve {capability} with these arguments; repeat the same call then")
}

fn allowed(capability: &str, rule: Option<&MatchedRule>) -> String {
    let Some(rule) = rule else { return format!("nothing speaks about {capability}, so it is allowed") };
    if !rule.capability.is_empty() {
        return format!("{} allows {}", rule.layer, rule.capability);
    }
    let open = format!("no rule of {} covers {capability}, and", rule.layer);
    match rule.default_set_in {
        None | Some(DefaultSetIn::Source) => format!("{open} what no rule covers is allowed"),
        Some(DefaultSetIn::Document) => format!("{open} it allows by default"),
        Some(DefaultSetIn::Tenant) => format!("{open} the tenant allows by default"),
        Some(DefaultSetIn::Configuration) => format!("{open} the server's configuration allows by default"),
    }
}

fn looked_at(force: &InForce, session: &Session, capability: &str) -> Vec<LookedAt> {
    let mut rules = Vec::new();
    for voice in voices(force, session, capability) {
        let layer = voice.layer;
        for (list, of_list) in [("deny", &layer.deny), ("ask", &layer.ask), ("allow", &layer.allow)] {
            rules.extend(of_list.iter().map(|rule| LookedAt {
                rule: named(&voice.name, list, rule),
                covers: rule.pattern.covers(capability),
            }));
        }
    }
    rules
}

/// Explains a call of a session; `None` if the session does not exist in this tenant.
///
/// # Errors
/// A row cannot be read.
pub fn explain(
    view: &dyn View,
    tenant: TenantId,
    id: SessionId,
    settings: Settings,
    call: &Authorize,
    now: Time,
) -> Result<Option<Explanation>, ViewError> {
    let rows = Working::new(view);
    let Some(session) = rows.session(tenant, id)? else { return Ok(None) };
    let force = in_force(&rows, tenant, id, &session, rows.leaf(tenant, id, session.root)?)?;
    let caps = force.caps.iter().filter(|cap| cap.budget.stops(&call.capability));
    let budgets = caps.map(|cap| LimitState {
        layer: cap.layer.clone(),
        unit: cap.budget.unit,
        used: used(cap.budget.unit, &session.meters),
        cap: cap.value,
    });
    let judged = judge(&force, &session, settings, &call.capability, &call.args);
    let mut explanation = Explanation {
        effect: "allow",
        reason: None,
        message: String::new(),
        rule: None,
        granted: false,
        looked_at: looked_at(&force, &session, &call.capability),
        layers: judged.layers,
        limited: Vec::new(),
        budgets: budgets.collect(),
    };
    let context = AssessmentContext { tenant, session: id, settings, now };
    match assess(&rows, &context, &session, &force, call)? {
        Assessment::Denied(reason, message, said) => {
            let (reason, rule) = (Some(reason.code()), said.rule);
            explanation = Explanation { effect: "deny", reason, message, rule, ..explanation };
        }
        Assessment::Granted(_) => {
            explanation.granted = true;
            explanation.message = GRANTED.into();
        }
        Assessment::Open(judged) => {
            (explanation.effect, explanation.message) = match judged.verdict {
                Verdict::Allow => ("allow", allowed(&call.capability, judged.rule.as_ref())),
                Verdict::Ask(_) => ("ask", to_ask(&call.capability)),
                Verdict::Deny(why) => ("deny", why),
            };
            explanation.rule = judged.rule;
            explanation.limited = judged.limited;
        }
    }
    Ok(Some(explanation))
}
