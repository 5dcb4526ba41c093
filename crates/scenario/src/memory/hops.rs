//! Commands that need more than one shard: a call that a limit counts, and a machine that a shard lacks.

use switchward_engine::policy::{Ledgers, Plan, plan};
use switchward_machine::{Micros, TenantId};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, InstallTenancy, Settings};
use switchward_state::policy::{
    LedgerRule, LimitCheck, LimitOutcome, PolicyCommand, Reserve, Settle, by_ledger, check_limits,
};
use switchward_state::session::SessionCommand;
use switchward_state::{Actor, Body, Command, Key, Reason, Rejection, Reply, Row, Scope, View};

use super::{Asking, CATALOGUE, Memory, Moment, Observer, ShardIx};
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
        address: None,
        body,
    }
}

impl<O: Observer> Memory<O> {
    /// Executes a caller's command over as many shards as it needs. Its effects are not relayed.
    ///
    /// # Errors
    /// An invariant of the system is broken; a refusal is not an error.
    pub fn execute(&mut self, mut command: Command) -> Result<Answer, Broken> {
        for round in 0..PLANS_MAX {
            let decisions = self.decisions();
            let asked = self.ask_ledger(&command)?;
            let asking = Asking { command: &command, round, decisions, answer: &asked };
            O::observe(self, Moment::LimitsChecked(&asking))?;
            match asked {
                Err(rejection) => return Ok(Err(rejection)),
                Ok(check) => command.take_along(check),
            }
            O::observe(self, Moment::Deciding(&command))?;
            let answer = self.decide_at_home(&command)?;
            O::observe(self, Moment::Decided(&command, &answer))?;
            match &answer {
                Err(rejection) if rejection.reason == Reason::LimitsStale => {}
                Ok(_) | Err(_) => return Ok(answer),
            }
        }
        Err(Broken(format!("the limits of a call changed {PLANS_MAX} times: {command:?}")))
    }

    /// Asks the ledgers if a limit applies to the command, and reserves in them if it counts.
    ///
    /// # Errors
    /// As [`Memory::execute`].
    pub fn ask_ledger(&mut self, command: &Command) -> Result<LimitAnswer, Broken> {
        let plan = self.plan(command)?;
        match plan {
            Plan::Direct => Ok(Ok(None)),
            Plan::Look(Ledgers { rules, estimate, .. }) => {
                Ok(Ok(Some(self.remaining_of_all(command.tenant, &rules, estimate)?)))
            }
            Plan::Reserve(ledgers) => self.reserve(command.tenant, ledgers),
        }
    }

    /// The capacity that is left in all ledgers of these rules, without reserving.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn remaining_of_all(
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
    ///
    /// # Errors
    /// As [`Memory::execute`].
    pub fn reserve(&mut self, tenant: TenantId, ledgers: Ledgers) -> Result<LimitAnswer, Broken> {
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

    /// The ledgers that must be asked before a command is decided.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn plan(&self, command: &Command) -> Result<Plan, Broken> {
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

/// The ledgers' answer about a command; `None` if they need not be asked.
pub type LimitAnswer = Result<Option<LimitCheck>, Rejection>;
