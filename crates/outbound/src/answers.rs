//! The outcome of a delivery job, as a command to the shard of its session.

use async_trait::async_trait;
use backon::{ExponentialBuilder, Retryable as _};
use std::time::Duration;
use switchward_delivery::worker::{
    AnswerError, Answers, Delivered, DeliveryJob, JobChannel, JobHead, Origin, Outcome,
};
use switchward_delivery::{DeliveryReason, Failed};
use switchward_machine::{Digest, Micros, OpenId};
use switchward_query::outgoing::ShardView;
use switchward_shard::{Cluster, Failure};
use switchward_state::delivery::{AckEffect, Attempt, DeferEffect, DeliveryCommand, FailEffect, FailureCode};
use switchward_state::work::{CompleteWork, FailWork, WorkCommand, WorkFailure};
use switchward_state::{Body, Command, OutboxScope, Reason, RequestId, Scope, ViewError};
use switchward_webhook::retry::wait;

use crate::health;

/// How often a shard that cannot answer just now is asked again: for more than a minute, which is far longer than an election
/// takes. An outcome that nobody takes until then is lost, and its job is done again.
const OFFERS_AGAIN: usize = 40;
/// The wait before the second offer; it doubles before each further one.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest wait between two offers.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// See the module.
pub(super) struct ToShards {
    cluster: Cluster,
    /// How long after each failed attempt to deliver an effect the next one is made, milliseconds.
    waits_ms: Vec<u64>,
}

impl ToShards {
    /// Answers to the shards of this cluster.
    pub(super) fn new(cluster: Cluster, waits_ms: Vec<u64>) -> Self {
        Self { cluster, waits_ms }
    }
}

#[async_trait]
impl Answers for ToShards {
    async fn wanted(&self, job: &DeliveryJob) -> bool {
        let head = job.head();
        // A job may come again that was done before: it must not be done twice only because its shard has no leader now.
        let read = || self.read(&head);
        let later = |failure: &Failure| !failure.is_final();
        let Ok(view) = read.retry(pauses()).when(later).await else { return true };
        // Rows that cannot be read end the server elsewhere.
        still_wanted(&view, &head).unwrap_or(true)
    }

    async fn answer(&self, job: &DeliveryJob, outcome: Outcome) -> Result<(), AnswerError> {
        let head = job.head();
        let Some(command) = self.command(&head, outcome).await else { return Err(AnswerError::Gone) };
        // The outcome is kept and offered again: giving up would repeat the whole job.
        let offer = || self.cluster.execute(command.clone());
        let taken = offer.retry(pauses()).when(may_be_taken_later).await;
        taken.map(drop).map_err(|failure| refused(&head, &failure))
    }
}

impl ToShards {
    /// What a job is about, as its shard's leader has them now.
    ///
    /// # Errors
    /// The leader cannot be asked.
    pub(super) async fn read(&self, job: &JobHead) -> Result<ShardView, Failure> {
        match OutboxScope::from(job.session) {
            OutboxScope::Tenant => ShardView::linearizable(self.cluster.catalogue()).await,
            OutboxScope::Session(session) => ShardView::of_bucket(&self.cluster, session.bucket()).await,
        }
    }

    /// Offers an outcome to the shard once. May be called again for the same outcome.
    ///
    /// # Errors
    /// As of [`Answers::answer`].
    pub(super) async fn offer(&self, job: &JobHead, outcome: Outcome) -> Result<(), AnswerError> {
        let Some(command) = self.command(job, outcome).await else { return Err(AnswerError::Gone) };
        let taken = self.cluster.execute(command).await;
        taken.map(drop).map_err(|failure| match may_be_taken_later(&failure) {
            true => AnswerError::Later,
            false => refused(job, &failure),
        })
    }

    /// Records the health of an endpoint, and returns the command to the shard of a job; `None` if none is due.
    async fn command(&self, job: &JobHead, outcome: Outcome) -> Option<Command> {
        if let JobChannel::Event { endpoint } = &job.channel
            && !matches!(job.origin, Origin::Ping { .. })
        {
            health::watch(&self.cluster, job.tenant, endpoint, &outcome).await;
        }
        match job.origin {
            Origin::Work { item, fence } => done(job, item, fence, outcome),
            Origin::Effect { number, round, attempt } => {
                let attempt = Attempt { round, number: attempt };
                let body = match outcome {
                    Ok(_) => DeliveryCommand::AckEffect(AckEffect { number }),
                    // It was not begun, and so is no attempt: once it is taken for lost, it is published again.
                    Err(Failed { reason: DeliveryReason::NotBegun, .. }) => return None,
                    Err(failed) => self.failed(job, number, attempt, failed),
                };
                let scope = OutboxScope::from(job.session).scope();
                Some(Command::of_server(job.tenant, scope, Body::Delivery(body)))
            }
            // Its answer goes back over the bus, and nothing is recorded.
            Origin::Ping { .. } => None,
        }
    }

