//! The outcome of a delivery job, as a command to the shard of its session.

use async_trait::async_trait;
use std::time::Duration;
use switchward_delivery::worker::{AnswerError, Answers, DeliveryJob, HOOK, MAIL, Outcome, POST};
use switchward_engine::work_view;
use switchward_machine::{Digest, Micros, OpenId, SessionId, TenantId, Time};
use switchward_shard::{Cluster, Failure, StateView};
use switchward_state::delivery::{AckEffect, Attempt, DeferEffect, DeliveryCommand, FailEffect};
use switchward_state::work::{CompleteWork, FailWork, WorkCommand};
use switchward_state::{
    Body, Command, Key, Reason, RequestId, Row, Scope, TENANT_ITSELF, View as _, ViewError, scope_of_effects,
};
use switchward_webhook::retry::wait;

use super::hooks::GONE;
use super::{effects, health, hooks};

/// How often an outcome is offered to a shard that cannot take it just now.
const OFFERS: u32 = 6;
/// The wait before the second offer; it doubles before each further one.
const PAUSE: Duration = Duration::from_millis(200);

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
        let Ok(session) = job.session.parse::<SessionId>() else { return true };
        let shard = match session {
            TENANT_ITSELF => self.cluster.catalogue(),
            session => self.cluster.shard_of(session.bucket()),
        };
        let Ok(view) = shard.read().await else { return true };
        // Rows that cannot be read end the server elsewhere.
        still_wanted(&view, job, session).unwrap_or(true)
    }

    async fn answer(&self, job: &DeliveryJob, outcome: Outcome) -> Result<(), AnswerError> {
        if job.kind == HOOK {
            health::watch(&self.cluster, job, &outcome).await;
        }
        let Some(command) = self.command(job, outcome) else { return Err(AnswerError::Gone) };
        let mut pause = PAUSE;
        for offer in 1..=OFFERS {
            // The outcome is kept and offered again: giving up would repeat the whole job.
            match self.cluster.execute(command.clone()).await {
                Ok(_) => return Ok(()),
                Err(Failure::Rejected(no)) if no.reason == Reason::QuotaExceeded && offer < OFFERS => {}
                Err(Failure::Rejected(no)) => {
                    tracing::info!(job = %job.name, reason = no.reason.code(), "a delivery job ended too late");
                    return Err(AnswerError::Gone);
                }
                Err(
                    Failure::Electing
                    | Failure::OutcomeUnknown
                    | Failure::Overloaded
                    | Failure::DiskLow { .. },
                ) if offer < OFFERS => {}
                Err(
                    Failure::Electing
                    | Failure::OutcomeUnknown
                    | Failure::Overloaded
                    | Failure::DiskLow { .. }
                    | Failure::Draining
                    | Failure::Stopped,
                ) => break,
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(AnswerError::Later)
    }
}

impl ToShards {
    /// The command; `None` for a job that this server never wrote.
    fn command(&self, job: &DeliveryJob, outcome: Outcome) -> Option<Command> {
        let session: SessionId = job.session.parse().ok()?;
        if of_effect(job) {
            return delivered(job, session, outcome, (self.cluster.now(), &self.waits_ms));
        }
        done(job, session, outcome)
    }
}

/// Returns true if a job is an attempt to deliver an effect.
fn of_effect(job: &DeliveryJob) -> bool {
    [MAIL, POST, HOOK].contains(&job.kind.as_str())
}

/// Returns true if the session still has what a job is for, and waits for this attempt at it.
fn still_wanted(view: &StateView, job: &DeliveryJob, session: SessionId) -> Result<bool, ViewError> {
    let tenant = TenantId(job.tenant);
    if of_effect(job) {
        let row = view.row(&Key::outbox(tenant, session, job.item))?;
        let Some(Row::Outbox(effect)) = row.as_deref() else { return Ok(false) };
        return Ok(effect.dead().is_none() && effects::attempt(&job.token) == Some(effect.attempt()));
    }
    let work = view.consistent(|rows| work_view(rows, tenant, session, OpenId(job.item)))?;
    let held = work.filter(|work| work.owed.lease.is_some());
    Ok(held.is_some_and(|work| work.owed.fence.to_string() == job.token))
}

/// The outcome of work, as a command to its session.
fn done(job: &DeliveryJob, session: SessionId, outcome: Outcome) -> Option<Command> {
    let (item, fence) = (OpenId(job.item), job.token.parse().ok()?);
    let (cost, tokens) = (Micros(0), 0);
    let body = match outcome {
        Outcome::Done(result) => {
            Body::Work(WorkCommand::Complete(CompleteWork { item, fence, result, cost, tokens }))
        }
        // It was not begun, and so is no attempt: when its lease is over, it goes out again.
        Outcome::Failed { reason, .. } if reason == NOT_BEGUN => return None,
        Outcome::Failed { reason, message, .. } => {
            let message = format!("{reason}: {message}");
            // No answer came in: it, or an attempt before it, may have been done all the same.
            Body::Work(WorkCommand::Fail(FailWork { item, fence, message, cost, tokens, unknown: true }))
        }
    };
    // A job that is done twice may have two outcomes; the first is taken.
    let id = format!("errand:{}:{fence}", job.item);
    let request = RequestId { body: Digest::of(id.as_bytes()), id };
    let command = Command::of_server(TenantId(job.tenant), Scope::Session(session), body);
    Some(Command { request: Some(request), ..command })
}

/// The reason of a job whose deadline passed before it was begun.
const NOT_BEGUN: &str = "not_begun";

/// What came of an attempt to deliver an effect: it has arrived, or is tried again, or is given up.
fn delivered(
    job: &DeliveryJob,
    session: SessionId,
    outcome: Outcome,
    (now, waits_ms): (Time, &[u64]),
) -> Option<Command> {
    let (number, attempt) = (job.item, effects::attempt(&job.token)?);
    let body = match outcome {
        Outcome::Done(_) => Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number })),
        Outcome::Failed { reason, message, retry_after_ms } if job.kind == HOOK => {
            let wait = if reason == GONE { None } else { next_hook(job, attempt, retry_after_ms) };
            let code = hooks::FAILED.to_owned();
            match wait {
                Some(wait) => {
                    let (until, code, made) = (now.after_ms(wait), reason, true);
                    Body::Delivery(DeliveryCommand::DeferEffect(DeferEffect {
                        number,
                        attempt,
                        until,
                        code,
                        message,
                        made,
                    }))
                }
                None => Body::Delivery(DeliveryCommand::FailEffect(FailEffect {
                    number,
                    code,
                    message,
                    round: Some(attempt.round),
                })),
            }
        }
        Outcome::Failed { reason, message, retry_after_ms } => {
            let next =
                if FINAL.contains(&reason.as_str()) { None } else { next(attempt, waits_ms, retry_after_ms) };
            match next {
                Some(wait) => {
                    let until = now.after_ms(wait);
                    let (code, made) = (reason, true);
                    Body::Delivery(DeliveryCommand::DeferEffect(DeferEffect {
                        number,
                        attempt,
                        until,
                        code,
                        message,
                        made,
                    }))
                }
                None => {
                    let round = Some(attempt.round);
                    Body::Delivery(DeliveryCommand::FailEffect(FailEffect {
                        number,
                        code: reason,
                        message,
                        round,
                    }))
                }
            }
        }
    };
    Some(Command::of_server(TenantId(job.tenant), scope_of_effects(session), body))
}

