//! Callers at a moderate rate: what they notice of a change of the cluster is not the queue of a busy machine.

use anyhow::Context as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tonic::Status;

use super::writers::{Product, Target as _, insist};
use crate::load::{NOTE, STATES};

/// How long a caller rests after each call.
const PAUSE: Duration = Duration::from_millis(50);

static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Callers that carry out one session after another, each with a start and three answers. They end with this value.
pub(super) struct Others {
    calls: Arc<Mutex<Vec<Duration>>>,
    ends: Arc<AtomicBool>,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Others {
    /// Begins to call with this many callers, the first ones at the servers in turn.
    pub(super) fn start(product: &Product, callers: usize) -> Self {
        let (calls, ends, mut tasks) =
            (Arc::<Mutex<Vec<Duration>>>::default(), Arc::<AtomicBool>::default(), JoinSet::new());
        for caller in 0..callers {
            let (product, calls, ends) = (product.clone(), Arc::clone(&calls), Arc::clone(&ends));
            tasks.spawn(async move {
                let mut server = caller;
                while !ends.load(Ordering::Relaxed) {
                    let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
                    let id = format!("other-{}-{number}", std::process::id());
                    for step in 0..=STATES.len() {
                        let begun = Instant::now();
                        let call = |server| {
                            let (product, id) = (&product, &id);
                            async move { carry_out(product, server, id, step).await }
                        };
                        let ((), failed) =
                            insist(product.servers(), server, product.answer_max(), call).await?;
                        calls.lock().await.push(begun.elapsed());
                        // A client stays at the server that has answered it.
                        server += usize::try_from(failed)?;
                        sleep(PAUSE).await;
                    }
                }
                anyhow::Ok(())
            });
        }
        Self { calls, ends, tasks }
    }

    /// How long each call took since the last call of this, until it was answered: attempts that failed are part of it.
    ///
    /// # Errors
    /// A call was refused, or not answered in time.
    pub(super) async fn take(&mut self) -> anyhow::Result<Vec<Duration>> {
        if let Some(ended) = self.tasks.try_join_next() {
            ended??;
            anyhow::bail!("a caller has ended");
        }
        Ok(std::mem::take(&mut *self.calls.lock().await))
    }

    /// Ends all callers after their sessions.
    ///
    /// # Errors
    /// A call was refused, or not answered in time.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.ends.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

/// Makes one call of a session at a server: its start if `step` is 0, or else an answer. It is safe to repeat.
async fn carry_out(product: &Product, server: usize, id: &str, step: usize) -> Result<(), Status> {
    let (mut client, request_id) = (product.clients[server].clone(), format!("{id}-{step}"));
    let Some(state) = step.checked_sub(1).map(|answered| STATES[answered]) else {
        let start = v1::StartSessionRequest {
            definition: "deploy-gate".into(),
            session_id: id.to_owned(),
            request_id,
            ..v1::StartSessionRequest::default()
        };
        return client.start_session(product.request(start)).await.map(drop);
    };
    let answer = v1::AnswerCheckpointRequest {
        name: id.to_owned(),
        state: state.into(),
        answer: "yes".into(),
        note: NOTE.into(),
        request_id,
        ..v1::AnswerCheckpointRequest::default()
    };
    client.answer_checkpoint(product.request(answer)).await.map(drop)
}

/// What 99 of 100 calls took at most, milliseconds.
///
/// # Errors
/// There are no calls.
pub(super) fn p99_ms(mut calls: Vec<Duration>) -> anyhow::Result<f64> {
    calls.sort_unstable();
    let at = (calls.len() * 99).div_ceil(100).saturating_sub(1);
    let p99 = calls.get(at).context("no call was answered")?;
    Ok(p99.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_of_a_hundred_may_take_longer_than_the_p99() {
        let calls = |count| (1..=count).rev().map(Duration::from_millis).collect::<Vec<_>>();
        assert_eq!(p99_ms(calls(100)).unwrap(), 99.0);
        assert_eq!(p99_ms(calls(1_000)).unwrap(), 990.0);
        assert_eq!(p99_ms(calls(1)).unwrap(), 1.0);
        assert!(p99_ms(Vec::new()).is_err());
    }
}
