//! Explaining a call must tell what is decided about it right after, and change nothing.

use switchward_engine::policy::{Explanation, Ledgers, Plan, explain};
use switchward_engine::{Authorized, Body, Command, EffectOfCall, MatchedRule, Reason, Reply, Scope};

use super::{Care, Memory};
use crate::world::{Answer, Broken};

/// What was explained of a call, and which ledger had a say in it.
pub(super) struct Told {
    explained: Explanation,
    plan: Plan,
}

impl Memory {
    /// With care: explains a call before it is decided; nothing where there is no call or no session.
    pub(super) fn explained(&self, command: &Command) -> Result<Option<Told>, Broken> {
        let (Scope::Session(id), Body::Authorize(call), Care::Restart) =
            (&command.scope, &command.body, self.care)
        else {
            return Ok(None);
        };
        let shard = &self.shards[self.home(command.tenant, &command.scope)];
        let explained = explain(shard, command.tenant, *id, command.settings, call, self.now)?;
        let plan = self.plan(command)?;
        Ok(explained.map(|explained| Told { explained, plan }))
    }

    /// Compares what was explained with what was decided. A repetition is answered as it was the first time, whatever
    /// holds by now, and so decides nothing.
    pub(super) fn agrees(
        &self,
        told: Option<Told>,
        command: &Command,
        answer: &Answer,
    ) -> Result<(), Broken> {
        let (Body::Authorize(call), Care::Restart) = (&command.body, self.care) else { return Ok(()) };
        let Ok(Reply::Authorized(decided)) = answer else { return Ok(()) };
        let Some(Told { explained, plan }) = told else {
            return Err(Broken(format!("a call was decided and could not be explained: {decided:?}")));
        };
        let agreed = as_told(&explained, decided) && ruled(&explained, decided) && asked(&explained, &plan);
        if agreed && names_what_decides(&explained, &call.capability) {
            return Ok(());
        }
        Err(Broken(format!("explained as {explained:?}, asked as {plan:?}, and decided as {decided:?}")))
    }
}

/// The effect and its reason; an explanation leaves the limits of ledgers apart.
fn as_told(explained: &Explanation, decided: &Authorized) -> bool {
    let limits = [Reason::RateLimited.code(), Reason::BudgetExhausted.code()];
    let by_limit = decided.reason.as_deref().is_some_and(|reason| limits.contains(&reason));
    let granted = explained.granted;
    match decided.effect {
        EffectOfCall::Deny if explained.effect == "deny" => {
            explained.reason == decided.reason.as_deref() && explained.message == decided.message
        }
        EffectOfCall::Deny => by_limit && !granted && names_a_limit(explained, &decided.message),
        EffectOfCall::Ask => explained.effect == "ask" && explained.message == decided.message,
        EffectOfCall::Allow => explained.effect == "allow" && granted == decided.granted_by.is_some(),
    }
}

/// The sentence about a call that a limit stops names the rule whose limit it is.
fn names_a_limit(explained: &Explanation, message: &str) -> bool {
    explained.limited.iter().any(|rule| message.contains(&rule.capability))
}

/// The rule that decides is told, and stands among those that match.
fn ruled(explained: &Explanation, decided: &Authorized) -> bool {
    let covers =
        |rule: &MatchedRule| explained.looked_at.iter().any(|seen| seen.covers && seen.rule == *rule);
    let listed = |rule: &MatchedRule| rule.list == "default" || covers(rule);
    explained.rule == decided.rule && explained.rule.iter().all(listed)
}

/// The sentence about a call that is asked about names the call; about one that is allowed the rule that allows it, or
/// the call where no rule covers it.
fn names_what_decides(explained: &Explanation, capability: &str) -> bool {
    let rule = explained.rule.as_ref().map(|rule| rule.capability.as_str());
    let rule = rule.filter(|rule| !rule.is_empty() && explained.effect == "allow");
    let told = explained.message.contains(rule.unwrap_or(capability));
    told || explained.effect == "deny" || explained.granted
}

/// The limits that have a say are those that the ledger is asked about.
fn asked(explained: &Explanation, plan: &Plan) -> bool {
    match plan {
        Plan::Direct => explained.limited.is_empty(),
        Plan::Look(Ledgers { rules, .. }) | Plan::Reserve(Ledgers { rules, .. }) => {
            explained.limited == *rules
        }
    }
}
