//! What waits for a shard: a line for each tenant, served by deficit round robin, so that nobody's crowd holds up the
//! others.
//!
//! A full queue refuses what users ask for: whoever waits outside can be told, and what waits inside grows no older.
//! Room is shared too: a command of a tenant with a short line takes the place of the newest one of the longest line.
//! What ends work that is under way always gets in, up to a bound of its own: refusing it would make things worse.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use switchward_engine::limits::EFFECT_BYTES;
use switchward_engine::{Body, Command, Reply};
use switchward_machine::TenantId;
use tokio::sync::{Notify, oneshot};
use tracing::Span;

use crate::bearing::Bearing;
use crate::failure::Failure;
use crate::limits::{COST_BYTES, QUEUE_COMMANDS_MAX, QUEUE_ESSENTIAL_MAX, TURN_COST};

/// A command that waits for its answer.
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) answer: oneshot::Sender<Result<Reply, Failure>>,
    /// What the caller does meanwhile.
    pub(crate) span: Span,
}

/// Why a command did not get in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is no room.
    Full,
    /// The queue takes nothing more.
    Closed,
}

/// The end that commands are put in by. The queue closes when the last one is gone.
pub(crate) struct Entrance(Arc<Queue>);

/// The end that commands are taken out by. The queue closes, and what waits is given up, when it is gone.
pub(crate) struct Exit(Arc<Queue>);

struct Queue {
    lines: Mutex<Lines>,
    told: Notify,
}

#[derive(Default)]
struct Lines {
    of: HashMap<TenantId, Line>,
    /// Tenants that have something waiting; the next one to be served stands first.
    turns: VecDeque<TenantId>,
    waiting: usize,
    closed: bool,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    /// What is left of the tenant's turn.
    credit: usize,
}

/// A queue without anything in it.
pub(crate) fn queue() -> (Arc<Entrance>, Exit) {
    let queue = Arc::new(Queue { lines: Mutex::default(), told: Notify::new() });
    (Arc::new(Entrance(Arc::clone(&queue))), Exit(queue))
}

impl Entrance {
    /// Puts a command at the end of its tenant's line.
    pub(crate) fn put(&self, job: Job) -> Result<(), Refused> {
        let pushed_out = self.0.lines.lock().put(job)?;
        self.0.told.notify_one();
        if let Some(job) = pushed_out {
            // Whoever has gone needs no answer.
            let _gone = job.answer.send(Err(Failure::Overloaded));
        }
        Ok(())
    }
}

impl Drop for Entrance {
    fn drop(&mut self) {
        self.0.lines.lock().closed = true;
        self.0.told.notify_one();
    }
}

impl Exit {
    /// Waits for commands and takes at most `max`, every tenant in turn. Nothing comes once the queue is closed and
    /// empty. Cancel safe: what is taken is taken at the end.
    pub(crate) async fn take(&self, max: usize, taken: &mut Vec<Job>) {
        loop {
            {
                let mut lines = self.0.lines.lock();
                lines.serve(max, taken);
                if !taken.is_empty() || lines.closed {
                    return;
                }
            }
            self.0.told.notified().await;
        }
    }

    /// Lets nothing more in.
    pub(crate) fn close(&self) {
        self.0.lines.lock().closed = true;
    }
}

impl Drop for Exit {
    fn drop(&mut self) {
        let mut lines = self.0.lines.lock();
        // A dropped answer tells its caller that the shard is gone.
        *lines = Lines { closed: true, ..Lines::default() };
    }
}

impl Lines {
    fn put(&mut self, job: Job) -> Result<Option<Job>, Refused> {
        if self.closed {
            return Err(Refused::Closed);
        }
        let tenant = job.command.tenant;
        let pushed_out = match self.waiting {
            waiting if waiting < QUEUE_COMMANDS_MAX => None,
            waiting if Bearing::of(&job.command.body) == Bearing::Ends => {
                if waiting >= QUEUE_COMMANDS_MAX + QUEUE_ESSENTIAL_MAX {
                    return Err(Refused::Full);
                }
                None
            }
            _ => Some(self.push_out(tenant).ok_or(Refused::Full)?),
        };
        let line = self.of.entry(tenant).or_default();
        if line.jobs.is_empty() {
            self.turns.push_back(tenant);
        }
        line.jobs.push_back(job);
        self.waiting += 1;
        Ok(pushed_out)
    }

