//! Commands that need more than one shard: a call that a limit counts, and a machine that a shard lacks.

use switchward_engine::policy::{Ledgers, Plan, plan};
use switchward_machine::{Micros, TenantId, Time};
use switchward_state::approval::ApprovalCommand;
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, InstallTenancy, Settings};
use switchward_state::limits::RESERVATION_USABLE_MS;
use switchward_state::policy::{
    LedgerRule, LimitCheck, LimitOutcome, PolicyCommand, Reserve, Settle, by_ledger, check_limits,
};
use switchward_state::session::SessionCommand;
use switchward_state::{Actor, Body, Command, Key, Reason, Rejection, Reply, Row, Scope, View};

use super::{CATALOGUE, Care, Memory, ShardIx};
use crate::limits::PLANS_MAX;
use crate::system::{Answer, Broken};

/// A command of the server itself.
pub(super) fn inner(tenant: TenantId, scope: Scope, body: Body) -> Command {
    Command {
        tenant,
        scope,
        request: None,
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: None,
        body,
    }
}

impl Memory {
    /// Executes a command over as many shards as it needs.
    pub(super) fn hop(&mut self, mut command: Command) -> Result<Answer, Broken> {
        for round in 0..PLANS_MAX {
            match self.ask_twice(&command, round)? {
                Err(rejection) => return Ok(Err(rejection)),
                Ok(check) => command.take_along(check),
            }
            self.mistrust(&command)?;
            let (explained, before) = (self.explained(&command)?, self.decisions());
            let answer = self.decide_at_home(&command)?;
            if self.decisions() != before {
                self.agrees(explained, &command, &answer)?;
            }
            match &answer {
                Err(rejection) if rejection.reason == Reason::LimitsStale => {}
                Ok(_) | Err(_) => return Ok(answer),
            }
        }
        Err(Broken(format!("the limits of a call changed {PLANS_MAX} times: {command:?}")))
    }

    /// With care, a ledger's answer is first given in wrong forms: about other rules or another cost, too old,
    /// without its reservation, and not at all. None of them may be accepted.
    fn mistrust(&mut self, command: &Command) -> Result<(), Broken> {
        let Some(check) = attached(command).filter(|_| self.care == Care::Restart) else { return Ok(()) };
        let mut wrong = vec![
            None,
            Some(LimitCheck { rules: Vec::new(), ..check.clone() }),
            Some(LimitCheck { estimate: check.estimate.plus(Micros(1)), ..check.clone() }),
            Some(LimitCheck { at: Time(self.now.0.saturating_sub(RESERVATION_USABLE_MS)), ..check.clone() }),
        ];
        if let LimitOutcome::Available { remaining, reserved: true } = check.outcome {
            let outcome = LimitOutcome::Available { remaining, reserved: false };
            wrong.push(Some(LimitCheck { outcome, ..check }));
        }
        let before = self.decisions();
        for check in wrong {
            let mut command = command.clone();
            command.take_along(check);
            let answer = self.decide_at_home(&command)?;
            let stale = answer.as_ref().is_err_and(|refusal| refusal.reason == Reason::LimitsStale);
            if !stale || self.decisions() != before {
                return Err(Broken(format!(
                    "{command:?} must be refused as stale, but got the answer {answer:?}"
                )));
            }
        }
        Ok(())
    }

    /// Asks the ledger; with care it is asked again, as if its first answer had been lost on the way. Only the first
    /// question of the first round reserves.
    fn ask_twice(&mut self, command: &Command, round: usize) -> Result<Asked, Broken> {
        let before = self.decisions();
        let first = self.ask_ledger(command)?;
        if self.care == Care::Plain {
            return Ok(first);
        }
        let after = self.decisions();
        let again = self.ask_ledger(command)?;
        let newly_reserved = held(&first).is_some_and(|(reserved, _)| reserved);
        // Of several ledgers one may have had capacity before another had none; its reservation was given back.
        let given_back = !newly_reserved && several(&first);
        if held(&first) != held(&again)
            || (!given_back && self.decisions() != after)
            || (round == 0 && !given_back && newly_reserved == (before == after))
        {
            return Err(Broken(format!(
                "a ledger answered {first:?}, and the same question again {again:?}"
            )));
        }
        Ok(first)
    }

    fn ask_ledger(&mut self, command: &Command) -> Result<Asked, Broken> {
        let plan = self.plan(command)?;
        match plan {
            Plan::Direct => Ok(Ok(None)),
            Plan::Look(Ledgers { rules, estimate, .. }) => {
                Ok(Ok(Some(self.remaining_of_all(command.tenant, &rules, estimate)?)))
            }
            Plan::Reserve(ledgers) => {
                self.asked = Some((command.tenant, ledgers.clone()));
                self.reserve(command.tenant, ledgers)
            }
        }
    }

    /// The capacity that is left in all ledgers of these rules, without reserving.
    pub(super) fn remaining_of_all(
        &self,
        tenant: TenantId,
        rules: &[LedgerRule],
        estimate: Micros,
    ) -> Result<LimitCheck, Broken> {
        let mut parts = Vec::new();
        for (process, rules) in by_ledger(rules) {
            let shard = &self.shards[self.home(tenant, &Scope::Ledger(process))];
            parts.push(check_limits(shard, tenant, &rules, estimate, self.now)?);
        }
        Ok(LimitCheck::joined(rules, estimate, &parts))
    }

