//! A leader task: sleep until the first timer is due, hand out what is due, and fire what the transport does not
//! bring back.

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Duration;
use switchward_machine::Time;
use switchward_state::session::{SessionCommand, Sweep};
use switchward_state::{Body, Command, IndexKey, Key, View};
use tokio::{task::JoinSet, time::Instant};

use super::head::ReadFrom;
use super::{TimerBatch, TimerTransport, due_of};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::failure::Failure;
use crate::limits::{
    CLOCK_LOOK, FIRE_WAIT, LEADER_LOOK, LEADER_TICK, TIMER_BATCHES_MAX, TRANSPORT_ACCEPT_WAIT,
    TRANSPORT_REST, TRANSPORT_REST_MAX, TRANSPORT_WAIT,
};
use crate::shard::Shard;
use crate::shards::Shards;

/// How long a transport that fails rests, each time.
const RESTS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(TRANSPORT_REST)
    .with_max_delay(TRANSPORT_REST_MAX)
    .without_max_times();

/// Runs for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    shard.clock().subscribe(Arc::clone(&shard.timers().notify));
    let mut dispatcher = Dispatcher::of(shard);
    let mut leads = dispatcher.shard.group().raft().server_metrics();
    let mut changing = false;
    loop {
        let Some(transport) = cluster.upgrade().map(|cluster| cluster.transport()) else { return };
        let sleep = dispatcher.round(transport).await;
        if dispatcher.shard.draining() {
            return;
        }
        let notify = dispatcher.shard.timers().notify.clone();
        // A node reports a leadership change a moment before its metrics show it.
        let sleep = if std::mem::take(&mut changing) { sleep.min(LEADER_LOOK) } else { sleep };
        // A notification is kept, and so is a leadership change; the tasks stay in their set.
        tokio::select! {
            () = notify.notified() => {}
            () = tokio::time::sleep(sleep) => {}
            changed = leads.changed() => if changed.is_ok() {
                changing = true;
            } else {
                // The node has stopped: maintenance finds and reports it.
                tokio::time::sleep(LEADER_TICK).await;
            },
            Some(done) = dispatcher.tasks.join_next() => {
                // Whatever stopped the shard has reported it.
                if let Err(Failure::Stopped) = dispatcher.took_note(done) {
                    return;
                }
            }
        }
    }
}

/// The result of a task.
enum Done {
    Read,
    /// A batch was accepted.
    Accepted,
    /// A batch was refused, and fired here.
    Refused(Result<(), Failure>),
    Fired(Result<(), Failure>),
}

struct Dispatcher {
    shard: Shard,
    tasks: JoinSet<Done>,
    /// Batches that are being handed out or fired here.
    sending: usize,
    transport_rests: Option<Instant>,
    /// How long the transport rests when it fails again, without an end.
    rests: ExponentialBackoff,
    /// Batches that had come back by the transport at the last check.
    came: u64,
}

impl Dispatcher {
    fn of(shard: Shard) -> Self {
        Self {
            shard,
            tasks: JoinSet::new(),
            sending: 0,
            transport_rests: None,
            rests: RESTS.build(),
            came: 0,
        }
    }

    /// Does what is due now; returns how long there is nothing to do if nothing happens.
    async fn round(&mut self, transport: Option<Arc<dyn TimerTransport>>) -> Duration {
        match self.lead().await {
            Ok(true) => {}
            Ok(false) => return CLOCK_LOOK,
            Err(_) => return LEADER_TICK,
        }
        let now = Instant::now();
        self.read(now);
        self.check_transport();
        self.give_up(now);
        while self.sending < TIMER_BATCHES_MAX && self.send(now, transport.as_ref()) {}
        self.sleep(now)
    }

    /// Returns true if this server leads and the head is for its term.
    async fn lead(&mut self) -> Result<bool, Failure> {
        let begin = |term| self.shard.timers().head.lock().begin(term);
        let known = self.shard.timers().head.lock().term();
        if !self.shard.leads() {
            if known.is_some() {
                begin(None);
            }
            return Ok(false);
        }
        // Nothing is fired before the term's own blank entry is applied: the rows may be old until then.
        let term = self.shard.term().await?;
        if known != Some(term) {
            let last = self.shard.read_stale().last_decision().unwrap_or_else(|error| {
                tracing::warn!(%error, "failed to read the time of the last decision");
                Time(0)
            });
            continue_from(self.shard.clock(), last)?;
            begin(Some(term));
            self.came = 0;
        }
        Ok(true)
    }

