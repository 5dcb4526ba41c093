//! A leader task: relay inner effects to their shards.

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use openraft::async_runtime::WatchReceiver;
use std::collections::BTreeSet;
use std::future::Future;
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
    let mut relay = Relay::default();
    let mut changing = false;
    loop {
        let sleep = {
            let Some(cluster) = cluster.upgrade() else { return };
            let done = round(&shard, &cluster, &mut relay).await;
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
        // A notification is kept, and so are a leadership change and an effect that was carried.
        tokio::select! {
            () = notify.notified() => {}
            Some((due, carried)) = relay.carried.next() => relay.note(&due, carried),
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

/// Begins what is due now, and returns how long there is nothing to do if nothing happens. The error is the one line
/// that the server ends with.
async fn round(shard: &Shard, cluster: &Shards, relay: &mut Relay) -> Result<Duration, String> {
    shard.group().running()?;
    if !shard.leads() {
        relay.stop();
        return Ok(CLOCK_LOOK);
    }
    relay.note_all();
    match relay.begin(shard, cluster).await {
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

/// The entries picked from an index, which is sorted by due time.
struct Picked<'r> {
    found: Vec<Due>,
    max: usize,
    now: Time,
    at: Instant,
    relay: &'r Relay,
}

impl Picked<'_> {
    fn look(&mut self, due: Due) -> ControlFlow<()> {
        if due.at > self.now || self.found.len() >= self.max {
            return ControlFlow::Break(());
        }
        if !self.relay.under_way.contains(&due.key) && !self.relay.refused.rests(&due.key, self.at) {
            self.found.push(due);
        }
        ControlFlow::Continue(())
    }
}

fn concerns_one_row(failure: &Failure) -> bool {
    matches!(failure, Failure::Rejected(_) | Failure::Internal | Failure::Stopped)
}

/// An effect's entry in the index, and what came of carrying it.
type Carried = (Due, Result<(), Failure>);

/// The effects of one shard on their way to other shards, at most [`RELAY_IN_FLIGHT_MAX`]. Each is under way once, and
/// gives its capacity to another one when it has arrived, however long others take.
///
/// Those that are due first are begun first, and they arrive in any order: a ledger that learns of the cost of a call
/// before its confirmation takes both, and each has a request id, so it counts once. What is begun and given up, because
/// another server leads now, is begun again there.
#[derive(Default)]
struct Relay {
    carried: FuturesUnordered<BoxFuture<'static, Carried>>,
    /// The rows of those that are under way.
    under_way: BTreeSet<Key>,
    refused: Refused,
    /// Nothing is begun before this time.
    rests_until: Option<Instant>,
}

impl Relay {
    /// Begins to carry what is due, as far as there is capacity.
    async fn begin(&mut self, shard: &Shard, cluster: &Shards) -> Result<(), Failure> {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let found = self.due(shard);
        if found.is_empty() {
            return Ok(());
        }
        let view = shard.read().await?;
        for due in found {
            let row = view.row(&due.key).map_err(|error| cluster.unreadable(&error))?;
            let Some(Row::Outbox(effect)) = row.as_deref() else { continue };
            let Some(id) = due.key.session_of() else { continue };
            let Some(inner) = inner(&due.key, id, effect) else { continue };
            let ack = command(&due.key, Scope::Session(id), effect, None, ack(effect.number));
            let (from, to) = (shard.clone(), cluster.home(&inner).clone());
            #[cfg(feature = "planted")]
            if planted!(SettleBeforeConfirmLost) && crate::planted::confirms_later(&view, &effect.body) {
                self.start(due, async move { from.submit(ack).await.map(drop) });
                continue;
            }
            self.start(due, async move {
                to.submit(inner).await?;
                from.submit(ack).await.map(drop)
            });
        }
        Ok(())
    }

    fn start(&mut self, due: Due, carries: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        self.under_way.insert(due.key.clone());
        self.carried.push(Box::pin(async move { (due, carries.await) }));
    }

    /// The first due effects that are neither under way nor rest because they were refused; as many as there is capacity
    /// for.
    fn due(&self, shard: &Shard) -> Vec<Due> {
        let rows = shard.read_stale();
        // What was due when it was decided is due now, even if this leader's clock is behind that of an earlier one.
        let clock = rows.row(&Key::clock()).ok().flatten();
        let last = if let Some(Row::Clock(at)) = clock.as_deref() { *at } else { Time(0) };
        let now = shard.now().max(last);
        let max = self.capacity();
        let mut picked = Picked { found: Vec::new(), max, now, at: Instant::now(), relay: self };
        let read = rows.scan(&IndexKey::relay(), None, &mut |entry, _| match IndexKey::due_of(entry) {
            Some(due) => picked.look(due),
            None => ControlFlow::Break(()),
        });
        if let Err(error) = read {
            tracing::warn!(%error, "failed to read the due rows");
        }
        picked.found
    }

    /// How many more may be begun.
    fn capacity(&self) -> usize {
        RELAY_IN_FLIGHT_MAX.saturating_sub(self.under_way.len())
    }

    /// Notes all that have arrived or failed by now.
    fn note_all(&mut self) {
        while let Some(Some((due, carried))) = self.carried.next().now_or_never() {
            self.note(&due, carried);
        }
    }

    /// Notes what came of one effect. A refusal concerns only its own row, as does a target that has failed; after any
    /// other failure nothing is begun for [`LEADER_TICK`].
    fn note(&mut self, due: &Due, carried: Result<(), Failure>) {
        let now = Instant::now();
        self.under_way.remove(&due.key);
        match carried {
            Ok(()) => self.refused.done(&due.key),
            Err(failure) if concerns_one_row(&failure) => drop(self.refused.warn(&due.key, &failure, now)),
            Err(_) => self.rests_until = Some(now + LEADER_TICK),
        }
    }

    /// Gives up what is under way: another server leads, and begins it again.
    fn stop(&mut self) {
        self.carried.clear();
        self.under_way.clear();
        self.rests_until = None;
    }
}

/// A command of the server about an effect.
fn command(key: &Key, scope: Scope, effect: &Effect, request: Option<RequestId>, body: Body) -> Command {
    Command {
        tenant: key.tenant_of(),
        scope,
        request,
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: effect.trace.clone(),
        body,
    }
}

/// What acknowledges an effect that has arrived.
fn ack(number: u64) -> Body {
    Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number }))
}

