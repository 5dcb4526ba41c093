//! Tasks of the server itself: it relays effects between shards, and sweeps what has lapsed.

use std::ops::ControlFlow;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::delivery::{AckEffect, DeliveryCommand, Effect, EffectBody};
use switchward_state::policy::{Confirm, PolicyCommand, Settle};
use switchward_state::session::{SessionCommand, Sweep};
use switchward_state::{Body, Command, Due, IndexKey, Scope, View};

use super::hops::inner;
use super::{Memory, Moment, Observer, ShardIx};
use crate::limits::{RELAYS_MAX, SWEEPS_MAX};
use crate::system::Broken;

impl<O: Observer> Memory<O> {
    /// Relays inner effects until none is left.
    pub(super) fn carry(&mut self) -> Result<(), Broken> {
        for _ in 0..RELAYS_MAX {
            let Some((at, due)) = self.first(&IndexKey::relay(), self.now)? else { return Ok(()) };
            let effect = self.shards[at].effect(&due.key);
            let effect = effect.ok_or_else(|| Broken("an entry of the relay index has no effect".into()))?;
            let id = due.key.session_of().ok_or_else(|| Broken("an effect has no session".into()))?;
            let tenant = due.key.tenant_of();
            let command = relayed(tenant, id, &effect);
            let command = command.ok_or_else(|| Broken("a notice is in the relay index".into()))?;
            let home = self.home(tenant, &command.scope);
            O::observe(self, Moment::Relaying(home, &command))?;
            self.done(home, &command)?;
            O::observe(self, Moment::Relayed(home, &command))?;
            let ack = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: effect.number }));
            self.done(at, &inner(tenant, Scope::Session(id), ack))?;
        }
        Err(Broken(format!("{RELAYS_MAX} effects were relayed, and there are more")))
    }

    /// Sweeps what falls due up to this time, earliest first, each at its own time.
    pub(super) fn sweep(&mut self, to: Time) -> Result<(), Broken> {
        for _ in 0..SWEEPS_MAX {
            let Some((at, due)) = self.first(&IndexKey::due(), to)? else { return Ok(()) };
            let sweep = Body::Session(SessionCommand::Sweep(Sweep { key: due.key.clone() }));
            let sweep = inner(due.key.tenant_of(), due.scope(), sweep);
            if due.at > self.now {
                self.now = Time(due.at.0 - 1);
                O::observe(self, Moment::AlmostDue(at, &sweep))?;
            }
            self.now = self.now.max(due.at);
            O::observe(self, Moment::Due(at, &due))?;
            self.done(at, &sweep)?;
            O::observe(self, Moment::Swept(at, &due))?;
            self.carry()?;
            O::observe(self, Moment::Settled(at, &sweep))?;
            if self.first(&IndexKey::due(), to)? == Some((at, due.clone())) {
                return Err(Broken(format!("a sweep at {:?} left a due row: {due:?}", self.now)));
            }
        }
        Err(Broken(format!("{SWEEPS_MAX} rows were swept, and there are more")))
    }

    /// Executes a command of the server itself, which is never refused.
    fn done(&mut self, at: ShardIx, command: &Command) -> Result<(), Broken> {
        match self.decide(at, command)? {
            Ok(_) => Ok(()),
            Err(rejection) => Err(Broken(format!("{command:?} was refused: {rejection:?}"))),
        }
    }

    /// The earliest entry of an index of all shards, if it is due by then.
    fn first(&self, prefix: &[u8], by: Time) -> Result<Option<(ShardIx, Due)>, Broken> {
        let mut first: Option<(ShardIx, Due)> = None;
        for (at, shard) in self.shards.iter().enumerate() {
            shard.scan(prefix, None, &mut |entry, _| {
                if let Some(due) = IndexKey::due_of(entry) {
                    let earlier = first.as_ref().is_none_or(|(_, known)| due.at < known.at);
                    if due.at <= by && earlier {
                        first = Some((at, due));
                    }
                }
                ControlFlow::Break(())
            })?;
        }
        Ok(first)
    }
}

/// The command that relays an effect to its ledger; `None` for effects to people. Its request id identifies a second
/// delivery.
fn relayed(tenant: TenantId, id: SessionId, effect: &Effect) -> Option<Command> {
    Some(match &effect.body {
        EffectBody::Notice { .. } | EffectBody::Message { .. } | EffectBody::Publish { .. } => return None,
        EffectBody::Confirm { process, call, rules, estimate, at } => {
            let body = Confirm { call: *call, rules: rules.clone(), estimate: *estimate, at: *at };
            let request = Some(body.request());
            Command {
                request,
                ..inner(tenant, Scope::Ledger(process.clone()), Body::Policy(PolicyCommand::Confirm(body)))
            }
        }
        EffectBody::Settle { process, call, rules, cost, at, release } => {
            let (call, rules, cost) = (*call, rules.clone(), *cost);
            let body = Settle { call, rules, cost, at: *at, release: *release };
            let request = Some(body.request(id, effect.number));
            Command {
                request,
                ..inner(tenant, Scope::Ledger(process.clone()), Body::Policy(PolicyCommand::Settle(body)))
            }
        }
    })
}