    /// Makes room for a tenant: the newest user's command of the longest line goes, where that line stays the longer.
    fn push_out(&mut self, tenant: TenantId) -> Option<Job> {
        let own = self.of.get(&tenant).map_or(0, |line| line.jobs.len());
        let longest = self.of.values_mut().max_by_key(|line| line.jobs.len())?;
        if longest.jobs.len() <= own + 1 {
            return None;
        }
        let newest = longest.jobs.iter().rposition(|job| Bearing::of(&job.command.body) != Bearing::Ends)?;
        self.waiting -= 1;
        longest.jobs.remove(newest)
    }

    fn serve(&mut self, max: usize, taken: &mut Vec<Job>) {
        while taken.len() < max
            && let Some(tenant) = self.turns.pop_front()
        {
            let Some(line) = self.of.get_mut(&tenant) else { continue };
            line.credit += TURN_COST;
            while taken.len() < max
                && let Some(next) = line.jobs.front().map(|job| cost(&job.command.body))
                && next <= line.credit
                && let Some(job) = line.jobs.pop_front()
            {
                line.credit -= next;
                self.waiting -= 1;
                taken.push(job);
            }
            if line.jobs.is_empty() {
                // Who has nothing waiting saves nothing up.
                self.of.remove(&tenant);
            } else {
                self.turns.push_back(tenant);
            }
        }
    }
}

/// What a command takes of its tenant's turn: one, and more where it carries much. No command costs more than a turn
/// gives, so every turn serves at least one.
fn cost(body: &Body) -> usize {
    (1 + carried(body) / COST_BYTES).min(TURN_COST)
}

/// About the bytes that a command carries.
fn carried(body: &Body) -> usize {
    match body {
        Body::Start(start) => start.input.len() + start.message.as_ref().map_or(0, String::len),
        Body::Answer(answer) => answer.note.len(),
        Body::PostMessage(post) => post.text.len(),
        Body::EndTurn(end) => end.text.len(),
        Body::RecordData(record) => record.values.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
        Body::RecordEvent(event) => event.data.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
        Body::CompleteWork(complete) => weigh(&complete.result),
        Body::AnswerGate(answer) => weigh(&answer.answer),
        Body::FailWork(fail) => fail.message.len(),
        Body::FailEffect(fail) => fail.message.len(),
        Body::DeferEffect(defer) => defer.message.len(),
        Body::RecordBounce(bounce) => bounce.message.len(),
        Body::PutDirectory(put) => put.directory.bytes(),
        Body::RecordReply(reply) => reply.text.len(),
        Body::Republish(wish) => (wish.events.len() + wish.retry.len()) * EFFECT_BYTES,
        Body::Authorize(call) => call.args.json().len(),
        Body::PutAssistant(put) => {
            put.instructions.len() + put.workflows.iter().map(String::len).sum::<usize>()
        }
        Body::Deploy(deploy) => deploy.files.iter().map(|(_, bytes)| bytes.len()).sum(),
        Body::ReportCall(_)
        | Body::ReportUsage(_)
        | Body::DecideGate(_)
        | Body::DiscussGate(_)
        | Body::SendPageCode(_)
        | Body::EnterPageCode(_)
        | Body::RaiseCap(_)
        | Body::Pause(_)
        | Body::Resume(_)
        | Body::Cancel(_)
        | Body::AckEffect(_)
        | Body::RetryEffect(_)
        | Body::DismissEffect(_)
        | Body::Sweep(_)
        | Body::Reserve(_)
        | Body::Confirm(_)
        | Body::Settle(_)
        | Body::InstallMachine(_)
        | Body::CreateTenant(_)
        | Body::UpdateTenant(_)
        | Body::PutQuotas(_)
        | Body::CreateKey(_)
        | Body::RevokeKey(_)
        | Body::ActivateVersion(_)
        | Body::RetireVersion(_)
        | Body::DeleteAssistant(_)
        | Body::EnsureTenancy(_)
        | Body::InstallTenancy(_)
        | Body::WebhookSource(_)
        | Body::AttachPolicy(_)
        | Body::SetTenantPolicy(_)
        | Body::RemoveTenantPolicy(_)
        | Body::Endpoint(_)
        | Body::Remove(_)
        | Body::RemoveStep(_)
        | Body::PutRetention(_)
        | Body::HoldEffects(_)
        | Body::Reseal(_)
        | Body::DeleteTenant(_)
        | Body::SignalCompletion
        | Body::SwitchRun(_)
        | Body::LeaseWork(_)
        | Body::ExtendLease(_)
        | Body::ReleaseWork(_)
        | Body::RetryNode => 0,
    }
}