/// How long a message to an endpoint waits before its next attempt, milliseconds; `None` if there is none.
fn next_hook(job: &DeliveryJob, attempt: Attempt, wanted_ms: Option<u64>) -> Option<u64> {
    let digest = Digest::of(job.idempotency_key.as_bytes());
    let seed = digest.0.iter().take(8).fold(0, |seed, byte| (seed << 8) | u64::from(*byte));
    // The attempt that has failed is the number of those before it, and one more; the next is another one.
    let wait = wait(attempt.number.saturating_add(2), wanted_ms.map(Duration::from_millis), seed)?;
    u64::try_from(wait.as_millis()).ok()
}

/// Failures that would be the same next time.
const FINAL: [&str; 8] = [
    "mail_rejected",
    "mail_invalid",
    "errand_invalid",
    "url_invalid",
    "scheme_refused",
    "host_refused",
    "request_invalid",
    "request_too_large",
];

/// How long to wait before the next attempt, at least `wanted_ms`; `None` if there is none.
fn next(attempt: Attempt, waits_ms: &[u64], wanted_ms: Option<u64>) -> Option<u64> {
    let wait = *waits_ms.get(usize::try_from(attempt.number).ok()?)?;
    Some(wait.max(wanted_ms.unwrap_or_default()))
}