    /// Reads the next part of the index, if it is needed.
    fn read(&mut self, now: Instant) {
        let Some(from) = self.shard.timers().head.lock().begin_read(now) else { return };
        let shard = self.shard.clone();
        self.tasks.spawn(async move {
            let view = shard.read_stale();
            let asked = from.clone();
            let found = blocking(move || entries(&view, &asked)).await.ok().flatten();
            shard.timers().head.lock().end_read(&from, found, Instant::now());
            Done::Read
        });
    }

    /// A transport that has brought something back is trusted again.
    fn check_transport(&mut self) {
        let came = self.shard.timers().counts().came;
        if came != self.came {
            (self.came, self.rests) = (came, RESTS.build());
        }
    }

    fn rest_transport(&mut self, now: Instant) {
        if self.transport_rests.is_none_or(|rests| rests <= now) {
            self.transport_rests = Some(now + self.rests.next().unwrap_or(TRANSPORT_REST_MAX));
        }
    }

    /// Fires timers of lost batches.
    fn give_up(&mut self, now: Instant) {
        let overdue = self.shard.timers().head.lock().overdue(now);
        for (number, by_transport) in overdue {
            if by_transport {
                tracing::warn!(
                    number,
                    "a batch of timers did not come back over the bus; its leader fires it"
                );
                self.rest_transport(now);
            }
            let left = self.shard.timers().head.lock().recall(number);
            self.fire(left);
        }
    }

    /// Hands out what is due, as one batch for the transport and one of the server's own. Returns false if nothing is
    /// due.
    fn send(&mut self, now: Instant, transport: Option<&Arc<dyn TimerTransport>>) -> bool {
        let transport = transport.filter(|_| self.transport_rests.is_none_or(|rests| rests <= now));
        let time = self.shard.now();
        let (taken, batch) = {
            let mut head = self.shard.timers().head.lock();
            let taken = head.take_due(time, now);
            let (true, Some(term)) = (transport.is_some() && !taken.travel.is_empty(), head.term()) else {
                drop(head);
                let any = !taken.travel.is_empty() || !taken.own.is_empty();
                self.fire(taken.travel);
                self.fire(taken.own);
                return any;
            };
            let number = head.launch_by_transport(&taken.travel, now + TRANSPORT_WAIT);
            let timers = taken.travel.clone();
            (taken, TimerBatch { shard: self.shard.number(), term, number, timers })
        };
        if let Some(transport) = transport {
            self.hand_out(Arc::clone(transport), batch);
        }
        self.fire(taken.own);
        true
    }

    /// Gives a batch to the transport; if it is refused, the timers are fired here.
    fn hand_out(&mut self, transport: Arc<dyn TimerTransport>, batch: TimerBatch) {
        let shard = self.shard.clone();
        self.sending += 1;
        self.tasks.spawn(async move {
            let number = batch.number;
            let reason = match tokio::time::timeout(TRANSPORT_ACCEPT_WAIT, transport.hand_out(batch)).await {
                Ok(Ok(())) => return Done::Accepted,
                Ok(Err(refused)) => refused.0,
                Err(_) => {
                    format!("the bus did not accept it within {} ms", TRANSPORT_ACCEPT_WAIT.as_millis())
                }
            };
            tracing::warn!(number, reason, "the bus refused a batch of timers; its leader fires it");
            let (number, left) = {
                let mut head = shard.timers().head.lock();
                let left = head.recall(number);
                (head.launch_here(&left, Instant::now() + FIRE_WAIT), left)
            };
            Done::Refused(fire(&shard, number, left).await)
        });
    }