    /// Reserves in every ledger or in none.
    pub(super) fn reserve(&mut self, tenant: TenantId, ledgers: Ledgers) -> Result<Asked, Broken> {
        let Ledgers { call, rules, estimate } = ledgers;
        let (mut parts, mut held) = (Vec::new(), Vec::new());
        for (process, rules) in by_ledger(&rules) {
            let scope = Scope::Ledger(process);
            let home = self.home(tenant, &scope);
            let body = Body::Policy(PolicyCommand::Reserve(Reserve { call, rules: rules.clone(), estimate }));
            let answer = self.decide(home, &inner(tenant, scope.clone(), body))?;
            let full = match &answer {
                Ok(Reply::Limits(check)) => matches!(check.outcome, LimitOutcome::Full { .. }),
                Ok(_) | Err(_) => true,
            };
            if full {
                for (scope, rules) in held.drain(..) {
                    let (cost, at) = (Micros(0), self.now);
                    let body = Body::Policy(PolicyCommand::Settle(Settle {
                        call: Some(call),
                        rules,
                        cost,
                        at,
                        release: true,
                    }));
                    let home = self.home(tenant, &scope);
                    let answer = self.decide(home, &inner(tenant, scope, body))?;
                    answer
                        .map_err(|refused| Broken(format!("a reservation was not released: {refused:?}")))?;
                }
            }
            match answer {
                Ok(Reply::Limits(check)) => parts.push(check),
                Ok(other) => return Err(Broken(format!("a reservation got the answer {other:?}"))),
                Err(rejection) => return Ok(Err(rejection)),
            }
            if full {
                break;
            }
            held.push((scope, rules));
        }
        Ok(Ok(Some(LimitCheck::joined(&rules, estimate, &parts))))
    }

    pub(super) fn plan(&self, command: &Command) -> Result<Plan, Broken> {
        let shard = &self.shards[self.home(command.tenant, &command.scope)];
        Ok(plan(shard, command, self.now)?)
    }

    /// Installs a tenant's record, its machines and its policies in every shard.
    pub(super) fn spread(&mut self, tenant: TenantId) -> Result<(), Broken> {
        let row = self.shards[CATALOGUE].row(&Key::tenancy_record(tenant))?;
        let Some(Row::Tenancy(tenancy)) = row.as_deref() else { return Ok(()) };
        for at in 0..self.shards.len() {
            let mut installs = Vec::new();
            for policy in &tenancy.policies {
                let machine = self.shards[CATALOGUE].machine(tenant, policy.machine);
                let machine = machine.ok_or_else(|| Broken("a policy is not in the catalogue".into()))?;
                installs.push(Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine })));
            }
            installs.push(Body::Catalogue(CatalogueCommand::InstallTenancy(InstallTenancy {
                tenancy: tenancy.clone(),
            })));
            for body in installs {
                let answer = self.decide(at, &inner(tenant, Scope::Shard, body))?;
                answer.map_err(|refused| Broken(format!("a shard refused a tenancy: {refused:?}")))?;
            }
        }
        Ok(())
    }

    /// Installs the machine of a start from the catalogue in the shard that lacks it.
    pub(super) fn install(&mut self, home: ShardIx, command: &Command) -> Result<(), Broken> {
        let Body::Session(SessionCommand::Start(start)) = &command.body else {
            return Err(Broken(format!("a machine is missing for {command:?}")));
        };
        for digest in start.machines() {
            let machine = self.shards[CATALOGUE].machine(command.tenant, digest);
            let machine = machine.ok_or_else(|| Broken(format!("the catalogue has no {digest}")))?;
            let install = Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine }));
            let answer = self.decide(home, &inner(command.tenant, Scope::Shard, install))?;
            answer.map_err(|rejection| Broken(format!("a machine was refused: {rejection:?}")))?;
        }
        Ok(())
    }
}

/// A ledger's answer about a command, if it must be asked.
pub(super) type Asked = Result<Option<LimitCheck>, Rejection>;

/// Whether the call holds a reservation, and since when; `None` if no limit applies.
fn held(asked: &Asked) -> Option<(bool, Time)> {
    let check = asked.as_ref().ok()?.as_ref()?;
    Some((matches!(check.outcome, LimitOutcome::Available { reserved: true, .. }), check.at))
}

/// Returns true if more than one ledger was asked.
fn several(asked: &Asked) -> bool {
    let check = asked.as_ref().ok().and_then(Option::as_ref);
    check.is_some_and(|check| by_ledger(&check.rules).len() > 1)
}

/// The ledger's answer that a call carries.
fn attached(command: &Command) -> Option<LimitCheck> {
    if let Body::Policy(PolicyCommand::Authorize(call)) = &command.body {
        call.limits.clone()
    } else if let Body::Approval(ApprovalCommand::DecideGate(decide)) = &command.body {
        decide.limits.clone()
    } else if let Body::Approval(ApprovalCommand::RecordReply(reply)) = &command.body {
        reply.limits.clone()
    } else {
        None
    }
}