    /// What comes of a failed attempt to deliver an effect: another attempt, or a dead letter.
    fn failed(&self, job: &JobHead, number: u64, attempt: Attempt, failed: Failed) -> DeliveryCommand {
        let Failed { reason, detail, retry_after: wanted } = failed;
        let detail = Some(detail);
        let (wait, dead) = match &job.channel {
            JobChannel::Event { .. } => {
                let again = reason != DeliveryReason::ReceiverGone;
                let wait = again.then(|| next_event(job, number, attempt, wanted)).flatten();
                (wait, FailureCode::WebhookFailed)
            }
            JobChannel::Http | JobChannel::Model | JobChannel::Mail | JobChannel::Message => {
                let again = !reason.is_permanent();
                (again.then(|| next(attempt, &self.waits_ms, wanted)).flatten(), FailureCode::Attempt(reason))
            }
        };
        match wait {
            Some(wait) => {
                let code = FailureCode::Attempt(reason);
                let defer = DeferEffect { number, attempt, wait_ms: wait, code, detail, made: true };
                DeliveryCommand::DeferEffect(defer)
            }
            None => {
                let (code, round) = (dead, Some(attempt.round));
                DeliveryCommand::FailEffect(FailEffect { number, code, detail, round })
            }
        }
    }
}

/// What becomes of a job whose outcome was offered in vain.
fn refused(job: &JobHead, failure: &Failure) -> AnswerError {
    let Failure::Rejected(no) = failure else { return AnswerError::Later };
    tracing::info!(job = %job.name(), reason = no.reason.code(), "a delivery job ended too late");
    AnswerError::Gone
}

/// The waits between two offers.
pub(super) fn pauses() -> ExponentialBuilder {
    let pauses = ExponentialBuilder::new().with_min_delay(PAUSE).with_max_delay(PAUSE_MAX);
    pauses.with_max_times(OFFERS_AGAIN)
}

fn may_be_taken_later(failure: &Failure) -> bool {
    if let Failure::Rejected(no) = failure {
        return no.reason == Reason::QuotaExceeded;
    }
    !failure.is_final()
}

/// Returns true if the session still has what a job is for, and waits for this attempt at it.
pub(super) fn still_wanted(view: &ShardView, job: &JobHead) -> Result<bool, ViewError> {
    match job.origin {
        Origin::Work { item, fence } => {
            let work = view.work(job.tenant, job.session, item)?;
            Ok(work.is_some_and(|work| work.owed.lease.is_some() && work.owed.fence == fence))
        }
        Origin::Effect { number, round, attempt } => {
            let effect = view.effect_numbered(job.tenant, job.session, number)?;
            let Some(effect) = effect else { return Ok(false) };
            Ok(effect.dead_letter().is_none() && effect.attempt() == Attempt { round, number: attempt })
        }
        Origin::Ping { .. } => {
            let JobChannel::Event { endpoint } = &job.channel else { return Ok(false) };
            view.has_endpoint(job.tenant, endpoint)
        }
    }
}

/// The outcome of work, as a command to its session; `None` if nothing is recorded.
fn done(job: &JobHead, item: OpenId, fence: u64, outcome: Outcome) -> Option<Command> {
    let (cost, tokens) = (Micros(0), 0);
    let body = match outcome {
        Ok(delivered) => {
            let result = match delivered {
                Delivered::Http(answer) => answer.to_json(),
                Delivered::Model(result) => result,
                // Mails and webhooks are no work.
                Delivered::Mail { .. } | Delivered::Webhook { .. } => return None,
            };
            WorkCommand::Complete(CompleteWork { item, fence, result, cost, tokens, next: None })
        }
        // It was not begun, and so is no attempt: when its lease is over, it goes out again.
        Err(Failed { reason: DeliveryReason::NotBegun, .. }) => return None,
        Err(Failed { reason, detail, .. }) => {
            let failure = WorkFailure::Attempt { reason, detail };
            // No answer came in: it, or an attempt before it, may have been done all the same.
            WorkCommand::Fail(FailWork { item, fence, failure, cost, tokens, unknown: true })
        }
    };
    // A job that is done twice may have two outcomes; the first is taken.
    let id = format!("delivery:{}:{fence}", item.0);
    let request = RequestId { body: Digest::of(id.as_bytes()), id };
    let command = Command::of_server(job.tenant, Scope::Session(job.session), Body::Work(body));
    Some(Command { request: Some(request), ..command })
}

/// Returns how long an event for an endpoint waits before its next attempt, milliseconds; `None` if there is none.
fn next_event(job: &JobHead, number: u64, attempt: Attempt, wanted: Option<Duration>) -> Option<u64> {
    let digest = Digest::of(format!("{}-{number}", job.session).as_bytes());
    let seed = digest.0.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte));
    // The attempt that has failed is the number of those before it, and one more; the next is another one.
    let wait = wait(attempt.number.saturating_add(2), wanted, seed)?;
    u64::try_from(wait.as_millis()).ok()
}

/// Returns how long any other effect waits before its next attempt, at least as long as its receiver wanted, milliseconds;
/// `None` if there is none.
fn next(attempt: Attempt, waits_ms: &[u64], wanted: Option<Duration>) -> Option<u64> {
    let wait = *waits_ms.get(usize::try_from(attempt.number).ok()?)?;
    let wanted = wanted.map(|wanted| u64::try_from(wanted.as_millis()).unwrap_or(u64::MAX));
    Some(wait.max(wanted.unwrap_or_default()))
}
