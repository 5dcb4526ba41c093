//! The commands that wait for a shard: a line for each tenant, served by deficit round robin, so that one tenant's
//! load does not delay the others.
//!
//! A full queue refuses what users ask for, so that callers learn it at once and queued commands do not grow old.
//! Capacity is shared too: a command of a tenant with a short line replaces the newest one of the longest line.
//! Commands that end work under way are always admitted, up to a bound of their own: refusing them would make things
//! worse.
//!
//! A command is served for what it carries; the time that it then takes is charged to its tenant, whose next turns
//! are shorter. While several tenants have commands, a batch is short, so that no tenant waits long for the batch
//! before its own.

mod cost;
mod late;
mod lines;
mod sums;

use lines::Lines;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sums::sums;
use switchward_machine::TenantId;
use switchward_state::{Command, Reply};
use tokio::sync::{Notify, oneshot};
use tracing::Span;

use crate::clock::instant;
use crate::failure::Failure;
use crate::limits::{BATCH_BYTES_MAX, BATCH_SHARED_BYTES, BATCH_SHARED_TIME, COST_TIME, WRITTEN_LATER};

/// A command that waits for its answer.
pub(crate) struct Job {
    pub(crate) command: Arc<Command>,
    pub(crate) answer: oneshot::Sender<Result<Reply, Failure>>,
    /// The caller's span.
    pub(crate) span: Span,
    /// Since when it waits.
    pub(crate) since: Instant,
}

/// Why a command was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The queue is full.
    Full,
    /// The queue is closed.
    Closed,
}

/// The sending end. The queue closes when the last one is dropped.
pub(crate) struct Entrance(Arc<Queue>);

/// The receiving end. When it is dropped, the queue closes and waiting commands are given up.
pub(crate) struct Exit(Arc<Queue>);

struct Queue {
    lines: Mutex<Lines>,
    changed: Notify,
}

/// What the commands of one batch may take together. The first one is always executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// How long they may take to decide.
    pub(crate) time: Duration,
    /// The size of their decision, bytes.
    pub(crate) bytes: usize,
}

impl Allowance {
    /// Returns the first commands whose input fits into `bytes` together, at least one. What else their decision
    /// holds is known only once they are decided.
    pub(crate) fn first<'c>(&self, commands: &'c [Arc<Command>]) -> &'c [Arc<Command>] {
        let mut input = 0;
        let fits = |command: &&Arc<Command>| {
            input += command.body.carried();
            input <= self.bytes
        };
        let count = commands.iter().take_while(fits).count();
        &commands[..count.max(1).min(commands.len())]
    }
}

/// Creates an empty queue.
pub(crate) fn queue() -> (Arc<Entrance>, Exit) {
    let queue = Arc::new(Queue { lines: Mutex::default(), changed: Notify::new() });
    (Arc::new(Entrance(Arc::clone(&queue))), Exit(queue))
}

impl Entrance {
    /// Puts a command at the end of its tenant's line.
    pub(crate) fn put(&self, job: Job) -> Result<(), Refused> {
        let pushed_out = self.0.lines.lock().put(job, instant())?;
        self.0.changed.notify_one();
        if let Some(job) = pushed_out {
            // A caller that has gone needs no answer.
            let _gone = job.answer.send(Err(Failure::Overloaded));
        }
        Ok(())
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.0.lines.lock().closed = true;
        self.0.changed.notify_one();
    }
}

impl Exit {
    /// Waits for commands and takes at most `max`, in turn by tenant. Returns none once the queue is closed and
    /// empty. Cancel safe: commands are taken in the last step.
    pub(crate) async fn take(&self, max: usize, taken: &mut Vec<Job>) {
        self.0.lines.lock().begin_rest(instant());
        loop {
            let rests = {
                let mut lines = self.0.lines.lock();
                let rests = lines.serve(max, taken, instant());
                if !taken.is_empty() || lines.closed {
                    return;
                }
                rests
            };
            let changed = self.0.changed.notified();
            match rests {
                None => changed.await,
                // A new command is served at once, and both futures hold nothing.
                Some(until) => tokio::select! {
                    () = changed => {}
                    () = tokio::time::sleep_until(until.into()) => {}
                },
            }
        }
    }

