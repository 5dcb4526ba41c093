//! A leader task: relay inner effects to their shards.

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use std::ops::ControlFlow;
use std::sync::Weak;
use std::time::Duration;
use switchward_machine::{SessionId, Time};
use switchward_state::catalogue::Settings;
use switchward_state::delivery::{AckEffect, DeliveryCommand, Effect, EffectBody};
use switchward_state::policy::{Confirm, PolicyCommand, Settle};
use switchward_state::{Actor, Body, Command, Due, IndexKey, Key, RequestId, Row, Scope, View};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::limits::{CLOCK_LOOK, LEADER_LOOK, LEADER_TICK, RELAY_IN_FLIGHT_MAX};
use crate::refused::Refused;
use crate::shard::Shard;
use crate::shards::Shards;

/// Runs for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    let notify = shard.group().shared.leader_tasks.clone();
    let mut leads = shard.group().raft().server_metrics();
    let mut refused = Refused::default();
    let mut changing = false;
    loop {
        let sleep = {
            let Some(cluster) = cluster.upgrade() else { return };
            let done = round(&shard, &cluster, &mut refused).await;
            if shard.draining() {
                return;
            }
            match done {
                Ok(sleep) => sleep,
                Err(error) => {
                    cluster.stopped(&shard, &error);
                    return;
                }
            }
        };
        // A node reports a leadership change a moment before its metrics show it.
        let sleep = if std::mem::take(&mut changing) { sleep.min(LEADER_LOOK) } else { sleep };
        // A notification is kept, and so is a leadership change.
        tokio::select! {
            () = notify.notified() => {}
            () = tokio::time::sleep(sleep) => {}
            changed = leads.changed() => if changed.is_ok() {
                changing = true;
            } else {
                // The node has stopped: the next round reports it.
                tokio::time::sleep(LEADER_TICK).await;
            },
        }
    }
}

/// Does what is due now, and returns how long there is nothing to do if nothing happens. The error is the one line
/// that the server ends with.
async fn round(shard: &Shard, cluster: &Shards, refused: &mut Refused) -> Result<Duration, String> {
    shard.group().running()?;
    if !shard.leads() {
        return Ok(CLOCK_LOOK);
    }
    match carry(shard, cluster, refused).await {
        Ok(()) if nothing_to_carry(shard) => Ok(CLOCK_LOOK),
        // The next round comes if another server leads, if the shard is overloaded, or if something rests.
        Ok(()) | Err(_) => Ok(LEADER_TICK),
    }
}

fn nothing_to_carry(shard: &Shard) -> bool {
    let mut nothing = true;
    let read = shard.read_stale().scan(&IndexKey::relay(), None, &mut |_, _| {
        nothing = false;
        ControlFlow::Break(())
    });
    nothing && read.is_ok()
}

/// The first due entries of an index, except for those that rest because they were refused.
fn due(shard: &Shard, prefix: &[u8], max: usize, refused: &Refused) -> Vec<Due> {
    let rows = shard.read_stale();
    // What was due when it was decided is due now, even if this leader's clock is behind that of an earlier one.
    let clock = rows.row(&Key::clock()).ok().flatten();
    let last = if let Some(Row::Clock(at)) = clock.as_deref() { *at } else { Time(0) };
    let now = shard.now().max(last);
    let mut picked = Picked { found: Vec::new(), max, now, at: Instant::now(), refused };
    let read = rows.scan(prefix, None, &mut |entry, _| match IndexKey::due_of(entry) {
        Some(due) => picked.look(due),
        None => ControlFlow::Break(()),
    });
    if let Err(error) = read {
        tracing::warn!(%error, "failed to read the due rows");
    }
    picked.found
}

/// The entries picked from an index, which is sorted by due time.
struct Picked<'r> {
    found: Vec<Due>,
    max: usize,
    now: Time,
    at: Instant,
    refused: &'r Refused,
}

impl Picked<'_> {
    fn look(&mut self, due: Due) -> ControlFlow<()> {
        if due.at > self.now || self.found.len() >= self.max {
            return ControlFlow::Break(());
        }
        if !self.refused.rests(&due.key, self.at) {
            self.found.push(due);
        }
        ControlFlow::Continue(())
    }
}

