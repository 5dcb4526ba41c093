//! The delivery worker: takes delivery jobs from the bus, performs them, and reports their outcomes.
//!
//! A job is performed at least once and its outcome reported at least once; the receiver recognises an outcome by the job's
//! origin and takes the first. If a worker dies, another takes its deliveries after the bus's idle time.

mod head;
mod ids;
mod job;
mod perform;
mod run;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use switchward_bus::{Bus, Receipt};

pub use head::{JobChannel, JobHead};
pub use job::{DeliveryJob, JobError, JobInput, Origin};

use crate::Failed;
use crate::channels::{Answer, MailChannel};
use crate::http::Client;
use crate::limits::{JOBS_MAX, WORKER_DRAIN_MS, WORKER_KEEP_MS};
use crate::model::Model;

/// The outcome of a delivery job.
pub type Outcome = Result<Delivered, Failed>;

/// The result of a delivery job, by channel.
#[derive(Debug, Clone, PartialEq)]
pub enum Delivered {
    /// The answer to a request, whatever its status.
    Http(Answer),
    /// The result of a question, which meets its schema.
    Model(Value),
    /// The mail server accepted the mail.
    Mail {
        /// The message id, without the angle brackets.
        message_id: String,
    },
    /// The receiver answered with success.
    Webhook {
        /// The HTTP status.
        status: u16,
    },
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
    /// How often it reports to the bus that it still works on its deliveries. Well below the bus's idle time.
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
    /// The jobs in progress by name, with the deliveries by which they came.
    in_hand: Mutex<BTreeMap<String, Receipt>>,
}

impl DeliveryWorker {
    /// Creates a worker. Without a model, jobs for one fail with
    /// [`DeliveryReason::NotConfigured`](crate::DeliveryReason::NotConfigured).
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
    /// [`DeliveryReason::NotConfigured`](crate::DeliveryReason::NotConfigured).
    #[must_use]
    pub fn with_mail(self, channel: Option<MailChannel>) -> Self {
        Self { mail: channel, ..self }
    }
}
