//! An explanation of a call must match the decision right after it, and change nothing.

use switchward_engine::policy::{Explanation, Ledgers, Plan, explain};
use switchward_scenario::{Answer, Broken, System};
use switchward_state::policy::{Authorized, CallEffect, CallGrounds, MatchedRule, PolicyCommand, Shortage};
use switchward_state::{Body, Command, Reason, Reply, Scope};

use super::CarefulMemory;

/// The explanation of a call, and the ledgers it depends on.
#[derive(Debug, Clone)]
pub(super) struct ExplainedCall {
    explained: Explanation,
    plan: Plan,
}

/// Explains a call before it is decided; `None` if there is no call or no session.
pub(super) fn explained(memory: &CarefulMemory, command: &Command) -> Result<Option<ExplainedCall>, Broken> {
    let (Scope::Session(id), Body::Policy(PolicyCommand::Authorize(call))) = (&command.scope, &command.body)
    else {
        return Ok(None);
    };
    let shard = &memory.shards()[memory.home(command.tenant, &command.scope)];
    let (settings, address) = (command.settings, command.address.as_ref());
    let explained = explain(shard, command.tenant, *id, settings, address, call, memory.now())?;
    let plan = memory.plan(command)?;
    Ok(explained.and_then(Result::ok).map(|explained| ExplainedCall { explained, plan }))
}

/// Compares the explanation with the decision. A repeated call gets its first answer, whatever holds by now, and
/// so decides nothing.
pub(super) fn agrees(
    earlier: Option<ExplainedCall>,
    command: &Command,
    answer: &Answer,
) -> Result<(), Broken> {
    let Body::Policy(PolicyCommand::Authorize(call)) = &command.body else { return Ok(()) };
    let Ok(Reply::Authorized(decided)) = answer else { return Ok(()) };
    let Some(ExplainedCall { explained, plan }) = earlier else {
        return Err(Broken(format!("a call was decided, but could not be explained: {decided:?}")));
    };
    let agreed = as_explained(&explained, decided) && ruled(&explained, decided) && asked(&explained, &plan);
    if agreed && names_what_decides(&explained, &call.capability) {
        return Ok(());
    }
    Err(Broken(format!(
        "the explanation {explained:?} and the plan {plan:?} do not agree with the decision {decided:?}"
    )))
}

/// Compares the effect and its reason; an explanation does not cover the limits of ledgers.
fn as_explained(explained: &Explanation, decided: &Authorized) -> bool {
    let by_limit = matches!(decided.reason, Some(Reason::RateLimited | Reason::BudgetExhausted));
    let granted = explained.granted;
    let same_grounds = decided.grounds.as_ref() == Some(&explained.grounds);
    match decided.effect {
        CallEffect::Deny if explained.effect == CallEffect::Deny => {
            explained.reason == decided.reason && same_grounds
        }
        CallEffect::Deny => by_limit && !granted && names_a_limit(explained, decided.grounds.as_ref()),
        CallEffect::Ask => explained.effect == CallEffect::Ask && same_grounds,
        CallEffect::Allow => explained.effect == CallEffect::Allow && granted == decided.granted_by.is_some(),
    }
}

/// The grounds of a call that a limit denies name a rule whose limits apply.
fn names_a_limit(explained: &Explanation, grounds: Option<&CallGrounds>) -> bool {
    let Some(CallGrounds::Short(Shortage::Limit { capability })) = grounds else { return false };
    explained.limited.iter().any(|rule| capability.contains(&rule.capability))
}

/// The deciding rule is named, and is among those that match.
fn ruled(explained: &Explanation, decided: &Authorized) -> bool {
    let covers =
        |rule: &MatchedRule| explained.looked_at.iter().any(|seen| seen.covers && seen.rule == *rule);
    let listed = |rule: &MatchedRule| rule.list == "default" || covers(rule);
    explained.rule == decided.rule && explained.rule.iter().all(listed)
}

/// The grounds of a call that needs approval name the call; those of an allowed one name the rule that decides, too.
fn names_what_decides(explained: &Explanation, capability: &str) -> bool {
    match &explained.grounds {
        CallGrounds::Approved => explained.granted,
        CallGrounds::Ask { capability: named } => named == capability && explained.effect == CallEffect::Ask,
        CallGrounds::Allowed { capability: named, rule } => {
            named == capability && *rule == explained.rule && explained.effect == CallEffect::Allow
        }
        CallGrounds::Short(_) | CallGrounds::Problem(_) => explained.effect == CallEffect::Deny,
    }
}

/// The limits that apply are those that the ledger is asked about.
fn asked(explained: &Explanation, plan: &Plan) -> bool {
    match plan {
        Plan::Direct => explained.limited.is_empty(),
        Plan::Look(Ledgers { rules, .. }) | Plan::Reserve(Ledgers { rules, .. }) => {
            explained.limited == *rules
        }
    }
}
