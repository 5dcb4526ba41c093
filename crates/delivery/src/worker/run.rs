//! The loops that take delivery jobs and complete them.

use std::collections::btree_map::Entry;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use switchward_bus::{BusError, Delivery, Receipt, Stream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::{AnswerError, DeliveryJob, DeliveryWorker, Origin};
use crate::limits::{JOBS_MAX, WORKER_KEEP_MS, WORKER_RETRY_MS, WORKER_WAIT_MS};
use crate::model::Model;

impl DeliveryWorker {
    /// Works until `stop` is true, its sender is dropped, or the bus is closed. Jobs that were begun by then are finished
    /// within the configured time, or released to the bus. If the future is dropped, other workers take its deliveries
    /// after the bus's idle time.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let worker = Arc::new(self);
        let config = &worker.config;
        // No more than can be asked at once: what would only wait here is left to other workers.
        let asked = worker.model.as_ref().map_or(usize::MAX, Model::concurrent_calls);
        tokio::join!(
            attend(&worker, Stream::Http, config.http_jobs, stop.clone()),
            attend(&worker, Stream::Model, config.model_jobs.min(asked), stop.clone()),
            attend(&worker, Stream::Mail, config.mail_jobs, stop.clone()),
            attend(&worker, Stream::Webhook, config.post_jobs, stop.clone()),
        );
    }

    /// Completes one delivery: performs its job and reports the outcome, or releases it.
    async fn see_through(&self, stream: Stream, delivery: Delivery, stop: watch::Receiver<bool>) {
        let receipt = [delivery.receipt.clone()];
        let mut working = pin!(self.work(stream, &delivery));
        let mut cut = pin!(async {
            stopped(stop).await;
            sleep(self.config.drain).await;
        });
        let period =
            self.config.keep.max(Duration::from_millis(1)).min(Duration::from_millis(WORKER_KEEP_MS));
        let mut heartbeats = interval_at(Instant::now() + period, period);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // All three live across iterations, so that none loses its progress.
            tokio::select! {
                () = &mut working => return,
                () = &mut cut => {
                    let given_back = self.bus.release(stream, &self.config.consumer, &receipt).await;
                    log_failure(stream, "give back", given_back);
                    return;
                }
                _ = heartbeats.tick() => {
                    log_failure(stream, "keep", self.bus.keep(stream, &self.config.consumer, &receipt).await);
                }
            }
        }
    }

    async fn work(&self, stream: Stream, delivery: &Delivery) {
        let (envelope, taken) = (&delivery.envelope, Instant::now());
        let job = match DeliveryJob::read(envelope) {
            Ok(job) => job,
            Err(error) => {
                tracing::error!(%stream, tenant = envelope.tenant, id = %envelope.id, %error, "dropped a delivery job");
                return self.end(stream, &delivery.receipt).await;
            }
        };
        // A job whose id is free on the bus is published again, so two deliveries may come at once.
        let _held = match InHand::of(self, &job.name(), &delivery.receipt) {
            Ok(held) => held,
            Err(by) => {
                tracing::debug!(?job, count = delivery.count, "a delivery job is already in progress");
                // No heartbeat has reached the bus for long. The delivery is ended by what is in progress, and not before.
                if by == delivery.receipt {
                    return;
                }
                return self.end(stream, &delivery.receipt).await;
            }
        };
        // Asked only now: before, another delivery might end between the answer and the beginning of this one.
        if !self.answers.wanted(&job).await {
            tracing::debug!(?job, count = delivery.count, "a delivery job is no longer needed");
            return self.end(stream, &delivery.receipt).await;
        }
        if let Origin::Ping { .. } = job.origin {
            self.ping(&job, delivery, taken).await;
            return self.end(stream, &delivery.receipt).await;
        }
        let outcome = self.perform(&job, delivery.age.saturating_add(taken.elapsed())).await;
        tracing::debug!(?job, count = delivery.count, failed = outcome.is_err(), "finished a delivery job");
        match self.answers.answer(&job, outcome).await {
            Ok(()) | Err(AnswerError::Gone) => self.end(stream, &delivery.receipt).await,
            Err(AnswerError::Later) => {
                tracing::debug!(?job, "failed to report the outcome of a delivery job; it stays on the bus");
            }
        }
    }

    async fn end(&self, stream: Stream, receipt: &Receipt) {
        log_failure(stream, "acknowledge", self.bus.ack(stream, std::slice::from_ref(receipt)).await);
    }
}