    /// Returns commands that were taken and not begun to the beginnings of their lines, in their order.
    pub(crate) fn give_back(&self, jobs: impl DoubleEndedIterator<Item = Job>) {
        let mut lines = self.0.lines.lock();
        for job in jobs.rev() {
            lines.give_back(job);
        }
    }

    /// What the next batch may take.
    pub(crate) fn allowance(&self) -> Allowance {
        if self.0.lines.lock().shared(instant()) {
            Allowance { time: BATCH_SHARED_TIME, bytes: BATCH_SHARED_BYTES }
        } else {
            Allowance { time: Duration::MAX, bytes: BATCH_BYTES_MAX }
        }
    }

    /// Charges tenants for the time that their commands took.
    pub(crate) fn charge<'c>(&self, took: impl Iterator<Item = (&'c Arc<Command>, Duration)>) {
        let now = instant();
        let mut lines = self.0.lines.lock();
        let took = took.inspect(|(command, took)| {
            let units = usize::try_from(took.as_micros() / COST_TIME.as_micros()).unwrap_or(usize::MAX);
            // Most take no longer than their minimum cost, so what they carry need not be measured.
            let more = if units > 1 { units.saturating_sub(cost::cost(&command.body)) } else { 0 };
            if more > 0 {
                lines.charge(command.tenant, more);
            }
        });
        for (first, took) in sums(took) {
            lines.used(first, took, now);
        }
    }

    /// Records how long it took to write the decision on these commands, and its size in bytes.
    pub(crate) fn wrote(&self, commands: &[Arc<Command>], took: Duration, bytes: usize) {
        let now = instant();
        let costs = sums(commands.iter().map(|command| (command, cost::cost(&command.body))));
        let all = costs.iter().map(|(_, cost)| cost).sum::<usize>().max(1);
        let mut lines = self.0.lines.lock();
        lines.wrote(took);
        // The disk has more to do: the decision becomes rows, whose tables are merged later.
        let all_of_it = took + WRITTEN_LATER * u32::try_from(bytes / 1024).unwrap_or(u32::MAX);
        for (first, cost) in costs {
            let part = all_of_it.mul_f64(cost as f64 / all as f64);
            lines.used(first, part, now);
        }
    }

    /// Records that commands of these tenants, queued at these times, were answered.
    pub(crate) fn answered(&self, commands: impl Iterator<Item = (TenantId, Instant)>) {
        let now = instant();
        let mut lines = self.0.lines.lock();
        let mut last = None;
        for (tenant, since) in commands {
            // Who is the heaviest does not change here.
            let heaviest = match last {
                Some((same, heaviest)) if same == tenant => heaviest,
                Some(_) | None => lines.is_heaviest(tenant),
            };
            last = Some((tenant, heaviest));
            if !heaviest {
                lines.other_answered(now.saturating_duration_since(since));
            }
        }
    }

    /// Closes the queue.
    pub(crate) fn close(&self) {
        self.0.lines.lock().closed = true;
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        let mut lines = self.0.lines.lock();
        // If an answer is dropped, its caller sees that the shard is gone.
        *lines = Lines::over();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{
        COST_BYTES, DEBT_MAX, QUEUE_COMMANDS_MAX, QUEUE_ESSENTIAL_MAX, SHARED_FOR, TURN_COST,
    };
    use futures::FutureExt as _;
    use switchward_state::AdmissionClass;
    use switchward_state::run::RunCommand;
    use switchward_state::session::SessionCommand;
    use switchward_state::{Body, Scope, run::Answer, session::Cancel};
    use tokio::sync::oneshot::Receiver;

    const NOISY: TenantId = TenantId(1);
    const OTHERS: [TenantId; 2] = [TenantId(2), TenantId(3)];

    fn job(tenant: TenantId, body: Body) -> (Job, Receiver<Result<Reply, Failure>>) {
        let (answer, wait) = oneshot::channel();
        let command = Command::of_server(tenant, Scope::Shard, body);
        (Job { command: command.into(), answer, span: Span::none(), since: Instant::now() }, wait)
    }

    fn answer(note: &str) -> Body {
        Body::Run(RunCommand::Answer(Answer { state: None, answer: "yes".into(), note: note.into() }))
    }

    fn cancel() -> Body {
        Body::Session(SessionCommand::Cancel(Cancel::written("")))
    }

    fn put(queue: &Entrance, tenant: TenantId, body: Body) -> Result<(), Refused> {
        queue.put(job(tenant, body).0)
    }

    fn take(exit: &Exit, max: usize) -> Vec<TenantId> {
        let mut taken = Vec::new();
        exit.take(max, &mut taken).now_or_never().expect("something waits");
        taken.into_iter().map(|job| job.command.tenant).collect()
    }

    #[test]
    fn a_crowd_holds_up_nobody_else() {
        let (queue, exit) = queue();
        for _ in 0..1_000 {
            put(&queue, NOISY, answer("")).unwrap();
        }
        for tenant in OTHERS {
            put(&queue, tenant, answer("")).unwrap();
        }
        let first = take(&exit, TURN_COST + 2);
        assert!(OTHERS.iter().all(|tenant| first.contains(tenant)), "{first:?}");
        assert_eq!(take(&exit, 10_000).len(), 1_000 - TURN_COST);
    }

    #[test]
    fn long_commands_use_up_a_turn_sooner_and_each_is_served() {
        let (queue, exit) = queue();
        let long = "x".repeat(COST_BYTES * 15);
        for _ in 0..8 {
            put(&queue, NOISY, answer(&long)).unwrap();
        }
        put(&queue, NOISY, answer(&"x".repeat(COST_BYTES * TURN_COST * 2))).unwrap();
        put(&queue, OTHERS[0], answer("")).unwrap();
        let order = take(&exit, 100);
        assert_eq!(order.iter().position(|tenant| *tenant == OTHERS[0]), Some(4), "{order:?}");
        assert_eq!(order.len(), 10);
    }

    #[test]
    fn whose_commands_take_long_has_fewer_of_them_in_a_turn() {
        let (queue, exit) = queue();
        let taken = |max: usize| {
            let mut taken = Vec::new();
            exit.take(max, &mut taken).now_or_never().expect("something waits");
            taken
        };
        // Each takes the time of half a turn, and costs next to nothing by what it carries.
        let took = COST_TIME * u32::try_from(TURN_COST / 2).unwrap();
        let mut served = [0_usize; 2];
        for _ in 0..1_000 {
            for tenant in [NOISY, OTHERS[0]] {
                put(&queue, tenant, answer("")).unwrap();
                put(&queue, tenant, answer("")).unwrap();
            }
            for job in taken(2) {
                let noisy = job.command.tenant == NOISY;
                served[usize::from(noisy)] += 1;
                exit.charge(std::iter::once((&job.command, if noisy { took } else { COST_TIME })));
            }
        }
        let [other, noisy] = served;
        assert!(
            other > 5 * noisy && noisy > 20,
            "{noisy} of the tenant with slow commands, {other} of the other"
        );
    }

    #[test]
    fn a_debt_is_kept_while_nothing_waits_and_has_a_bound() {
        let (queue, exit) = queue();
        put(&queue, NOISY, answer("")).unwrap();
        let mut taken = Vec::new();
        exit.take(1, &mut taken).now_or_never().expect("something waits");
        exit.charge(std::iter::once((&taken[0].command, Duration::from_secs(3_600))));
        put(&queue, NOISY, answer("")).unwrap();
        for _ in 0..DEBT_MAX + TURN_COST {
            put(&queue, OTHERS[0], answer("")).unwrap();
        }
        let order = take(&exit, usize::MAX);
        assert_eq!(
            order.iter().position(|tenant| *tenant == NOISY),
            Some(DEBT_MAX),
            "the noisy tenant waits eight turns"
        );
    }

    #[test]
    fn a_weight_makes_a_turn_longer() {
        let (queue, exit) = queue();
        for _ in 0..4 * TURN_COST {
            put(&queue, OTHERS[0], answer("")).unwrap();
            let (mut heavy, _wait) = job(OTHERS[1], answer(""));
            Arc::make_mut(&mut heavy.command).settings.quotas.weight = Some(3);
            queue.put(heavy).unwrap();
        }
        let first = take(&exit, 4 * TURN_COST);
        let heavy = first.iter().filter(|tenant| **tenant == OTHERS[1]).count();
        assert_eq!(heavy, 3 * TURN_COST);
    }

    #[test]
    fn a_weight_makes_what_a_tenant_uses_count_for_less() {
        let rests = |weight: Option<u32>| {
            let (queue, exit) = queue();
            let (mut heavy, _heavy) = job(NOISY, answer(""));
            Arc::make_mut(&mut heavy.command).settings.quotas.weight = weight;
            let (light, _light) = job(OTHERS[0], answer(""));
            let late = Instant::now() - Duration::from_secs(1);
            let took = [(&heavy.command, 4 * BATCH_SHARED_TIME), (&light.command, BATCH_SHARED_TIME)];
            exit.charge(took.into_iter());
            // The light one has waited for long, so the tenant that uses most rests.
            exit.answered(std::iter::once((OTHERS[0], late)));
            exit.charge(std::iter::once((&heavy.command, BATCH_SHARED_TIME)));
            queue.put(light).unwrap();
            queue.put(heavy).unwrap();
            take(&exit, 2).len() == 1
        };
        assert_eq!((rests(None), rests(Some(4))), (true, false));
    }

    #[test]
    fn who_writes_much_rests_longer_than_the_writing_took() {
        let rests = |bytes: usize| {
            let (queue, exit) = queue();
            let (heavy, _heavy) = job(NOISY, answer(""));
            let (light, _light) = job(OTHERS[0], answer(""));
            let late = Instant::now() - Duration::from_secs(1);
            let heavy = [heavy.command];
            exit.wrote(&heavy, BATCH_SHARED_TIME, bytes);
            exit.wrote(std::slice::from_ref(&light.command), BATCH_SHARED_TIME / 4, 0);
            exit.answered(std::iter::once((OTHERS[0], late)));
            exit.wrote(&heavy, Duration::ZERO, bytes);
            queue.put(light).unwrap();
            let [command] = heavy;
            let (mut again, _again) = job(NOISY, answer(""));
            again.command = command;
            queue.put(again).unwrap();
            take(&exit, 2).len() == 1
        };
        assert_eq!((rests(0), rests(BATCH_SHARED_BYTES)), (false, true));
    }

    #[test]
    fn what_is_given_back_is_served_first_and_in_its_order() {
        let (queue, exit) = queue();
        for (tenant, note) in [(OTHERS[0], "1"), (OTHERS[0], "2"), (OTHERS[1], "3")] {
            put(&queue, tenant, answer(note)).unwrap();
        }
        let mut taken = Vec::new();
        exit.take(10, &mut taken).now_or_never().expect("something waits");
        put(&queue, NOISY, answer("4")).unwrap();
        exit.give_back(taken.drain(1..));
        exit.take(10, &mut taken).now_or_never().expect("something waits");
        let notes = taken.iter().map(|job| {
            let Body::Run(RunCommand::Answer(answer)) = &job.command.body else {
                panic!("the queue holds only answers")
            };
            answer.note.as_str()
        });
        assert_eq!(notes.collect::<Vec<_>>(), ["1", "2", "3", "4"]);
    }

    #[test]
    fn a_batch_is_short_where_several_tenants_ask() {
        let (queue, exit) = queue();
        let alone = exit.allowance();
        for _ in 0..3 {
            put(&queue, NOISY, answer("")).unwrap();
            assert_eq!(exit.allowance(), alone);
        }
        put(&queue, OTHERS[0], answer("")).unwrap();
        assert_eq!(exit.allowance(), Allowance { time: BATCH_SHARED_TIME, bytes: BATCH_SHARED_BYTES });
        let later = Instant::now() + SHARED_FOR;
        assert!(!exit.0.lines.lock().shared(later), "a second later it is not shared any more");
    }

    #[test]
    fn what_commands_carry_counts_before_they_are_decided() {
        let allowance = Allowance { time: BATCH_SHARED_TIME, bytes: BATCH_SHARED_BYTES };
        let first = |notes: &[usize]| {
            let commands: Vec<Arc<Command>> = notes
                .iter()
                .map(|length| Command::of_server(NOISY, Scope::Shard, answer(&"x".repeat(*length))).into())
                .collect();
            allowance.first(&commands).len()
        };
        assert_eq!(first(&[]), 0);
        assert_eq!(
            first(&[BATCH_SHARED_BYTES * 2, 1]),
            1,
            "a short command does not wait for a long one that has not begun"
        );
        assert_eq!(first(&[1, BATCH_SHARED_BYTES, 1]), 1);
        assert_eq!(first(&[BATCH_SHARED_BYTES / 2; 3]), 2);
        assert_eq!(first(&[1; 100]), 100);
    }

    #[test]
    fn a_full_queue_admits_short_lines_only() {
        let (queue, exit) = queue();
        let mut waiting = Vec::new();
        for _ in 0..QUEUE_COMMANDS_MAX {
            let (job, wait) = job(NOISY, answer(""));
            queue.put(job).unwrap();
            waiting.push(wait);
        }
        assert_eq!(put(&queue, NOISY, answer("")), Err(Refused::Full));
        put(&queue, OTHERS[0], answer("")).unwrap();
        let newest = waiting.pop().unwrap().try_recv();
        assert_eq!(newest, Ok(Err(Failure::Overloaded)), "the newest of the longest line is refused");
        assert!(waiting.pop().unwrap().try_recv().is_err(), "the others wait");
        assert_eq!(take(&exit, 2 * QUEUE_COMMANDS_MAX).len(), QUEUE_COMMANDS_MAX);
    }

    #[test]
    fn what_ends_work_gets_in_up_to_a_bound() {
        let (queue, exit) = queue();
        for _ in 0..QUEUE_COMMANDS_MAX {
            put(&queue, NOISY, answer("")).unwrap();
        }
        for _ in 0..QUEUE_ESSENTIAL_MAX {
            put(&queue, NOISY, cancel()).unwrap();
        }
        assert_eq!(put(&queue, NOISY, cancel()), Err(Refused::Full));
        // A user's command is replaced, never one that ends work.
        put(&queue, OTHERS[0], answer("")).unwrap();
        let mut waiting = Vec::new();
        exit.take(usize::MAX, &mut waiting).now_or_never().expect("something waits");
        let ending = waiting.iter().filter(|job| job.command.body.admission() == AdmissionClass::Ends);
        assert_eq!(ending.count(), QUEUE_ESSENTIAL_MAX);
    }

    #[test]
    fn either_end_closes_it() {
        let (entrance, exit) = queue();
        put(&entrance, NOISY, answer("")).unwrap();
        drop(entrance);
        assert_eq!(take(&exit, 10).len(), 1, "queued commands are still served");
        assert_eq!(take(&exit, 10).len(), 0);

        let (entrance, exit) = queue();
        let (job, mut wait) = job(NOISY, answer(""));
        entrance.put(job).unwrap();
        drop(exit);
        assert!(wait.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        assert_eq!(put(&entrance, NOISY, answer("")), Err(Refused::Closed));
    }
}
