//! The loops that take errands and see them through.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use switchward_bus::{BusError, Delivery, Receipt, Stream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::{AnswerError, Desk, Errand};
use crate::limits::{DESK_KEEP_MS, DESK_RETRY_MS, DESK_WAIT_MS, ERRANDS_MAX};
use crate::model::Model;

impl Desk {
    /// Works until `stop` says true, its sender is gone, or the bus is closed. What was begun by then is finished within
    /// the time that the configuration gives, or given back to the bus. Dropping the future leaves what it holds to other
    /// desks, after the bus's idle time.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let desk = Arc::new(self);
        let config = &desk.config;
        // No more than can be asked at once: what would only wait here is left to other desks.
        let asked = desk.model.as_ref().map_or(usize::MAX, Model::concurrent_calls);
        tokio::join!(
            attend(&desk, Stream::Http, config.http_errands, stop.clone()),
            attend(&desk, Stream::Model, config.model_errands.min(asked), stop.clone()),
            attend(&desk, Stream::Mail, config.mail_errands, stop.clone()),
            attend(&desk, Stream::Webhook, config.post_errands, stop.clone()),
        );
    }

    /// Sees one delivery through: its errand is done and answered, or it is given back.
    async fn see_through(&self, stream: Stream, delivery: Delivery, stop: watch::Receiver<bool>) {
        let receipt = [delivery.receipt.clone()];
        let mut working = pin!(self.work(stream, &delivery));
        let mut cut = pin!(async {
            stopped(stop).await;
            sleep(self.config.drain).await;
        });
        let period = self.config.keep.max(Duration::from_millis(1)).min(Duration::from_millis(DESK_KEEP_MS));
        let mut signs = interval_at(Instant::now() + period, period);
        signs.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // All three are kept over the rounds, so that none loses what it has done.
            tokio::select! {
                () = &mut working => return,
                () = &mut cut => {
                    let given_back = self.bus.release(stream, &self.config.consumer, &receipt).await;
                    tell(stream, "give back", given_back);
                    return;
                }
                _ = signs.tick() => {
                    tell(stream, "keep", self.bus.keep(stream, &self.config.consumer, &receipt).await);
                }
            }
        }
    }

    async fn work(&self, stream: Stream, delivery: &Delivery) {
        let envelope = &delivery.envelope;
        let errand = match Errand::read(envelope) {
            Ok(errand) => errand,
            Err(error) => {
                tracing::error!(%stream, tenant = envelope.tenant, id = %envelope.id, %error, "an errand is dropped");
                return self.end(stream, &delivery.receipt).await;
            }
        };
        if !self.answers.wanted(&errand).await {
            tracing::debug!(?errand, count = delivery.count, "an errand is wanted no more");
            return self.end(stream, &delivery.receipt).await;
        }
        // Where it is not known whether the bus took an errand it is put there twice, and both may come at once.
        let Some(_held) = InHand::of(self, &errand.name) else {
            tracing::debug!(?errand, count = delivery.count, "an errand is being done already");
            return self.end(stream, &delivery.receipt).await;
        };
        let outcome = self.perform(&errand).await;
        tracing::debug!(?errand, count = delivery.count, "an errand was done");
        match self.answers.answer(&errand, outcome).await {
            Ok(()) | Err(AnswerError::Gone) => self.end(stream, &delivery.receipt).await,
            Err(AnswerError::Later) => {
                tracing::debug!(?errand, "an outcome could not be handed on, the errand stays");
            }
        }
    }

    async fn end(&self, stream: Stream, receipt: &Receipt) {
        tell(stream, "acknowledge", self.bus.ack(stream, std::slice::from_ref(receipt)).await);
    }
}

/// An errand that is being done here, until it is dropped.
struct InHand<'d>(&'d Desk, String);

impl<'d> InHand<'d> {
    /// Nothing where it is being done already.
    fn of(desk: &'d Desk, name: &str) -> Option<Self> {
        desk.in_hand.lock().insert(name.to_owned()).then(|| Self(desk, name.to_owned()))
    }
}

impl Drop for InHand<'_> {
    fn drop(&mut self) {
        self.0.in_hand.lock().remove(&self.1);
    }
}

/// Takes from one stream as long as there is room. Nothing is taken that cannot be begun at once.
async fn attend(desk: &Arc<Desk>, stream: Stream, errands: usize, stop: watch::Receiver<bool>) {
    let places = Arc::new(Semaphore::new(errands.clamp(1, ERRANDS_MAX)));
    let mut begun = JoinSet::new();
    let mut ended = pin!(stopped(stop.clone()));
    loop {
        // A take is dropped only when the desk ends; what it took by then comes again after the idle time.
        let taken = tokio::select! {
            biased;
            () = &mut ended => break,
            taken = take(desk, stream, &places) => taken,
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
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
            let (desk, stop) = (Arc::clone(desk), stop.clone());
            begun.spawn(async move {
                let _place = place;
                desk.see_through(stream, delivery, stop).await;
            });
        }
        while let Some(ended) = begun.try_join_next() {
            tell_panic(stream, ended);
        }
    }
    while let Some(ended) = begun.join_next().await {
        tell_panic(stream, ended);
    }
}

/// Waits for room, and then for deliveries. An error says how long to wait before the next try; none, that there is none.
async fn take(desk: &Desk, stream: Stream, places: &Semaphore) -> Result<Vec<Delivery>, Option<Duration>> {
    // Only this loop takes places, so those that are free now stay free.
    drop(places.acquire().await);
    let free = places.available_permits();
    let wait = Duration::from_millis(DESK_WAIT_MS);
    let error = match desk.bus.take(stream, &desk.config.consumer, free, wait).await {
        Ok(deliveries) => return Ok(deliveries),
        Err(error) => error,
    };
    match error {
        BusError::Closed => Err(None),
        BusError::Size { .. } => {
            tracing::error!(%stream, %error, "a desk cannot work");
            Err(None)
        }
        // The bus tells by itself that it cannot be reached, and once for all who take from it.
        BusError::Unreachable { retry_after, .. } | BusError::Full { retry_after, .. } => {
            tracing::debug!(%stream, %error, "nothing could be taken");
            Err(Some(retry_after.max(Duration::from_millis(DESK_RETRY_MS))))
        }
    }
}

/// Comes to its end when the desk is told to stop.
async fn stopped(mut stop: watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whoever would say so.
    let _ = stop.wait_for(|stop| *stop).await;
}

fn tell(stream: Stream, what: &'static str, result: Result<(), BusError>) {
    if let Err(error) = result {
        tracing::warn!(%stream, %error, "failed to {what} a delivery, it may come again");
    }
}

fn tell_panic(stream: Stream, ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%stream, %error, "an errand ended its task");
    }
}
