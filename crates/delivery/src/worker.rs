//! The delivery worker: takes delivery jobs from the bus, performs them, and reports their outcomes.
//!
//! A job is performed at least once and its outcome reported at least once; the receiver recognises an outcome by the job's
//! token and takes the first. If a worker dies, another takes its deliveries after the bus's idle time.

mod job;
mod perform;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use switchward_bus::Bus;

pub use job::{DeliveryJob, JobError};
pub use perform::{HOOK, MAIL, POST};

use crate::Failed;
use crate::http::Client;
use crate::limits::{JOBS_MAX, WORKER_DRAIN_MS, WORKER_KEEP_MS};
use crate::mail::{Post, Sender};
use crate::model::Model;

/// The outcome of a delivery job.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The result. For `http` it is `{"status", "body"}` of the answer, whatever its status.
    Done(Value),
    /// The job failed.
    Failed {
        /// The stable code of [`Reason::code`](crate::Reason::code).
        reason: String,
        /// What happened.
        message: String,
        /// How long to wait before the next attempt, if the other side said so.
        retry_after_ms: Option<u64>,
    },
}

impl From<Failed> for Outcome {
    fn from(failed: Failed) -> Self {
        let ms = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Self::Failed {
            reason: failed.reason.code().to_owned(),
            message: failed.message,
            retry_after_ms: failed.retry_after.map(ms),
        }
    }
}

/// Why an outcome was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerError {
    /// Nobody waits for it any more: the job is dropped.
    Gone,
    /// It cannot be accepted now: the job stays on the bus and is performed again after the idle time.
    Later,
}

/// Receives the outcomes of delivery jobs.
#[async_trait]
pub trait Answers: Send + Sync + 'static {
    /// Returns true if the outcome of a job is still wanted, or if that is not known now. A job whose outcome is not wanted,
    /// as another delivery of it was performed meanwhile, is not performed again.
    async fn wanted(&self, job: &DeliveryJob) -> bool;

    /// Receives an outcome. May be called more than once for one job, with different outcomes.
    ///
    /// # Errors
    ///
    /// [`AnswerError`] decides what happens to the job.
    async fn answer(&self, job: &DeliveryJob, outcome: Outcome) -> Result<(), AnswerError>;
}

/// A delivery worker's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Its name among the consumers of the bus. Unique among the workers.
    pub consumer: String,
    /// HTTP requests at one time, at most [`JOBS_MAX`].
    pub http_jobs: usize,
    /// Questions to models at one time, at most [`JOBS_MAX`] and what the model asks at one time.
    pub model_jobs: usize,
    /// Mails at one time, at most [`JOBS_MAX`].
    pub mail_jobs: usize,
    /// Messages to URLs at one time, at most [`JOBS_MAX`].
    pub post_jobs: usize,
    /// How often it tells the bus that it still works on its deliveries. Well below the bus's idle time.
    pub keep: Duration,
    /// How long it continues with jobs that it has begun after a stop; then they are released to the bus.
    pub drain: Duration,
}

impl Config {
    /// A configuration with the values of [`limits`](crate::limits).
    #[must_use]
    pub fn new(consumer: String) -> Self {
        Self {
            consumer,
            http_jobs: JOBS_MAX,
            model_jobs: JOBS_MAX,
            mail_jobs: JOBS_MAX,
            post_jobs: JOBS_MAX,
            keep: Duration::from_millis(WORKER_KEEP_MS),
            drain: Duration::from_millis(WORKER_DRAIN_MS),
        }
    }
}

/// A consumer of the bus. [`run`](Self::run) works until it is stopped.
pub struct DeliveryWorker {
    bus: Arc<dyn Bus>,
    answers: Arc<dyn Answers>,
    client: Client,
    model: Option<Model>,
    mail: Option<MailChannel>,
    config: Config,
    /// The names of the jobs in progress.
    in_hand: Mutex<BTreeSet<String>>,
}

/// Who writes mails, and who takes them.
#[derive(Clone)]
pub struct MailChannel {
    /// The sender.
    pub sender: Arc<Sender>,
    /// The transport of composed mails.
    pub post: Arc<dyn Post>,
}

impl DeliveryWorker {
    /// Creates a worker. Without a model, jobs for one fail with
    /// [`Reason::NotConfigured`](crate::Reason::NotConfigured).
    #[must_use]
    pub fn new(
        bus: Arc<dyn Bus>,
        answers: Arc<dyn Answers>,
        client: Client,
        model: Option<Model>,
        config: Config,
    ) -> Self {
        Self { bus, answers, client, model, mail: None, config, in_hand: Mutex::default() }
    }

    /// Adds a mail channel; without one, mails fail with
    /// [`Reason::NotConfigured`](crate::Reason::NotConfigured).
    #[must_use]
    pub fn with_mail(self, channel: Option<MailChannel>) -> Self {
        Self { mail: channel, ..self }
    }
}