    /// Fires timers here.
    fn fire(&mut self, entries: Vec<Key>) {
        if entries.is_empty() {
            return;
        }
        let shard = self.shard.clone();
        let number = shard.timers().head.lock().launch_here(&entries, Instant::now() + FIRE_WAIT);
        self.sending += 1;
        self.tasks.spawn(async move { Done::Fired(fire(&shard, number, entries).await) });
    }

    fn took_note(&mut self, done: Result<Done, tokio::task::JoinError>) -> Result<(), Failure> {
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "the task of a batch of timers panicked");
                Done::Fired(Ok(()))
            }
        };
        match done {
            Done::Read => Ok(()),
            Done::Accepted => {
                self.sending = self.sending.saturating_sub(1);
                Ok(())
            }
            Done::Refused(fired) => {
                self.sending = self.sending.saturating_sub(1);
                self.rest_transport(Instant::now());
                fired
            }
            Done::Fired(fired) => {
                self.sending = self.sending.saturating_sub(1);
                fired
            }
        }
    }

    fn sleep(&self, now: Instant) -> Duration {
        let next = self.shard.timers().head.lock().next();
        // If too much is under way, the end of it wakes the dispatcher.
        let sends = self.sending < TIMER_BATCHES_MAX;
        let (due, rested) = (next.due.filter(|_| sends), next.rested.filter(|_| sends));
        let at = [next.at, rested].into_iter().flatten().min();
        let at = at.map_or(CLOCK_LOOK, |at| at.saturating_duration_since(now));
        due.map_or(CLOCK_LOOK, |due| self.shard.clock().patience(due)).min(at)
    }
}

/// Moves the clock on to the shard's last decision. A term begins with that.
///
/// # Errors
/// The clock is not known yet and would lose that time: the term begins later.
fn continue_from(clock: &dyn Clock, last: Time) -> Result<(), Failure> {
    if !clock.is_known() {
        return Err(Failure::Electing);
    }
    clock.not_before(last);
    Ok(())
}

/// Reads entries of the index; `None` if it cannot be read. Blocks.
fn entries(view: &impl View, asked: &ReadFrom) -> Option<Vec<Key>> {
    let mut found = Vec::new();
    let after = asked.after.as_ref().map(Key::as_bytes);
    let read = view.scan(&IndexKey::due(), after, &mut |entry, _| {
        found.push(entry.clone());
        if found.len() < asked.max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    match read {
        Ok(()) => Some(found),
        Err(error) => {
            tracing::error!(%error, "failed to read the due timers");
            None
        }
    }
}

/// Fires the timers of an attempt, in their order, and records each result.
///
/// # Errors
/// The shard has stopped.
pub(crate) async fn fire(shard: &Shard, number: u64, entries: Vec<Key>) -> Result<(), Failure> {
    let all = entries.into_iter().map(|entry| async {
        let result = match due_of(&entry) {
            Some(due) => {
                let command = Command::of_server(
                    due.key.tenant_of(),
                    due.scope(),
                    Body::Session(SessionCommand::Sweep(Sweep { key: due.key })),
                );
                shard.submit(command).await.map(drop)
            }
            None => Ok(()),
        };
        (entry, result)
    });
    let results = join_all(all).await;
    shard.timers().settle(number, results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{AgreedClock, ClockOffset, Comparison, ManualClock, judge};

    const BEGIN: Time = Time(1_750_064_400_000);

    #[test]
    fn a_term_begins_once_the_clock_is_known_and_then_continues_from_the_last_decision() {
        let last = BEGIN.after_ms(60_000);
        let clock = AgreedClock::over(Arc::new(ManualClock::new(BEGIN)), Comparison::UNKNOWN);
        for _ in 0..2 {
            assert_eq!(continue_from(&clock, last), Err(Failure::Electing));
            assert_eq!(clock.now(), BEGIN);
        }
        clock.compared(judge(&[ClockOffset { server: 2, ms: 0 }], 3), clock.reading());
        assert_eq!(continue_from(&clock, last), Ok(()));
        assert_eq!(clock.now(), last);
        // An earlier decision, or none, changes nothing.
        assert_eq!(continue_from(&clock, Time(0)), Ok(()));
        assert_eq!(clock.now(), last);
    }
}
