//! A leader task: relay inner effects to their shards.

mod targets;
#[cfg(test)]
mod tests;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use openraft::async_runtime::WatchReceiver;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Weak;
use std::time::Duration;
use switchward_machine::{SessionId, Time};
use switchward_state::catalogue::Settings;
use switchward_state::delivery::{AckEffect, DeliveryCommand, Effect, EffectBody};
use switchward_state::policy::{Confirm, PolicyCommand, Settle};
use switchward_state::{Actor, Body, Command, Due, IndexKey, Key, RequestId, Row, Scope, View, ViewError};
use tokio::time::Instant;

use crate::failure::Failure;
use crate::limits::{CLOCK_LOOK, LEADER_LOOK, LEADER_TICK, RELAY_IN_FLIGHT_MAX, RELAY_READ_MAX};
use crate::refused::Refused;
use crate::shard::Shard;
use crate::shards::Shards;
use crate::view::StateView;
use targets::Targets;

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
            Some((effect, carried)) = relay.carried.next() => relay.note(&effect, carried),
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

/// An effect that is due, and the group of the shard that it is for.
#[derive(Debug)]
struct DueEffect {
    due: Due,
    target: u64,
}

/// The entries picked from an index, which is sorted by due time.
struct Picked<'r> {
    found: Vec<DueEffect>,
    /// How many of these are for each target.
    by_target: BTreeMap<u64, usize>,
    /// Effects whose targets were read, and which get no capacity now.
    passed_over: Vec<(Key, u64)>,
    /// How many targets were read.
    reads: usize,
    /// Why a row could not be read.
    unreadable: Option<ViewError>,
    max: usize,
    now: Time,
    at: Instant,
    relay: &'r Relay,
}

impl<'r> Picked<'r> {
    /// None so far, of what is due at `now`.
    fn none(relay: &'r Relay, now: Time, at: Instant) -> Self {
        Self {
            found: Vec::new(),
            by_target: BTreeMap::new(),
            passed_over: Vec::new(),
            reads: 0,
            unreadable: None,
            max: relay.capacity(),
            now,
            at,
            relay,
        }
    }