/// A job in progress here, until it is dropped.
struct InHand<'d>(&'d DeliveryWorker, String);

impl<'d> InHand<'d> {
    /// Begins a job that came by this delivery.
    ///
    /// # Errors
    /// It is in progress already, by the delivery that is returned.
    fn of(worker: &'d DeliveryWorker, name: &str, receipt: &Receipt) -> Result<Self, Receipt> {
        match worker.in_hand.lock().entry(name.to_owned()) {
            Entry::Occupied(known) => Err(known.get().clone()),
            Entry::Vacant(free) => {
                free.insert(receipt.clone());
                Ok(Self(worker, name.to_owned()))
            }
        }
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.in_hand.lock().remove(&self.1);
    }
}

/// Takes from one stream as long as there are permits. Takes nothing that cannot be begun at once.
async fn attend(worker: &Arc<DeliveryWorker>, stream: Stream, jobs: usize, stop: watch::Receiver<bool>) {
    let permits = Arc::new(Semaphore::new(jobs.clamp(1, JOBS_MAX)));
    let mut begun = JoinSet::new();
    let mut ended = pin!(stopped(stop.clone()));
    loop {
        // A take is dropped only when the worker ends; what it took by then comes again after the idle time.
        let taken = tokio::select! {
            biased;
            () = &mut ended => break,
            taken = take(worker, stream, &permits) => taken,
        };
        let deliveries = match taken {
            Ok(deliveries) => deliveries,
            Err(None) => break,
            Err(Some(wait)) => {
                tokio::select! {
                    () = &mut ended => break,
                    () = sleep(wait) => continue,
                }
            }
        };
        for delivery in deliveries {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
            let (worker, stop) = (Arc::clone(worker), stop.clone());
            begun.spawn(async move {
                let _permit = permit;
                worker.see_through(stream, delivery, stop).await;
            });
        }
        while let Some(ended) = begun.try_join_next() {
            log_panic(stream, ended);
        }
    }
    while let Some(ended) = begun.join_next().await {
        log_panic(stream, ended);
    }
}

/// Waits for a permit, and then for deliveries. An error is the wait before the next attempt, or `None` to stop.
async fn take(
    worker: &DeliveryWorker,
    stream: Stream,
    permits: &Semaphore,
) -> Result<Vec<Delivery>, Option<Duration>> {
    // Only this loop takes permits, so those that are free now stay free.
    drop(permits.acquire().await);
    let free = permits.available_permits();
    let wait = Duration::from_millis(WORKER_WAIT_MS);
    let error = match worker.bus.take(stream, &worker.config.consumer, free, wait).await {
        Ok(deliveries) => return Ok(deliveries),
        Err(error) => error,
    };
    match error {
        BusError::Closed => Err(None),
        BusError::Size { .. } => {
            tracing::error!(%stream, %error, "a delivery worker stops: it cannot take from the bus");
            Err(None)
        }
        // The bus itself logs that it cannot be reached, once for all its consumers.
        BusError::Unreachable { retry_after, .. } | BusError::Full { retry_after, .. } => {
            tracing::debug!(%stream, %error, "failed to take delivery jobs");
            Err(Some(retry_after.max(Duration::from_millis(WORKER_RETRY_MS))))
        }
    }
}

/// Completes when the worker is stopped.
async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender was dropped, which also stops the worker.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn log_failure(stream: Stream, what: &'static str, result: Result<(), BusError>) {
    if let Err(error) = result {
        tracing::warn!(%stream, %error, "failed to {what} a delivery job; it may come again");
    }
}