/// Records the results. A refusal concerns only its own row, as does a target that has failed; of other failures the
/// first is returned, after all results have been recorded.
fn noted<T>(
    refused: &mut Refused,
    results: impl IntoIterator<Item = (Due, Result<T, Failure>)>,
) -> Result<Vec<T>, Failure> {
    let (mut done, mut failed, now) = (Vec::new(), None, Instant::now());
    for (due, result) in results {
        match result {
            Ok(reply) => {
                refused.done(&due.key);
                done.push(reply);
            }
            Err(failure) if concerns_one_row(&failure) => drop(refused.warn(&due.key, &failure, now)),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    failed.map_or(Ok(done), Err)
}

fn concerns_one_row(failure: &Failure) -> bool {
    matches!(failure, Failure::Rejected(_) | Failure::Internal | Failure::Stopped)
}

/// Relays effects to the shards that they are for, and acknowledges them when they have arrived. A due effect is in
/// flight once: the next round begins when this one has ended.
async fn carry(shard: &Shard, cluster: &Shards, refused: &mut Refused) -> Result<(), Failure> {
    loop {
        let found = due(shard, &IndexKey::relay(), RELAY_IN_FLIGHT_MAX, refused);
        if found.is_empty() {
            return Ok(());
        }
        let view = shard.read().await?;
        let all = found.iter().map(|due| async {
            let Some(id) = due.key.session_of() else { return Ok(false) };
            match view.row(&due.key) {
                Ok(row) => {
                    let Some(Row::Outbox(effect)) = row.as_deref() else { return Ok(false) };
                    deliver(shard, cluster, &due.key, id, effect).await
                }
                Err(error) => Err(cluster.unreadable(&error)),
            }
        });
        let results = join_all(all).await;
        let carried = noted(refused, found.into_iter().zip(results))?;
        // Effects that are due and cannot be relayed would be found again and again.
        if !carried.contains(&true) {
            return Ok(());
        }
    }
}

/// Delivers one effect to its shard and acknowledges it. Returns false if the effect is not for a shard.
async fn deliver(
    shard: &Shard,
    cluster: &Shards,
    key: &Key,
    id: SessionId,
    effect: &Effect,
) -> Result<bool, Failure> {
    let tenant = key.tenant_of();
    let command = |scope: Scope, request: Option<RequestId>, body: Body| Command {
        tenant,
        scope,
        request,
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: effect.trace.clone(),
        body,
    };
    let inner = match &effect.body {
        EffectBody::Notice { .. } | EffectBody::Message { .. } | EffectBody::Publish { .. } => {
            return Ok(false);
        }
        EffectBody::Confirm { process, call, rules, estimate, at } => {
            let body = Confirm { call: *call, rules: rules.clone(), estimate: *estimate, at: *at };
            command(
                Scope::Ledger(process.clone()),
                Some(body.request()),
                Body::Policy(PolicyCommand::Confirm(body)),
            )
        }
        EffectBody::Settle { process, call, rules, cost, at, release } => {
            let (cost, at, release) = (*cost, *at, *release);
            let body = Settle { call: *call, rules: rules.clone(), cost, at, release };
            let request = Some(body.request(id, effect.number));
            command(Scope::Ledger(process.clone()), request, Body::Policy(PolicyCommand::Settle(body)))
        }
    };
    cluster.submit(inner).await?;
    let ack = command(
        Scope::Session(id),
        None,
        Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: effect.number })),
    );
    shard.submit(ack).await.map(|_| true)
}

#[cfg(test)]
mod tests {
    use switchward_machine::{OpenId, TenantId};
    use switchward_state::{Reason, Rejection};

    use super::*;

    /// More refused effects than a round looks at; after them comes one that is not refused.
    const REFUSED: u64 = 2 * 64 + 44;

    fn key(number: u64) -> Key {
        Key::item(TenantId(1), SessionId::from_key(TenantId(1), "s"), OpenId(number))
    }

    /// Runs one round on an index of these rows, of which all but the last are refused. Returns the relayed rows.
    fn carried(refused: &mut Refused, at: Instant) -> Vec<Key> {
        let mut picked = Picked { found: Vec::new(), max: RELAY_IN_FLIGHT_MAX, now: Time(9), at, refused };
        let mut rows = (0..=REFUSED).map(|number| Due { at: Time(5), key: key(number) });
        let _full = rows.try_for_each(|due| picked.look(due));
        let found = picked.found;
        let answered = |due: Due| {
            let long = || Failure::Rejected(Rejection::new(Reason::QuotaExceeded, "too long"));
            let result = if due.key == key(REFUSED) { Ok(due.key.clone()) } else { Err(long()) };
            (due, result)
        };
        noted(refused, found.into_iter().map(answered)).unwrap()
    }

    #[test]
    fn rows_that_are_refused_stop_no_others() {
        let (mut refused, at) = (Refused::default(), Instant::now());
        let rounds: Vec<usize> = (0..4).map(|_| carried(&mut refused, at).len()).collect();
        assert_eq!(rounds, [0, 0, 1, 1], "the third round reaches the row that can be done");
        let resting = (0..=REFUSED).filter(|number| refused.rests(&key(*number), at)).count();
        assert_eq!(resting as u64, REFUSED, "refused rows rest");
    }

    #[test]
    fn what_is_not_due_is_not_picked() {
        let refused = Refused::default();
        let mut picked =
            Picked { found: Vec::new(), max: 9, now: Time(4), at: Instant::now(), refused: &refused };
        assert!(picked.look(Due { at: Time(5), key: key(1) }).is_break() && picked.found.is_empty());
    }

    #[test]
    fn a_target_that_has_failed_stops_no_other_row() {
        let mut refused = Refused::default();
        let rejected = Failure::Rejected(Rejection::new(Reason::QuotaExceeded, "too long"));
        let due = |number| Due { at: Time(5), key: key(number) };
        let results =
            [(due(1), Err(rejected)), (due(2), Err(Failure::Stopped)), (due(3), Err(Failure::Electing))];
        assert_eq!(noted::<()>(&mut refused, results), Err(Failure::Electing));
        let rests = [1, 2, 3].map(|number| refused.rests(&key(number), Instant::now()));
        assert_eq!(rests, [true, true, false]);
    }
}
