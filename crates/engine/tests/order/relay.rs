//! The relay of a leader: it carries confirmations and settlements to ledgers, in any order, and acknowledges them.

use switchward_state::delivery::{AckEffect, DeliveryCommand, Effect, EffectBody};
use switchward_state::policy::{Confirm, PolicyCommand, Settle};
use switchward_state::{Body, Command, IndexKey, Key, Row, Scope, View as _};

use crate::message::{Answer, Origin, ShardIx, Task};
use crate::shard::Leader;
use crate::simulation::Simulation;

/// How long an effect is under way until it is relayed again, milliseconds.
const AGAIN_MS: u64 = 900;
/// How long a confirmation is held back by a fault, milliseconds.
const HELD_MS: u64 = 700;
/// Effects that a look begins at most.
const LOOK_MAX: usize = 16;

impl Simulation {
    /// The leader that has begun something, if it still leads.
    pub(crate) fn leader_of(&mut self, task: &Task) -> Option<&mut Leader> {
        let shard = &mut self.shards[task.shard];
        if shard.term == task.term { shard.leader.as_mut() } else { None }
    }

    /// Relays the inner effects that are due and not under way.
    pub(crate) fn relay(&mut self, at: ShardIx) {
        let Some(time) = self.time(at) else { return };
        let mut due = self.shards[at].due(&IndexKey::relay(), time, LOOK_MAX);
        // Nothing promises that effects are relayed in their order.
        if self.rng.once_in(2) {
            due.reverse();
        }
        for due in due {
            let (now, shard) = (self.now, &mut self.shards[at]);
            let term = shard.term;
            let Some(Row::Outbox(effect)) =
                shard.read().and_then(|rows| rows.row(&due.key).unwrap()).as_deref().cloned()
            else {
                continue;
            };
            let Some(leader) = &mut shard.leader else { return };
            if leader.relayed.get(&due.key).is_some_and(|until| now < *until) {
                continue;
            }
            if matches!(effect.body, EffectBody::Confirm { .. }) && self.is_held(at, &due.key) {
                continue;
            }
            if self.note(at, &due.key, now + AGAIN_MS) {
                self.saw("inner effect relayed again");
            }
            let Some(command) = inner(&due.key, &effect) else { continue };
            self.send(Origin::Relay(Task { shard: at, term, key: due.key }), command);
        }
    }

    /// Returns true if a fault holds a confirmation back.
    fn is_held(&mut self, at: ShardIx, key: &Key) -> bool {
        let (now, begins) = (self.now, self.draws(self.plan.confirm_late));
        let Some(leader) = &mut self.shards[at].leader else { return false };
        let until = leader.held.entry(key.clone()).or_insert(if begins { now + HELD_MS } else { now });
        now < *until
    }

    /// An effect is under way. Returns true if it was before.
    fn note(&mut self, at: ShardIx, key: &Key, until: u64) -> bool {
        let leader = self.shards[at].leader.as_mut();
        leader.is_some_and(|leader| leader.relayed.insert(key.clone(), until).is_some())
    }

    /// The ledger has answered: the effect has arrived, or is relayed again.
    pub(crate) fn relayed(&mut self, task: Task, command: &Command, answer: &Answer) {
        let Some(leader) = self.leader_of(&task) else { return };
        if answer.is_err() {
            leader.relayed.remove(&task.key);
            return;
        }
        let (Some(session), Some(number)) = (task.key.session_of(), number(&task.key)) else { return };
        let ack = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number }));
        let ack = Command::of_server(command.tenant, Scope::Session(session), ack);
        self.send(Origin::Relayed(task), ack);
    }
}

/// The number of the effect of a row.
pub(crate) fn number(key: &Key) -> Option<u64> {
    key.rest().get(16..24)?.try_into().ok().map(u64::from_be_bytes)
}

/// What an effect brings to a ledger; `None` if it is not for a shard.
fn inner(key: &Key, effect: &Effect) -> Option<Command> {
    let (process, request, body) = match effect.body.clone() {
        EffectBody::Confirm { process, call, rules, estimate, at } => {
            let confirm = Confirm { call, rules, estimate, at };
            (process, confirm.request(), PolicyCommand::Confirm(confirm))
        }
        EffectBody::Settle { process, call, rules, cost, at, release } => {
            let settle = Settle { call, rules, cost, at, release };
            (process, settle.request(key.session_of()?, effect.number), PolicyCommand::Settle(settle))
        }
        _ => return None,
    };
    let command = Command::of_server(key.tenant_of(), Scope::Ledger(process), Body::Policy(body));
    Some(Command { request: Some(request), ..command })
}