fn log_panic(stream: Stream, ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%stream, %error, "the task of a delivery job panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use serde_json::{Value, json};
    use switchward_bus::{Bus as _, Memory, Published, Settings};
    use switchward_machine::{OpenId, SessionId, TenantId};
    use tokio::sync::Notify;
    use tokio::time::timeout;

    use super::*;
    use crate::guard::Egress;
    use crate::http::{Client, Config as ClientConfig};
    use crate::model::{Kind, Question};
    use crate::worker::{Answers, Config, JobInput, Outcome};

    const SOON: Duration = Duration::from_secs(30);

    /// Accepts the first outcome only once a second delivery has ended, or asks whether its outcome is wanted. That one gets
    /// the answer of the moment when it asked, and only once the first delivery has ended.
    #[derive(Default)]
    struct Overlapping {
        asked: AtomicUsize,
        accepted: AtomicUsize,
        reporting: Notify,
        second_came: Notify,
        first_ended: Notify,
    }

    #[async_trait]
    impl Answers for Overlapping {
        async fn wanted(&self, _: &DeliveryJob) -> bool {
            if self.asked.fetch_add(1, Ordering::SeqCst) > 0 {
                self.second_came.notify_one();
                self.first_ended.notified().await;
            }
            true
        }

        async fn answer(&self, _: &DeliveryJob, _: Outcome) -> Result<(), AnswerError> {
            if self.accepted.fetch_add(1, Ordering::SeqCst) == 0 {
                self.reporting.notify_one();
                self.second_came.notified().await;
            }
            Ok(())
        }
    }

    /// A job that fails at once, as the worker has no model.
    fn job() -> DeliveryJob {
        let question = Question::read(Kind::Judge, &json!({ "rubric": "It is polite.", "data": {} }));
        let question = question.expect("the question is readable");
        DeliveryJob {
            tenant: TenantId(7),
            session: SessionId([7; 16]),
            origin: Origin::Work { item: OpenId(3), fence: 5 },
            input: JobInput::Model { question, result_schema: Value::Null },
            ttl_ms: 90_000,
            idempotency_key: "ses_1:3:judge".to_owned(),
            traceparent: None,
        }
    }

    fn worker(answers: &Arc<Overlapping>, bus: &Arc<Memory>) -> DeliveryWorker {
        let egress = Arc::new(Egress::default());
        let client = ClientConfig::new(Arc::new(move |_: u32| Arc::clone(&egress)));
        let client = Client::new(client).expect("the client can be set up");
        DeliveryWorker::new(bus.clone(), answers.clone(), client, None, Config::new("one".to_owned()))
    }

    #[tokio::test]
    async fn a_second_delivery_is_not_performed_though_the_first_ends_while_it_is_asked_about() {
        let answers = Arc::new(Overlapping::default());
        let worker = worker(&answers, &Arc::new(Memory::new(Settings::default())));
        let delivery = |receipt: &str| Delivery {
            receipt: Receipt::new(receipt.to_owned()),
            envelope: job().envelope(),
            count: 1,
            age: Duration::ZERO,
        };
        let (first, second) = (delivery("1"), delivery("2"));
        let first = async {
            worker.work(Stream::Model, &first).await;
            answers.first_ended.notify_one();
        };
        let second = async {
            answers.reporting.notified().await;
            worker.work(Stream::Model, &second).await;
            answers.second_came.notify_one();
        };
        let both = async { tokio::join!(first, second) };
        timeout(SOON, both).await.expect("both deliveries end");
        assert_eq!(answers.accepted.load(Ordering::SeqCst), 1, "the job was performed again");
        assert!(worker.in_hand.lock().is_empty(), "the job is released");
    }

    /// It comes again if no heartbeat has reached the bus for long.
    #[tokio::test]
    async fn a_delivery_that_comes_again_while_it_is_in_progress_stays_on_the_bus() {
        let (answers, bus) = (Arc::new(Overlapping::default()), Arc::new(Memory::new(Settings::default())));
        let worker = worker(&answers, &bus);
        let publish = || bus.publish(Stream::Model, job().envelope());
        assert_eq!(publish().await, Ok(Published::Added));
        let taken = bus.take(Stream::Model, "one", 1, SOON).await.expect("the bus is open");
        let [delivery] = &taken[..] else { panic!("{taken:?}") };
        let again = async {
            answers.reporting.notified().await;
            worker.work(Stream::Model, delivery).await;
            assert_eq!(publish().await, Ok(Published::Already), "the delivery is gone");
            answers.second_came.notify_one();
        };
        let both = async { tokio::join!(worker.work(Stream::Model, delivery), again) };
        timeout(SOON, both).await.expect("both deliveries end");
        assert_eq!(answers.accepted.load(Ordering::SeqCst), 1, "the job was performed again");
        assert_eq!(publish().await, Ok(Published::Added), "the delivery has ended");
    }
}
