//! Starts and stops the tasks of the delivery role.

use std::sync::Arc;

use switchward_bus::Bus;
use switchward_delivery::channels::MailChannel;
use switchward_delivery::http::{Client, Config as HttpConfig, SetupError};
use switchward_delivery::model::{Config as ModelConfig, Model};
use switchward_delivery::worker::{Config as WorkerConfig, DeliveryWorker};
use switchward_gateway::services::Pings;
use switchward_machine::WorkKind;
use switchward_shard::Cluster;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answers::ToShards;
use crate::caps::Caps;
use crate::ping::Pinger;
use crate::rules::{Known, TenantRules};
use crate::{capacity, effects, relay, timers};

/// The kinds of work that the role does without a model.
pub const WORK: [WorkKind; 1] = [WorkKind::Http];
/// The kinds of work that the role does in addition if it has a model.
pub const WORK_OF_MODELS: [WorkKind; 4] =
    [WorkKind::Extract, WorkKind::Judge, WorkKind::Classify, WorkKind::Intent];

/// How the role delivers.
pub struct Settings {
    /// What the requests of each tenant may reach.
    pub rules: TenantRules,
    /// The model endpoint; `None` leaves the work of models to workers.
    pub model: Option<ModelConfig>,
    /// The mail channel; `None` sends no mail.
    pub mail: Option<MailChannel>,
    /// How long after each failed attempt to deliver an effect the next one is made, milliseconds. After the last wait, an
    /// effect that fails again is a dead letter. Messages to endpoints have waits of their own.
    pub retry_waits_ms: Vec<u64>,
}

/// The running role.
pub struct Role {
    bus: Arc<dyn Bus>,
    stop: watch::Sender<bool>,
    worker: JoinHandle<()>,
    cluster: Cluster,
    timers: JoinHandle<()>,
    client: Client,
}

impl Role {
    /// Starts delivering over this bus. Spawns tasks, so it must be called within a Tokio runtime.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn start(cluster: &Cluster, bus: Arc<dyn Bus>, settings: Settings) -> Result<Self, SetupError> {
        let names = Arc::new(Known::new(cluster.clone()));
        let client = Client::new(HttpConfig::new(settings.rules.policies(Arc::clone(&names))))?;
        let mut kinds = WORK.to_vec();
        kinds.extend(WORK_OF_MODELS.into_iter().filter(|_| settings.model.is_some()));
        let (stop, stopped) = watch::channel(false);
        let context = effects::Context {
            bus: Arc::clone(&bus),
            mail: settings.mail.is_some(),
            names,
            caps: Caps::new(cluster.clone(), Arc::clone(&bus)),
        };
        relay_all(cluster, &context, &kinds, &stop);
        let timers = timers::take(cluster.clone(), Arc::clone(&bus), consumer("timers"), stopped.clone());
        let timers = tokio::spawn(timers);
        cluster.set_timer_transport(Some(Arc::new(timers::ToBus(Arc::clone(&bus)))));
        let answers = Arc::new(ToShards::new(cluster.clone(), settings.retry_waits_ms));
        let consumer = WorkerConfig::new(consumer("delivery"));
        let model = settings.model.map(|model| Model::new(client.clone(), model));
        let worker = DeliveryWorker::new(Arc::clone(&bus), answers, client.clone(), model, consumer)
            .with_mail(settings.mail);
        let worker = tokio::spawn(worker.run(stopped));
        Ok(Self { bus, stop, worker, cluster: cluster.clone(), timers, client })
    }

    /// Returns the sender of single messages to endpoints.
    #[must_use]
    pub fn pinger(&self) -> Arc<dyn Pings> {
        Arc::new(Pinger(self.client.clone(), self.cluster.clone()))
    }

    /// Takes no more jobs, waits until those that were begun are done or released, and closes the bus.
    pub async fn end(self) {
        self.cluster.set_timer_transport(None);
        self.stop.send_replace(true);
        if let Err(error) = self.timers.await {
            tracing::warn!(%error, "the task that takes timers panicked");
        }
        if let Err(error) = self.worker.await {
            tracing::warn!(%error, "a delivery worker panicked");
        }
        self.bus.close().await;
    }
}

/// A consumer's name that no other or earlier server has, whatever its process id is: this one must not seem to hold what
/// that one held.
fn consumer(role: &str) -> String {
    format!("{role}-{:016x}", rand::random::<u64>())
}

/// Spawns the relays of each shard, and that of the catalogue, where the effects about a tenant itself wait.
fn relay_all(cluster: &Cluster, context: &effects::Context, kinds: &[WorkKind], stop: &watch::Sender<bool>) {
    let shards = cluster.shards().len();
    for shard in cluster.shards() {
        let most = capacity::part(effects::SESSIONS_OUT_MAX, shards);
        tokio::spawn(effects::work(shard.clone(), most, context.clone(), stop.subscribe()));
        let bus = Arc::clone(&context.bus);
        tokio::spawn(relay::work(shard.clone(), bus, kinds.to_vec(), shards, stop.subscribe()));
    }
    let (catalogue, most) = (cluster.catalogue().clone(), effects::CATALOGUE_OUT_MAX);
    tokio::spawn(effects::work(catalogue, most, context.clone(), stop.subscribe()));
}

#[cfg(test)]
mod tests {
    use super::consumer;

    #[test]
    fn two_servers_with_one_process_id_have_consumers_of_their_own() {
        let (one, other) = (consumer("timers"), consumer("timers"));
        assert!(one != other && one.starts_with("timers-"), "{one} and {other}");
    }
}
