//! The transport of timers: a batch of due timers goes out as one envelope, and its consumer fires it in the shard that
//! handed it out, whichever server leads that. The record is the shard's index: what the bus loses, its leader fires itself.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backon::{ConstantBuilder, Retryable as _};
use switchward_bus::{Bus, BusError, Delivery, Envelope, Stream};
use switchward_shard::limits::FIRE_WAIT;
use switchward_shard::{Cluster, Failure, Fired, NotAccepted, TimerBatch, TimerTransport};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// Batches that one taker fires at one time.
const BATCHES_MAX: usize = 16;
/// How long a take waits for something to come.
const TAKE_WAIT: Duration = Duration::from_secs(30);
/// How long to wait after the bus could not be reached.
const RETRY: Duration = Duration::from_secs(1);
/// How often a server offers a batch again to a leader that it does not know or reach. Together with the waits this is
/// well below the time after which a leader takes a batch for lost.
const OFFERS_AGAIN: usize = 4;
/// The wait between two offers.
const PAUSE: Duration = Duration::from_millis(50);
/// How many servers try to reach the leader of one batch; then its leader fires it.
const SERVERS_MAX: u32 = 2;
/// Envelopes hold timers of several tenants.
const NOBODY: u32 = 0;

/// Puts batches on the bus.
pub(super) struct ToBus(pub(super) Arc<dyn Bus>);

impl TimerTransport for ToBus {
    fn hand_out(
        &self,
        batch: TimerBatch,
    ) -> Pin<Box<dyn Future<Output = Result<(), NotAccepted>> + Send + '_>> {
        Box::pin(async move {
            let envelope = Envelope { tenant: NOBODY, id: batch.name(), body: batch.encode() };
            let published = self.0.publish(Stream::Timer, envelope).await;
            published.map(drop).map_err(|error| NotAccepted(error.to_string()))
        })
    }
}

/// Fires what comes, until it is stopped or the bus is closed. What it holds then is fired by its leaders.
pub(super) async fn take(
    cluster: Cluster,
    bus: Arc<dyn Bus>,
    consumer: String,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(BATCHES_MAX));
    let mut firing = JoinSet::new();
    loop {
        // Only this loop takes permits, so those that are free now stay free.
        drop(permits.acquire().await);
        let free = permits.available_permits();
        // A take that is dropped loses nothing that its leader does not fire itself.
        let taken = tokio::select! {
            taken = bus.take(Stream::Timer, &consumer, free, TAKE_WAIT) => taken,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let deliveries = match taken {
            Ok(deliveries) => deliveries,
            Err(BusError::Closed) => break,
            Err(error @ (BusError::Size { .. } | BusError::Full { .. } | BusError::Unreachable { .. })) => {
                tracing::debug!(%error, "failed to take timers from the bus; their leaders fire them");
                tokio::select! {
                    () = tokio::time::sleep(RETRY) => continue,
                    _ = stop.wait_for(|stop| *stop) => break,
                }
            }
        };
        for delivery in deliveries {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { break };
            let (cluster, bus, consumer) = (cluster.clone(), Arc::clone(&bus), consumer.clone());
            firing.spawn(async move {
                let _permit = permit;
                see_through(&cluster, bus.as_ref(), &consumer, &delivery).await;
            });
        }
        while firing.try_join_next().is_some() {}
    }
    while firing.join_next().await.is_some() {}
}

/// Returns true if no leader has got the batch, or one that has another map of the cluster.
fn has_no_leader(failure: &Failure) -> bool {
    matches!(failure, Failure::Electing | Failure::OtherMap { .. })
}

/// Fires one batch at the leader of its shard, and ends its delivery whatever came of it: what was not fired is fired by its leader.
async fn see_through(cluster: &Cluster, bus: &dyn Bus, consumer: &str, delivery: &Delivery) {
    let (id, receipt) = (&delivery.envelope.id, std::slice::from_ref(&delivery.receipt));
    let fired = match TimerBatch::decode(&delivery.envelope.body) {
        Some(batch) => {
            let fire = || cluster.fire(&batch);
            let pauses = ConstantBuilder::new().with_delay(PAUSE).with_max_times(OFFERS_AGAIN);
            let fired = fire.retry(pauses).when(has_no_leader);
            // A leader that does not answer must not keep other batches waiting. It fires the timers itself by then.
            tokio::time::timeout(FIRE_WAIT, fired).await.unwrap_or(Err(Failure::OutcomeUnknown))
        }
        None => {
            tracing::error!(%id, "dropped an envelope that is not a batch of timers");
            Ok(Fired::Stale)
        }
    };
    let ended = match fired {
        Ok(Fired::Timers(count)) => {
            tracing::trace!(%id, count, "fired timers");
            bus.ack(Stream::Timer, receipt).await
        }
        Ok(Fired::Stale) => {
            tracing::debug!(%id, "ignored a stale batch of timers");
            bus.ack(Stream::Timer, receipt).await
        }
        Err(failure) if has_no_leader(&failure) && delivery.count < SERVERS_MAX => {
            bus.release(Stream::Timer, consumer, receipt).await
        }
        Err(failure) => {
            tracing::debug!(%id, %failure, "failed to fire timers");
            bus.ack(Stream::Timer, receipt).await
        }
    };
    if let Err(error) = ended {
        tracing::warn!(%id, %error, "failed to acknowledge a batch of timers; it comes again and is ignored");
    }
}

#[cfg(test)]
mod tests {
    use switchward_bus::{Memory, Settings};
    use switchward_state::Key;

    use super::*;

    #[tokio::test]
    async fn a_batch_is_one_envelope_and_a_full_or_closed_bus_refuses_it() {
        let settings = Settings { envelopes_max: 1, ..Settings::default() };
        let bus: Arc<dyn Bus> = Arc::new(Memory::new(settings));
        let transport = ToBus(Arc::clone(&bus));
        let sent = TimerBatch { shard: 1, term: 2, number: 3, timers: vec![Key::clock()] };
        transport.hand_out(sent.clone()).await.expect("the bus has capacity");
        transport.hand_out(sent.clone()).await.expect("it is on the bus already");
        let next = TimerBatch { number: 4, ..sent.clone() };
        assert!(transport.hand_out(next).await.is_err(), "the bus is full");
        let taken = bus.take(Stream::Timer, "one", 9, Duration::ZERO).await.expect("the bus is open");
        let [delivery] = &taken[..] else { panic!("{taken:?}") };
        assert_eq!(delivery.envelope.id, sent.name());
        assert_eq!(TimerBatch::decode(&delivery.envelope.body), Some(sent.clone()));
        bus.close().await;
        assert!(transport.hand_out(sent).await.is_err(), "the bus is closed");
    }
}
