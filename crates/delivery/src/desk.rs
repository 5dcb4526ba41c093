//! Where errands are taken from the bus, done, and answered.
//!
//! An errand is done at least once and answered at least once; whoever gets the answer knows it by its token and takes
//! the first. A desk that dies leaves its deliveries to the next, after the bus's idle time.

mod errand;
mod perform;
mod run;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use switchward_bus::Bus;

pub use errand::{Errand, ErrandError};
pub use perform::{HOOK, MAIL, POST};

use crate::Failed;
use crate::http::Client;
use crate::limits::{DESK_DRAIN_MS, DESK_KEEP_MS, ERRANDS_MAX};
use crate::mail::{Post, Sender};
use crate::model::Model;

/// What came of an errand.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Its result. For `http` that is `{"status", "body"}` of every answer, whatever its status.
    Done(Value),
    /// It has none.
    Failed {
        /// A stable word, as [`Reason::code`](crate::Reason::code) gives it.
        reason: String,
        /// What happened, in words.
        message: String,
        /// How long to wait before another try, where the other side said so.
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

/// Why an answer was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerError {
    /// Nobody waits for it any more: the errand is forgotten.
    Gone,
    /// It cannot be taken now: the errand stays on the bus and is done again after the idle time.
    Later,
}

/// Takes the outcomes of errands.
#[async_trait]
pub trait Answers: Send + Sync + 'static {
    /// Whether anybody still waits for what comes of an errand. One that is wanted no more, as it was done under another
    /// delivery meanwhile, is not done again. Where that cannot be known now, it is wanted.
    async fn wanted(&self, errand: &Errand) -> bool;

    /// Takes an outcome. It may be called more than once for one errand, with outcomes that differ.
    ///
    /// # Errors
    ///
    /// [`AnswerError`] says what becomes of the errand.
    async fn answer(&self, errand: &Errand, outcome: Outcome) -> Result<(), AnswerError>;
}

/// What of a desk can be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Its name among the consumers of the bus. No two desks have the same.
    pub consumer: String,
    /// HTTP requests at one time, at most [`ERRANDS_MAX`].
    pub http_errands: usize,
    /// Questions to models at one time, at most [`ERRANDS_MAX`] and what the model asks at one time.
    pub model_errands: usize,
    /// Mails at one time, at most [`ERRANDS_MAX`].
    pub mail_errands: usize,
    /// Messages to URLs at one time, at most [`ERRANDS_MAX`].
    pub post_errands: usize,
    /// How often it tells the bus that it still works on what it holds. Well below the bus's idle time.
    pub keep: Duration,
    /// How long it goes on with what it has begun after it was told to stop; then that is given back to the bus.
    pub drain: Duration,
}

impl Config {
    /// With the numbers of [`limits`](crate::limits).
    #[must_use]
    pub fn new(consumer: String) -> Self {
        Self {
            consumer,
            http_errands: ERRANDS_MAX,
            model_errands: ERRANDS_MAX,
            mail_errands: ERRANDS_MAX,
            post_errands: ERRANDS_MAX,
            keep: Duration::from_millis(DESK_KEEP_MS),
            drain: Duration::from_millis(DESK_DRAIN_MS),
        }
    }
}

/// A consumer of the bus. [`run`](Self::run) works until it is told to stop.
pub struct Desk {
    bus: Arc<dyn Bus>,
    answers: Arc<dyn Answers>,
    client: Client,
    model: Option<Model>,
    mail: Option<Office>,
    config: Config,
    /// The names of the errands that are being done.
    in_hand: Mutex<BTreeSet<String>>,
}

/// Who writes mails, and who takes them.
#[derive(Clone)]
pub struct Office {
    /// Who writes.
    pub sender: Arc<Sender>,
    /// Who takes what was written.
    pub post: Arc<dyn Post>,
}

impl Desk {
    /// A desk that has not begun. Without a model, errands for one fail with
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

    /// The same, which sends mails too; without it they fail with
    /// [`Reason::NotConfigured`](crate::Reason::NotConfigured).
    #[must_use]
    pub fn with_mail(self, office: Option<Office>) -> Self {
        Self { mail: office, ..self }
    }
}
