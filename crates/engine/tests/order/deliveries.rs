//! Delivery workers: effects for the outside are published by leaders, attempted, and reported with their outcome.

use std::ops::ControlFlow;
use switchward_machine::{DeliveryReason, Time};
use switchward_state::delivery::{
    AckEffect, Attempt, DeferEffect, DeliveryCommand, DeliveryDetail, Effect, FailEffect, FailureCode,
};
use switchward_state::{Body, Command, Due, IndexKey, Key, Row, Scope, View as _};

use crate::effects::{EffectId, words};
use crate::message::{Attempted, Origin, ShardIx, Task};
use crate::shard::Published;
use crate::simulation::{Checked, Event, Simulation};

/// How long an effect is with a worker until it is published again, milliseconds.
const LOST_MS: u64 = 1_500;
/// The time after which the report of a failure comes again at the latest, milliseconds: before the next round is over.
const REPORTED_MS: u64 = 80;
/// Failed attempts of a round before the last one, whose failure makes a dead letter.
const ATTEMPTS_MAX: u32 = 1;

impl Simulation {
    /// Publishes the effects that are due and not with a worker.
    pub(crate) fn publish(&mut self, at: ShardIx) -> Checked {
        let Some(time) = self.time(at) else { return Ok(()) };
        for due in self.deliveries(at, time) {
            let Some(effect) = self.effect(at, &due.key) else { return Err(format!("{due:?} is no effect")) };
            let (now, term) = (self.now, self.shards[at].term);
            let task = Task { shard: at, term, key: due.key.clone() };
            let attempted = Attempted { task, number: effect.number, attempt: effect.attempt() };
            let Some(leader) = &mut self.shards[at].leader else { return Ok(()) };
            let is_out = |out: &Published| now < out.until && out.attempted.attempt == attempted.attempt;
            if leader.published.get(&due.key).is_some_and(is_out) {
                continue;
            }
            let published = Published { attempted: attempted.clone(), until: now + LOST_MS };
            leader.published.insert(due.key, published);
            if self.draws(self.plan.attempt_twice) {
                self.saw("attempt made twice");
                let delay = self.rng.between(5, 900);
                self.after(delay, Event::Attempted(attempted.clone()));
            }
            let is_late = self.draws(self.plan.attempt_late);
            let delay = if is_late { self.rng.between(300, 2_500) } else { self.rng.between(5, 100) };
            self.after(delay, Event::Attempted(attempted));
        }
        Ok(())
    }

    /// The effects that may go out by then.
    fn deliveries(&self, at: ShardIx, by: Time) -> Vec<Due> {
        let mut found = Vec::new();
        let Some(rows) = self.shards[at].read() else { return found };
        let look = &mut |entry: &Key, _: &_| {
            found.extend(IndexKey::queued_of(entry).filter(|due| due.at <= by));
            ControlFlow::Continue(())
        };
        rows.scan(&IndexKey::deliveries(), None, look).unwrap();
        found
    }

    fn effect(&self, at: ShardIx, key: &Key) -> Option<Effect> {
        match self.shards[at].read()?.row(key).unwrap().as_deref() {
            Some(Row::Outbox(effect)) => Some(effect.clone()),
            _ => None,
        }
    }

    /// A worker attempts to deliver an effect, and reports the outcome.
    pub(crate) fn attempted(&mut self, attempted: Attempted) -> Checked {
        let Attempted { task, number, attempt } = attempted;
        let Some(session) = task.key.session_of() else { return Err(format!("{task:?} has no session")) };
        let id = EffectId { session, number };
        match self.oracle.effects.next(id) {
            None => self.saw("outcome after its effect"),
            Some(next) if next.round != attempt.round => self.saw("outcome of an earlier round"),
            Some(next) if next != attempt => self.saw("outcome of an earlier attempt"),
            Some(_) => {}
        }
        let is_failed = self.draws(self.plan.failing);
        let body = if is_failed {
            self.saw("attempt failed");
            self.failed(number, attempt)
        } else {
            self.oracle.effects.receive(id);
            DeliveryCommand::AckEffect(AckEffect { number })
        };
        let command = Command::of_server(task.key.tenant_of(), Scope::Session(session), Body::Delivery(body));
        if is_failed {
            self.failures.insert(id, (attempt, command.clone()));
        }
        self.send(Origin::Outcome(task), command);
        Ok(())
    }

    /// A dead letter was sent again: by a fault, the report of its failure arrives once more.
    pub(crate) fn report_again(&mut self, id: EffectId) {
        let (Some(next), Some((attempt, report))) = (self.oracle.effects.next(id), self.failures.get(&id))
        else {
            return;
        };
        let (is_earlier, report) = (attempt.round != next.round, report.clone());
        if is_earlier && self.draws(self.plan.report_again) {
            self.saw("outcome of an earlier round");
            let delay = self.rng.between(1, REPORTED_MS);
            self.arrives_after(delay, Origin::Nobody, report);
        }
    }

    /// The report of an attempt that has failed: another one follows, or none.
    fn failed(&mut self, number: u64, attempt: Attempt) -> DeliveryCommand {
        let code = FailureCode::Attempt(DeliveryReason::NameUnusable);
        let detail = DeliveryDetail::quote(words(attempt));
        if attempt.number >= ATTEMPTS_MAX {
            let round = Some(attempt.round);
            return DeliveryCommand::FailEffect(FailEffect { number, code, detail, round });
        }
        let (wait_ms, made) = (self.rng.between(0, 400), !self.rng.once_in(4));
        DeliveryCommand::DeferEffect(DeferEffect { number, attempt, wait_ms, code, detail, made })
    }
}
