//! The loop of a shard: drain the queue, decide, write one entry, answer.
//!
//! A command that panics or breaks what must hold costs its caller an internal failure and nobody else anything: its
//! batch is halved until it is alone.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use futures::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use switchward_engine::{Decided, Stamp, decide_while};
use switchward_state::{Command, Reason, Rejection, Reply};
use switchward_store::Disk;
use tokio::sync::{oneshot, watch};
use tracing::{Instrument as _, Span, debug_span};

use crate::clock::{Clock, instant};
use crate::evolved::{caught, check_entry, of_panic};
use crate::failure::Failure;
use crate::group::Group;
use crate::halt::Halt;
use crate::leadership::Leadership;
use crate::limits::{BATCH_COMMANDS_MAX, DECISION_BYTES_MAX, DECISION_BYTES_WANTED, DISK_WAIT, FLUSH_WAIT};
use crate::metrics::ShardMetrics;
use crate::propose::{Proposer, Unwritten};
use crate::queue::{Exit, Job};
use crate::shared::PendingDecision;
use crate::traces::TRACES;
use crate::types::Payload;

/// The only task that decides a shard's commands.
pub(crate) struct DecideLoop {
    group: Group,
    clock: Arc<dyn Clock>,
    leadership: Arc<Leadership>,
    proposer: Proposer,
    halt: Halt,
    disk: Arc<Disk>,
    draining: watch::Receiver<bool>,
}

type Answers = Vec<Result<Reply, Rejection>>;

/// The caller of a command.
type Waiting = (oneshot::Sender<Result<Reply, Failure>>, Span, Instant);

/// Why a batch has no answers.
enum Unanswered {
    /// The decision is too long for one entry; the first N commands make a shorter one.
    Long(usize),
    /// Nothing happened: a command cannot be decided, or its decision cannot be applied.
    Undecidable(String),
    /// Nothing happened.
    Failed(Failure),
    /// The entry of the first N commands may be committed or not; nothing happened to the others.
    Unknown(usize),
    /// The same, and the group has stopped.
    Lost(usize),
}

impl DecideLoop {
    pub(crate) fn new(
        group: Group,
        clock: Arc<dyn Clock>,
        leadership: Arc<Leadership>,
        halt: Halt,
        disk: Arc<Disk>,
        draining: watch::Receiver<bool>,
    ) -> Self {
        let proposer = Proposer::new(group.clone());
        Self { group, clock, leadership, proposer, halt, disk, draining }
    }

    /// Runs until every handle is gone, until everything that was queued before draining is answered, or until it
    /// stops.
    pub(crate) async fn run(mut self, jobs: Exit) {
        let mut draining = self.draining.clone();
        let (mut batch, mut open) = (Vec::with_capacity(BATCH_COMMANDS_MAX), true);
        loop {
            // Both futures may be dropped while they wait: a job stays in its queue, and draining stays true.
            tokio::select! {
                () = jobs.take(BATCH_COMMANDS_MAX, &mut batch) => if batch.is_empty() { return },
                _ = draining.wait_for(|draining| *draining), if open => {
                    jobs.close();
                    open = false;
                    continue;
                }
            }
            self.refuse_unconfirmed(&mut batch);
            if batch.is_empty() {
                continue;
            }
            let span = self.span(&batch);
            let _deciding = Arc::clone(&self.group.shared.deciding).lock_owned().await;
            if self.serve(batch.drain(..), &jobs).instrument(span).await == Err(Failure::Stopped) {
                // The waiting callers learn it from the queue, which is dropped with this.
                return;
            }
        }
    }

    /// Answers the decisions about gates of a batch with a failure while the shard may not know who was removed.
    fn refuse_unconfirmed(&self, batch: &mut Vec<Job>) {
        let decides = |job: &Job| job.command.body.decides_gate();
        if !batch.iter().any(decides) || self.group.shared.tenancies.are_confirmed() {
            return;
        }
        for job in batch.extract_if(.., |job| decides(job)) {
            let _gone = job.answer.send(Err(Failure::Unconfirmed));
        }
    }

    /// The span of a batch: it belongs to the trace of its first command, and follows from the others'.
    fn span(&self, batch: &[Job]) -> Span {
        let shard = self.group.shared.state.group().0;
        let first = batch.first().and_then(|job| job.span.id());
        let span = debug_span!(target: TRACES, parent: first, "shard.batch", shard, commands = batch.len());
        if span.is_disabled() {
            return span;
        }
        for job in batch.iter().skip(1) {
            span.follows_from(job.span.id());
        }
        span
    }

