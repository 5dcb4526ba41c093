//! Why a call would be decided as it would be, rule by rule. Changes nothing.

use minicbor::{Decode, Encode};
use switchward_machine::{BudgetUnit, SessionId, TenantId, Time};
use switchward_state::catalogue::Settings;
use switchward_state::policy::{Authorize, CallEffect, CallGrounds, LayerDecision, LedgerRule, MatchedRule};
use switchward_state::run::RunAddress;
use switchward_state::session::Session;
use switchward_state::{ReadRows, Reason, Rejection, View, ViewError};

use crate::policy::assess::{Assessment, AssessmentContext, assess, used};
use crate::policy::in_force::{InForce, in_force};
use crate::policy::judge::{PolicyDecision, judge, named, voices};
use crate::run::address::Active;

/// What would be decided, and everything that had a say. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Explanation {
    /// What would be said, limits apart.
    #[n(0)]
    pub effect: CallEffect,
    /// Why it would be denied.
    #[n(1)]
    pub reason: Option<Reason>,
    /// Why it would be decided like this.
    #[n(2)]
    pub grounds: CallGrounds,
    /// The rule that decides.
    #[n(3)]
    pub rule: Option<MatchedRule>,
    /// Whether an approval of exactly this call is at hand; it decides alone.
    #[n(4)]
    pub granted: bool,
    /// Every rule of the layers that speak about the capability, in the order in which it is looked at.
    #[n(5)]
    pub looked_at: Vec<LookedAt>,
    /// What each layer says, in their order.
    #[n(6)]
    pub layers: Vec<LayerDecision>,
    /// The rules whose limits are checked.
    #[n(7)]
    pub limited: Vec<LedgerRule>,
    /// The session's own caps on this capability: unit, used or reserved, cap.
    #[n(8)]
    pub budgets: Vec<LimitState>,
}

/// A rule, and whether it covers the capability.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LookedAt {
    /// The rule by its layer, its list and its pattern.
    #[n(0)]
    pub rule: MatchedRule,
    /// Whether its pattern covers the capability.
    #[n(1)]
    pub covers: bool,
}

/// A cap and what of it is used.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct LimitState {
    /// The document that caps it; `None` if it is the definition itself.
    #[n(0)]
    pub layer: Option<String>,
    /// What is capped.
    #[n(1)]
    pub unit: BudgetUnit,
    /// Used or reserved, in the unit.
    #[n(2)]
    pub used: u64,
    /// The cap, in the unit.
    #[n(3)]
    pub cap: u64,
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

/// Explains a call of the active run that an address names, or of the only one without an address. `None` if the session
/// does not exist in this tenant; a refusal if no active run fits, or several do.
///
/// # Errors
/// A row cannot be read.
pub fn explain(
    view: &dyn View,
    tenant: TenantId,
    id: SessionId,
    settings: Settings,
    address: Option<&RunAddress>,
    call: &Authorize,
    now: Time,
) -> Result<Option<Result<Explanation, Rejection>>, ViewError> {
    let rows: &dyn ReadRows = view;
    let Some(session) = rows.session(tenant, id)? else { return Ok(None) };
    let caller = match Active::of(rows, tenant, id, &session).one(address)? {
        Ok(caller) => caller,
        Err(refusal) => return Ok(Some(Err(refusal))),
    };
    let force = in_force(rows, tenant, id, &session, caller)?;
    let caps = force.caps.iter().filter(|cap| cap.budget.stops(&call.capability));
    let budgets = caps.map(|cap| LimitState {
        layer: cap.layer.clone(),
        unit: cap.budget.unit,
        used: used(cap.budget.unit, &session.meters),
        cap: cap.value,
    });
    let judged = judge(&force, &session, settings, &call.capability, &call.args);
    let mut explanation = Explanation {
        effect: CallEffect::Allow,
        reason: None,
        grounds: CallGrounds::Approved,
        rule: None,
        granted: false,
        looked_at: looked_at(&force, &session, &call.capability),
        layers: judged.layers,
        limited: Vec::new(),
        budgets: budgets.collect(),
    };
    let context = AssessmentContext { tenant, session: id, settings, now };
    match assess(rows, &context, &session, &force, call)? {
        Assessment::Denied(reason, grounds, said) => {
            let (reason, rule) = (Some(reason), said.rule);
            explanation = Explanation { effect: CallEffect::Deny, reason, grounds, rule, ..explanation };
        }
        Assessment::Granted(_) => explanation.granted = true,
        Assessment::Open(judged) => {
            let (capability, rule) = (call.capability.clone(), judged.rule.clone());
            (explanation.effect, explanation.grounds) = match judged.decision {
                PolicyDecision::Allow => (CallEffect::Allow, CallGrounds::Allowed { capability, rule }),
                PolicyDecision::Ask(_) => (CallEffect::Ask, CallGrounds::Ask { capability }),
                PolicyDecision::Deny(problem) => (CallEffect::Deny, CallGrounds::Problem(problem)),
            };
            explanation.rule = judged.rule;
            explanation.limited = judged.limited;
        }
    }
    Ok(Some(Ok(explanation)))
}