    /// Picks an entry if it may be begun now. `read` returns its target, or `None` if it has none.
    fn look(
        &mut self,
        due: Due,
        read: impl FnOnce(&Key) -> Result<Option<u64>, ViewError>,
    ) -> ControlFlow<()> {
        if due.at > self.now || self.found.len() >= self.max {
            return ControlFlow::Break(());
        }
        if self.relay.under_way.contains(&due.key) || self.relay.refused.rests(&due.key, self.at) {
            return ControlFlow::Continue(());
        }
        if let Some(target) = self.relay.targets.of(&due.key) {
            if self.admits(target) {
                self.pick(due, target);
            }
            return ControlFlow::Continue(());
        }
        if self.reads >= RELAY_READ_MAX {
            return ControlFlow::Break(());
        }
        self.reads += 1;
        match read(&due.key) {
            Ok(Some(target)) if self.admits(target) => self.pick(due, target),
            Ok(Some(target)) => self.passed_over.push((due.key, target)),
            Ok(None) => {}
            Err(error) => {
                self.unreadable = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn admits(&self, target: u64) -> bool {
        let picked = self.by_target.get(&target).copied().unwrap_or(0);
        self.relay.targets.admits(target, picked, self.at)
    }

    fn pick(&mut self, due: Due, target: u64) {
        *self.by_target.entry(target).or_default() += 1;
        self.found.push(DueEffect { due, target });
    }
}

fn concerns_one_row(failure: &Failure) -> bool {
    matches!(failure, Failure::Rejected(_) | Failure::Internal | Failure::Stopped)
}

/// What failed when an effect was carried.
#[derive(Debug)]
enum NotCarried {
    /// The shard that it is for.
    Target(Failure),
    /// The shard that it comes from, which could not record that the effect has arrived.
    Own(Failure),
}

/// An effect, and what came of carrying it.
type Carried = (DueEffect, Result<(), NotCarried>);

/// The effects of one shard on their way to other shards, at most [`RELAY_IN_FLIGHT_MAX`]. Each is under way once, and
/// gives its capacity to another one when it has arrived, however long others take. A target that takes none leaves
/// capacity to the other targets.
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
    targets: Targets,
    /// Nothing is begun before this time.
    rests_until: Option<Instant>,
}

impl Relay {
    /// Begins to carry what is due, as far as there is capacity.
    async fn begin(&mut self, shard: &Shard, cluster: &Shards) -> Result<(), Failure> {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let found = self.due(shard, cluster).map_err(|error| cluster.unreadable(&error))?;
        if found.is_empty() {
            return Ok(());
        }
        let view = shard.read().await?;
        for effect in found {
            self.carry(shard, cluster, &view, effect)?;
        }
        Ok(())
    }

    /// Begins to carry one effect, if it is still there.
    fn carry(
        &mut self,
        shard: &Shard,
        cluster: &Shards,
        view: &StateView,
        of: DueEffect,
    ) -> Result<(), Failure> {
        let key = of.due.key.clone();
        let row = view.row(&key).map_err(|error| cluster.unreadable(&error))?;
        let Some(Row::Outbox(effect)) = row.as_deref() else { return Ok(()) };
        let Some(id) = key.session_of() else { return Ok(()) };
        let Some(inner) = inner(&key, id, effect) else { return Ok(()) };
        let ack = command(&key, Scope::Session(id), effect, None, ack(effect.number));
        let (from, to) = (shard.clone(), cluster.home(&inner).clone());
        let acknowledges = async move { from.submit(ack).await.map(drop).map_err(NotCarried::Own) };
        #[cfg(feature = "planted")]
        if planted!(SettleBeforeConfirmLost) && crate::planted::confirms_later(view, &effect.body) {
            self.start(of, acknowledges);
            return Ok(());
        }
        self.start(of, async move {
            to.submit(inner).await.map_err(NotCarried::Target)?;
            acknowledges.await
        });
        Ok(())
    }

    fn start(
        &mut self,
        effect: DueEffect,
        carries: impl Future<Output = Result<(), NotCarried>> + Send + 'static,
    ) {
        self.under_way.insert(effect.due.key.clone());
        self.targets.begin(&effect.due.key, effect.target);
        self.carried.push(Box::pin(async move { (effect, carries.await) }));
    }

    /// The first due effects that are neither under way nor rest because they were refused, and whose targets take more;
    /// as many as there is capacity for.
    ///
    /// # Errors
    /// An effect's row cannot be read.
    fn due(&mut self, shard: &Shard, cluster: &Shards) -> Result<Vec<DueEffect>, ViewError> {
        let rows = shard.read_stale();
        let now = rows.due_by(shard.now())?;
        let target = |key: &Key| target(cluster, &rows, key);
        let mut picked = Picked::none(self, now, Instant::now());
        let read = rows.scan(&IndexKey::relay(), None, &mut |entry, _| match IndexKey::due_of(entry) {
            Some(due) => picked.look(due, target),
            None => ControlFlow::Break(()),
        });
        if let Err(error) = read {
            tracing::warn!(%error, "failed to read the due rows");
        }
        let Picked { found, passed_over, unreadable, .. } = picked;
        self.targets.pass_over(passed_over);
        unreadable.map_or(Ok(found), Err)
    }

    /// How many more may be begun.
    fn capacity(&self) -> usize {
        RELAY_IN_FLIGHT_MAX.saturating_sub(self.under_way.len())
    }

    /// Notes all that have arrived or failed by now.
    fn note_all(&mut self) {
        while let Some(Some((effect, carried))) = self.carried.next().now_or_never() {
            self.note(&effect, carried);
        }
    }

    /// Notes what came of one effect. A refusal concerns only its own row, as does a target that has failed. Any other
    /// failure of a target concerns that target; one of this shard stops all, and nothing is begun for [`LEADER_TICK`].
    fn note(&mut self, effect: &DueEffect, carried: Result<(), NotCarried>) {
        let (now, key, target) = (Instant::now(), &effect.due.key, effect.target);
        self.under_way.remove(key);
        self.targets.end(target);
        match carried {
            Ok(()) => {
                self.refused.done(key);
                self.targets.answered(target);
            }
            Err(NotCarried::Target(failure) | NotCarried::Own(failure)) if concerns_one_row(&failure) => {
                let _wait = self.refused.warn(key, &failure, now);
            }
            Err(NotCarried::Target(_)) => self.targets.rest(target, now),
            Err(NotCarried::Own(_)) => {
                self.targets.answered(target);
                self.rests_until = Some(now + LEADER_TICK);
            }
        }
    }

    /// Gives up what is under way: another server leads, and begins it again.
    fn stop(&mut self) {
        self.carried.clear();
        self.under_way.clear();
        self.targets = Targets::default();
        self.rests_until = None;
    }
}

/// The group of the shard that an effect is for; `None` if it is for no shard, or is no longer there.
fn target(cluster: &Shards, rows: &StateView, key: &Key) -> Result<Option<u64>, ViewError> {
    let row = rows.row(key)?;
    let Some(Row::Outbox(effect)) = row.as_deref() else { return Ok(None) };
    let Some(id) = key.session_of() else { return Ok(None) };
    Ok(inner(key, id, effect).map(|inner| cluster.home(&inner).number()))
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
        address: None,
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