    /// Answers a batch, or only its first commands if their decision fills one entry; the rest is queued again.
    async fn serve(&mut self, batch: impl Iterator<Item = Job>, jobs: &Exit) -> Result<(), Failure> {
        let (mut commands, mut waiting): (Vec<Arc<Command>>, Vec<Waiting>) =
            batch.map(|job| (job.command, (job.answer, job.span, job.since))).unzip();
        loop {
            match self.caught_batch(&commands, jobs).await {
                Ok(results) => {
                    give_back(jobs, &mut commands, &mut waiting, results.len());
                    let since = waiting.iter().map(|(_, _, since)| *since);
                    jobs.answered(commands.iter().map(|command| command.tenant).zip(since));
                    for ((waiting, ..), result) in waiting.into_iter().zip(results) {
                        // A caller that has gone finds the reply under the same request id.
                        let _gone = waiting.send(result.map_err(Failure::Rejected));
                    }
                    return Ok(());
                }
                Err(Unanswered::Long(middle)) => give_back(jobs, &mut commands, &mut waiting, middle),
                // Halves until the command that did it is alone.
                Err(Unanswered::Undecidable(_)) if commands.len() > 1 => {
                    let middle = commands.len() / 2;
                    give_back(jobs, &mut commands, &mut waiting, middle);
                }
                Err(Unanswered::Undecidable(why)) => {
                    let span = waiting.first().map_or_else(Span::none, |(_, span, _)| span.clone());
                    span.in_scope(|| self.report(&commands, &why));
                    fail(waiting, &Failure::Internal);
                    return Ok(());
                }
                Err(Unanswered::Failed(failure)) => {
                    fail(waiting, &failure);
                    return if failure == Failure::Stopped { Err(failure) } else { Ok(()) };
                }
                Err(Unanswered::Unknown(begun)) => {
                    give_back(jobs, &mut commands, &mut waiting, begun);
                    fail(waiting, &Failure::OutcomeUnknown);
                    return Ok(());
                }
                Err(Unanswered::Lost(begun)) => {
                    give_back(jobs, &mut commands, &mut waiting, begun);
                    fail(waiting, &Failure::OutcomeUnknown);
                    return Err(Failure::Stopped);
                }
            }
        }
    }

    /// Decides as many of the commands as a batch may have now, and charges their tenants for the time.
    ///
    /// # Errors
    /// A command panics, or breaks what must hold: the working copies are gone, and nothing has happened.
    fn decide(&self, commands: &[Arc<Command>], jobs: &Exit) -> Result<Decided, String> {
        let allowance = jobs.allowance();
        let commands = allowance.first(commands);
        let begun = instant();
        let mut ends = Vec::with_capacity(commands.len());
        let decided = caught(|| {
            #[cfg(test)]
            tests::strike(commands)?;
            let stamp = Stamp { now: self.clock.now(), level: self.group.shared.level.get() };
            let decided = decide_while(commands, &self.group.shared.view(), stamp, &mut |bytes| {
                let now = instant();
                ends.push(now);
                now - begun < allowance.time && bytes < allowance.bytes
            });
            decided.map_err(|error| error.to_string())
        });
        if decided.is_err() && ends.len() < commands.len() {
            ends.push(instant());
        }
        let mut last = begun;
        jobs.charge(commands.iter().zip(ends).map(|(command, end)| {
            let took = end - last;
            last = end;
            (command, took)
        }));
        decided
    }

    /// What a batch comes to that cannot be decided: only a failure of the state store stops the server.
    fn undecidable(&self, why: String) -> Unanswered {
        if self.group.shared.is_unreadable() {
            return Unanswered::Failed(self.stop(&why));
        }
        Unanswered::Undecidable(why)
    }

    fn report(&self, commands: &[Arc<Command>], why: &str) {
        let Some(command) = commands.first() else { return };
        let (shard, tenant, scope) = (self.group.shared.state.group().0, command.tenant.0, &command.scope);
        tracing::error!(shard, tenant, ?scope, why, "failed to decide a command; nothing was changed");
    }

    /// Answers a batch. If it panics after its decision was handed to the log, nobody knows whether it is committed.
    async fn caught_batch(&mut self, commands: &[Arc<Command>], jobs: &Exit) -> Result<Answers, Unanswered> {
        let answers = AssertUnwindSafe(self.batch(commands, jobs)).catch_unwind().await;
        answers.unwrap_or_else(|panic| {
            self.group.fail(of_panic(&*panic));
            Err(Unanswered::Lost(commands.len()))
        })
    }