/// What an effect brings to another shard; `None` if the effect is not for a shard.
fn inner(key: &Key, id: SessionId, effect: &Effect) -> Option<Command> {
    let (process, request, body) = match &effect.body {
        EffectBody::Notice { .. } | EffectBody::Message { .. } | EffectBody::Publish { .. } => return None,
        EffectBody::Confirm { process, call, rules, estimate, at } => {
            let body = Confirm { call: *call, rules: rules.clone(), estimate: *estimate, at: *at };
            (process, body.request(), PolicyCommand::Confirm(body))
        }
        EffectBody::Settle { process, call, rules, cost, at, release } => {
            let (cost, at, release) = (*cost, *at, *release);
            let body = Settle { call: *call, rules: rules.clone(), cost, at, release };
            (process, body.request(id, effect.number), PolicyCommand::Settle(body))
        }
    };
    Some(command(key, Scope::Ledger(process.clone()), effect, Some(request), Body::Policy(body)))
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

    fn due(number: u64) -> Due {
        Due { at: Time(5), key: key(number) }
    }

    /// The entries that are begun next, of an index of these.
    fn picked(relay: &Relay, numbers: impl IntoIterator<Item = u64>, at: Instant) -> Vec<Due> {
        let mut picked = Picked { found: Vec::new(), max: relay.capacity(), now: Time(9), at, relay };
        let _full = numbers.into_iter().try_for_each(|number| picked.look(due(number)));
        picked.found
    }

    /// Runs one round on an index of these rows, of which all but the last are refused. Returns the relayed rows.
    fn carried(relay: &mut Relay, at: Instant) -> Vec<Key> {
        let mut done = Vec::new();
        for due in picked(relay, 0..=REFUSED, at) {
            let long = || Failure::Rejected(Rejection::new(Reason::QuotaExceeded, "too long"));
            let result = if due.key == key(REFUSED) { Ok(()) } else { Err(long()) };
            done.extend(result.is_ok().then(|| due.key.clone()));
            relay.note(&due, result);
        }
        done
    }

    #[test]
    fn rows_that_are_refused_stop_no_others() {
        let (mut relay, at) = (Relay::default(), Instant::now());
        let rounds: Vec<usize> = (0..4).map(|_| carried(&mut relay, at).len()).collect();
        assert_eq!(rounds, [0, 0, 1, 1], "the third round reaches the row that can be done");
        let resting = (0..=REFUSED).filter(|number| relay.refused.rests(&key(*number), at)).count();
        assert_eq!(resting as u64, REFUSED, "refused rows rest");
    }

    #[test]
    fn what_is_not_due_is_not_picked() {
        let relay = Relay::default();
        let mut picked =
            Picked { found: Vec::new(), max: 9, now: Time(4), at: Instant::now(), relay: &relay };
        assert!(picked.look(due(1)).is_break() && picked.found.is_empty());
    }

    #[test]
    fn a_target_that_has_failed_stops_no_other_row() {
        let mut relay = Relay::default();
        let rejected = Failure::Rejected(Rejection::new(Reason::QuotaExceeded, "too long"));
        relay.note(&due(1), Err(rejected));
        relay.note(&due(2), Err(Failure::Stopped));
        assert_eq!(relay.rests_until, None);
        relay.note(&due(3), Err(Failure::Electing));
        assert!(relay.rests_until.is_some(), "a shard without a leader is asked again later");
        let rests = [1, 2, 3].map(|number| relay.refused.rests(&key(number), Instant::now()));
        assert_eq!(rests, [true, true, false]);
    }

    #[test]
    fn an_effect_that_gets_no_answer_holds_only_its_own_capacity() {
        const ALL: u64 = RELAY_IN_FLIGHT_MAX as u64;
        let mut relay = Relay::default();
        relay.start(due(0), std::future::pending());
        for number in 1..ALL {
            relay.start(due(number), async { Ok(()) });
        }
        assert_eq!((relay.capacity(), picked(&relay, ALL..2 * ALL, Instant::now()).len()), (0, 0));
        relay.note_all();
        assert_eq!(relay.capacity(), RELAY_IN_FLIGHT_MAX - 1, "all others have arrived");
        let next = picked(&relay, [0].into_iter().chain(ALL..2 * ALL), Instant::now());
        assert_eq!(next.first().map(|due| due.key.clone()), Some(key(ALL)), "none is under way twice");
        assert_eq!(next.len(), RELAY_IN_FLIGHT_MAX - 1);
        relay.stop();
        assert_eq!(relay.capacity(), RELAY_IN_FLIGHT_MAX);
    }
}