/// About the bytes of a value's text; its nesting is limited where it comes in.
fn weigh(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(weigh).sum(),
        serde_json::Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use switchward_engine::{Answer, Cancel, Scope};
    use tokio::sync::oneshot::Receiver;

    const NOISY: TenantId = TenantId(1);
    const OTHERS: [TenantId; 2] = [TenantId(2), TenantId(3)];

    fn job(tenant: TenantId, body: Body) -> (Job, Receiver<Result<Reply, Failure>>) {
        let (answer, wait) = oneshot::channel();
        (Job { command: Command::of_server(tenant, Scope::Shard, body), answer, span: Span::none() }, wait)
    }

    fn answer(note: &str) -> Body {
        Body::Answer(Answer { state: None, answer: "yes".into(), note: note.into() })
    }

    fn cancel() -> Body {
        Body::Cancel(Cancel { comment: String::new() })
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
    fn a_full_queue_makes_room_for_short_lines_only() {
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
        assert_eq!(newest, Ok(Err(Failure::Overloaded)), "the newest of the longest line is told");
        assert!(waiting.pop().unwrap().try_recv().is_err(), "the others wait");
        assert_eq!(take(&exit, 2 * QUEUE_COMMANDS_MAX).len(), QUEUE_COMMANDS_MAX);
    }

    #[test]
    fn what_ends_work_gets_in_up_to_a_bound() {
        let (queue, _exit) = queue();
        for _ in 0..QUEUE_COMMANDS_MAX {
            put(&queue, NOISY, answer("")).unwrap();
        }
        for _ in 0..QUEUE_ESSENTIAL_MAX {
            put(&queue, NOISY, cancel()).unwrap();
        }
        assert_eq!(put(&queue, NOISY, cancel()), Err(Refused::Full));
        // Room is made by a user's command, never by one that ends work.
        put(&queue, OTHERS[0], answer("")).unwrap();
        let lines = queue.0.lines.lock();
        let ending = lines.of[&NOISY]
            .jobs
            .iter()
            .filter(|job| Bearing::of(&job.command.body) == Bearing::Ends)
            .count();
        assert_eq!(ending, QUEUE_ESSENTIAL_MAX);
    }

    #[test]
    fn either_end_closes_it() {
        let (entrance, exit) = queue();
        put(&entrance, NOISY, answer("")).unwrap();
        drop(entrance);
        assert_eq!(take(&exit, 10).len(), 1, "what got in is served");
        assert_eq!(take(&exit, 10).len(), 0);

        let (entrance, exit) = queue();
        let (job, mut wait) = job(NOISY, answer(""));
        entrance.put(job).unwrap();
        drop(exit);
        assert!(wait.try_recv().is_err_and(|error| error == oneshot::error::TryRecvError::Closed));
        assert_eq!(put(&entrance, NOISY, answer("")), Err(Refused::Closed));
    }
}