    /// Answers the commands, or the first of them if their decision fills one entry.
    async fn batch(&mut self, commands: &[Arc<Command>], jobs: &Exit) -> Result<Answers, Unanswered> {
        self.log_within_bound().await;
        let term = self.leadership.term().await.map_err(|failure| self.stopped(failure))?;
        // The others' clocks are known a moment after the others are.
        if !self.clock.is_known() {
            return Err(Unanswered::Failed(Failure::Electing));
        }
        self.proposer.settle(&self.leadership, term).await.map_err(|why| self.unsettled(&why))?;
        let base = self.group.shared.position();
        let decided = self.decide(commands, jobs);
        let Decided { decision, changes, before, answers } = decided.map_err(|why| self.undecidable(why))?;
        let refused = answers.iter().filter(|answer| answer.is_err()).count();
        match decision {
            Some(decision) => {
                let entry = decision.encode();
                if entry.len() > DECISION_BYTES_WANTED && answers.len() > 1 {
                    return Err(Unanswered::Long(answers.len() / 2));
                }
                if entry.len() > DECISION_BYTES_MAX {
                    return Ok(vec![Err(too_long(entry.len()))]);
                }
                let (bytes, entry) = (entry.len(), Bytes::from(entry));
                // What no replica can apply must not get into the log.
                let checked = check_entry(&entry, &decision, &changes, &self.group.shared.view());
                let puts = checked.and_then(|()| self.group.shared.puts(changes, before));
                let puts = puts.map_err(|why| self.undecidable(why))?;
                self.group.shared.set_pending_decision(PendingDecision {
                    entry: entry.clone(),
                    base,
                    decision,
                    puts,
                });
                self.group.log.writes_for(Span::current());
                let begun = instant();
                let written = self.proposer.write(&self.leadership, term, Payload(entry)).await;
                written.map_err(|why| self.unwritten(&why, answers.len()))?;
                jobs.wrote(&commands[..answers.len()], instant() - begun, bytes);
                ShardMetrics::add(&self.group.metrics().entries, 1);
            }
            None if self.group.members.is_alone() => {}
            // No entry proves that these rows are the newest ones, so the other servers are asked.
            None => {
                let confirmed = self.leadership.confirmed().await.map_err(|failure| self.stopped(failure))?;
                if confirmed != term {
                    return Err(Unanswered::Failed(Failure::Electing));
                }
            }
        }
        let metrics = self.group.metrics();
        ShardMetrics::add(&metrics.rejections, refused);
        ShardMetrics::add(&metrics.commands, answers.len() - refused);
        Ok(answers)
    }

    /// Waits while the log is at its maximum length: its rows are being written and its beginning is about to be
    /// purged, however slow the disk is. If other voters must have an entry before it can be purged, the wait ends
    /// after [`FLUSH_WAIT`].
    async fn log_within_bound(&self) {
        let mut draining = self.draining.clone();
        let short = self.group.log.within(self.group.log_bytes_full());
        // On a full disk no rows are written, and the log cannot be shortened.
        let full = async {
            while self.disk.admits_maintenance() {
                tokio::time::sleep(DISK_WAIT).await;
            }
        };
        // All four may be cancelled: none of them holds anything.
        tokio::select! {
            () = short => {}
            () = full => {}
            _ = draining.wait_for(|draining| *draining) => {}
            () = tokio::time::sleep(FLUSH_WAIT), if !self.group.members.is_alone() => {}
        }
    }

    /// What becomes of a batch if the entry of its first `begun` commands was not seen to be applied.
    fn unwritten(&self, why: &Unwritten, begun: usize) -> Unanswered {
        match why {
            Unwritten::Unknown => Unanswered::Unknown(begun),
            Unwritten::Refused => Unanswered::Failed(Failure::Electing),
            Unwritten::Stopped(why) => {
                self.stop(why);
                Unanswered::Lost(begun)
            }
        }
    }

    /// What becomes of commands if the entry before theirs is not settled: they are not executed.
    fn unsettled(&self, why: &Unwritten) -> Unanswered {
        Unanswered::Failed(match why {
            Unwritten::Unknown | Unwritten::Refused => Failure::Electing,
            Unwritten::Stopped(why) => self.stop(why),
        })
    }

    fn stopped(&self, failure: Failure) -> Unanswered {
        if failure == Failure::Stopped {
            return Unanswered::Failed(self.stop("the Raft node of a shard has stopped"));
        }
        Unanswered::Failed(failure)
    }

    fn stop(&self, why: &str) -> Failure {
        // A server that shuts down stops its nodes itself, and a replica that has failed ends nothing else.
        if !*self.draining.borrow() && self.group.failed().is_none() {
            (self.halt)(why);
        }
        Failure::Stopped
    }
}

/// Answers all commands of a batch with one failure.
fn fail(waiting: Vec<Waiting>, failure: &Failure) {
    for (waiting, ..) in waiting {
        let _gone = waiting.send(Err(failure.clone()));
    }
}

/// Queues all but the first `begun` commands again.
fn give_back(jobs: &Exit, commands: &mut Vec<Arc<Command>>, waiting: &mut Vec<Waiting>, begun: usize) {
    let begun = begun.min(commands.len());
    let left = commands.split_off(begun).into_iter().zip(waiting.split_off(begun));
    jobs.give_back(left.map(|(command, (answer, span, since))| Job { command, answer, span, since }));
}

fn too_long(bytes: usize) -> Rejection {
    let message = format!("the result has {bytes} bytes, one log entry holds at most {DECISION_BYTES_MAX}");
    Rejection::new(Reason::QuotaExceeded, message)
}
