//! Callers at one time, and how far they have come together.

use anyhow::Context as _;
use std::future::Future;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The default number of concurrent callers.
pub(crate) const CALLERS: usize = 64;
/// The longest that callers may need for the next few answers.
const PROGRESS_MAX: Duration = Duration::from_secs(180);

/// A number that grows, and that others wait for.
#[derive(Clone)]
pub(crate) struct Counter(watch::Sender<u64>);

impl Counter {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn add(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    pub(crate) fn now(&self) -> u64 {
        *self.0.borrow()
    }
}

/// Callers that run until all work is done.
pub(crate) struct Crew {
    tasks: JoinSet<anyhow::Result<()>>,
    answers: Counter,
}

impl Crew {
    /// Begins all callers; each counts its answers.
    pub(crate) fn begin<F>(count: usize, answers: &Counter, task: impl Fn(usize) -> F) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for caller in 0..count {
            tasks.spawn(task(caller));
        }
        Self { tasks, answers: answers.clone() }
    }

    /// Waits until there are this many answers, or until no caller is left.
    ///
    /// # Errors
    /// What made a caller give up.
    pub(crate) async fn until(&mut self, count: u64) -> anyhow::Result<()> {
        let mut answers = self.answers.0.subscribe();
        let reached = async {
            loop {
                // Both may be asked again: an ended caller is taken out once, and the count only grows.
                tokio::select! {
                    reached = answers.wait_for(|now| *now >= count) => return reached.map(drop).map_err(Into::into),
                    ended = self.tasks.join_next() => match ended {
                        Some(ended) => ended??,
                        None => return anyhow::Ok(()),
                    },
                }
            }
        };
        timeout(PROGRESS_MAX, reached).await.context("the callers get no answers")?
    }

    /// Waits for all callers.
    ///
    /// # Errors
    /// What made a caller give up.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}
