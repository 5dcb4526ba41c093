//! Why a call would be decided as it would be, rule by rule. Changes nothing.

use switchward_machine::{SessionId, TenantId, Time};

use super::{Assessment, LedgerRule, Place, Verdict, assess, cap, used};
use crate::command::{Authorize, Settings};
use crate::reply::MatchedRule;
use crate::working::Working;
use crate::{View, ViewError};

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
    /// Every rule that covers the capability, in the order in which it is looked at.
    pub matching: Vec<MatchedRule>,
    /// The process whose ledger holds the limits.
    pub process: String,
    /// The limited rules that must have room.
    pub limited: Vec<LedgerRule>,
    /// The session's own caps on this capability: unit, used or reserved, cap.
    pub budgets: Vec<LimitState>,
}

/// A cap and what of it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitState {
    /// What is capped, for a person.
    pub name: String,
    /// Used or reserved, in the unit.
    pub used: u64,
    /// The cap, in the unit.
    pub cap: u64,
}

/// Explains a call of a session; nothing where the session does not exist in this tenant.
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
    let Some(machine) = rows.machine(tenant, session.machine)? else { return Ok(None) };
    let run = rows.run(tenant, id, session.root)?;
    let mut matching = Vec::new();
    for layer in machine.policy.layers.iter().filter(|layer| layer.speaks(&call.capability)) {
        for (list, rules) in [("deny", &layer.deny), ("ask", &layer.ask), ("allow", &layer.allow)] {
            let covering = rules.iter().filter(|rule| rule.pattern.covers(&call.capability));
            matching.extend(covering.map(|rule| MatchedRule {
                layer: layer.name.clone(),
                list: list.to_owned(),
                capability: rule.pattern.as_str().to_owned(),
            }));
        }
    }
    let budgets = machine.budgets.iter().filter(|budget| budget.stops(&call.capability));
    let budgets = budgets.map(|budget| LimitState {
        name: format!("{:?}", budget.unit),
        used: used(budget.unit, &session.meters),
        cap: cap(budget, &machine, &run),
    });
    let process = session.definition.clone();
    let mut told = Explanation {
        effect: "allow",
        reason: None,
        message: String::new(),
        rule: None,
        matching,
        process,
        limited: Vec::new(),
        budgets: budgets.collect(),
    };
    let place = Place { tenant, session: id, settings, now };
    match assess(&rows, &place, &session, &machine, call)? {
        Assessment::Denied(reason, message, rule) => {
            told = Explanation { effect: "deny", reason: Some(reason.code()), message, rule, ..told };
        }
        Assessment::Granted(_) => told.message = "an approval of exactly this call is at hand".into(),
        Assessment::Open(judged) => {
            told.effect = if matches!(judged.verdict, Verdict::Ask(_)) { "ask" } else { "allow" };
            told.rule = judged.rule;
            told.limited = judged.limited;
        }
    }
    Ok(Some(told))
}
