//! Starts and stops the tasks of the delivery role: the relays beside the shards, and the worker, in the same process or in
//! others.

use std::sync::Arc;

use switchward_bus::Bus;
use switchward_delivery::channels::MailChannel;
use switchward_delivery::http::{Client, Config as HttpConfig, SetupError};
use switchward_delivery::model::{Config as ModelConfig, Model};
use switchward_delivery::worker::{Answers, Config as WorkerConfig, DeliveryWorker};
use switchward_gateway::services::Pings;
use switchward_machine::WorkKind;
use switchward_shard::Cluster;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::answers::ToShards;
use crate::caps::Caps;
use crate::ping::{PingedBy, Pinger};
use crate::reach::BusReach;
use crate::rules::{Known, Names, TenantRules};
use crate::{capacity, effects, relay, timers};

/// The kinds of work that the role does without a model.
pub const WORK: [WorkKind; 1] = [WorkKind::Http];
/// The kinds of work that the role does in addition if it has a model.
pub const WORK_OF_MODELS: [WorkKind; 4] =
    [WorkKind::Extract, WorkKind::Judge, WorkKind::Classify, WorkKind::Intent];

/// What relays put on the bus.
pub struct RelaySettings {
    /// Whether the work of models goes out; otherwise it is left to workers.
    pub models: bool,
    /// Whether mails go out.
    pub mail: bool,
}

/// How a worker delivers.
pub struct WorkerSettings {
    /// What the requests of each tenant may reach.
    pub rules: TenantRules,
    /// The model endpoint; `None` does no work of models.
    pub model: Option<ModelConfig>,
    /// The mail channel; `None` sends no mail.
    pub mail: Option<MailChannel>,
}

/// The relays of a server, and its worker if it has one.
pub struct Role {
    bus: Arc<dyn Bus>,
    relays: Relays,
    worker: Option<Worker>,
}

impl Role {
    /// Starts the relays over this bus of this reach, and a worker that offers outcomes to the shards of this process. After
    /// each failed attempt to deliver an effect the next one is made after the next of these waits, milliseconds; after the
    /// last, an effect that fails again is a dead letter. Messages to endpoints have waits of their own. Spawns tasks, so it
    /// must be called within a Tokio runtime.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn start(
        cluster: &Cluster,
        bus: Arc<dyn Bus>,
        reach: BusReach,
        settings: WorkerSettings,
        retry_waits_ms: Vec<u64>,
    ) -> Result<Self, SetupError> {
        let names = Arc::new(Known::new(cluster.clone()));
        let relayed = RelaySettings { models: settings.model.is_some(), mail: settings.mail.is_some() };
        let answers = Arc::new(ToShards::new(cluster.clone(), retry_waits_ms));
        let worker = Worker::start(Arc::clone(&bus), answers, Arc::clone(&names), settings)?;
        let relays = Relays::start(cluster, &bus, reach, names, &relayed);
        Ok(Self { bus, relays, worker: Some(worker) })
    }

    /// Starts the relays over this bus of this reach, whose jobs other processes do. Spawns tasks, so it must be called within
    /// a Tokio runtime.
    #[must_use]
    pub fn start_relays(
        cluster: &Cluster,
        bus: Arc<dyn Bus>,
        reach: BusReach,
        settings: &RelaySettings,
    ) -> Self {
        let names = Arc::new(Known::new(cluster.clone()));
        let relays = Relays::start(cluster, &bus, reach, names, settings);
        Self { bus, relays, worker: None }
    }

    /// Returns the sender of single messages to endpoints: this process, or by the bus another one that delivers.
    #[must_use]
    pub fn pinger(&self) -> Arc<dyn Pings> {
        let by = match &self.worker {
            Some(worker) => PingedBy::ThisProcess(Box::new(worker.client.clone())),
            None => PingedBy::Worker(Arc::clone(&self.bus)),
        };
        Arc::new(Pinger::new(by, self.relays.cluster.clone()))
    }

    /// Takes no more jobs from now on. Those that were begun go on.
    pub fn stop(&self) {
        self.relays.stop.send_replace(true);
        if let Some(worker) = &self.worker {
            worker.stop.send_replace(true);
        }
    }

    /// Takes no more jobs, waits until those that were begun are done or released, and closes the bus.
    pub async fn end(self) {
        self.relays.end().await;
        if let Some(worker) = self.worker {
            worker.end().await;
        }
        self.bus.close().await;
    }
}

/// The relays of all shards, and the taker of their timers.
struct Relays {
    cluster: Cluster,
    stop: watch::Sender<bool>,
    timers: JoinHandle<()>,
}

impl Relays {
    fn start(
        cluster: &Cluster,
        bus: &Arc<dyn Bus>,
        reach: BusReach,
        names: Arc<Known<Cluster>>,
        settings: &RelaySettings,
    ) -> Self {
        let mut kinds = WORK.to_vec();
        kinds.extend(WORK_OF_MODELS.into_iter().filter(|_| settings.models));
        let (stop, stopped) = watch::channel(false);
        let caps = Caps::new(cluster.clone(), Arc::clone(bus));
        let context = effects::Context { bus: Arc::clone(bus), mail: settings.mail, names, caps };
        let shards = cluster.shards().len();
        let jobs = relay::Context { bus: Arc::clone(bus), reach, kinds, shards };
        relay_all(cluster, &context, &jobs, &stop);
        let timers = timers::take(cluster.clone(), Arc::clone(bus), consumer("timers"), stopped);
        let timers = tokio::spawn(timers);
        cluster.set_timer_transport(Some(Arc::new(timers::ToBus(Arc::clone(bus)))));
        Self { cluster: cluster.clone(), stop, timers }
    }

    async fn end(self) {
        self.cluster.set_timer_transport(None);
        self.stop.send_replace(true);
        if let Err(error) = self.timers.await {
            tracing::warn!(%error, "the task that takes timers panicked");
        }
    }
}

/// A delivery worker that runs.
pub struct Worker {
    stop: watch::Sender<bool>,
    worker: JoinHandle<()>,
    client: Client,
}

impl Worker {
    /// Takes jobs from this bus, under the rules of the tenants of these names, and reports what becomes of them. Spawns a
    /// task, so it must be called within a Tokio runtime.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn start(
        bus: Arc<dyn Bus>,
        answers: Arc<dyn Answers>,
        names: impl Names,
        settings: WorkerSettings,
    ) -> Result<Self, SetupError> {
        let client = Client::new(HttpConfig::new(settings.rules.policies(names)))?;
        let (stop, stopped) = watch::channel(false);
        let consumer = WorkerConfig::new(consumer("delivery"));
        let model = settings.model.map(|model| Model::new(client.clone(), model));
        let worker = DeliveryWorker::new(bus, answers, client.clone(), model, consumer);
        let worker = tokio::spawn(worker.with_mail(settings.mail).run(stopped));
        Ok(Self { stop, worker, client })
    }

    /// Takes no more jobs, and waits until those that were begun are done or released.
    pub async fn end(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.worker.await {
            tracing::warn!(%error, "a delivery worker panicked");
        }
    }
}

/// A consumer's name that no other or earlier process has, whatever its process id is: this one must not seem to hold what
/// that one held.
fn consumer(role: &str) -> String {
    format!("{role}-{:016x}", rand::random::<u64>())
}

/// Spawns the relays of each shard, and that of the catalogue, where the effects about a tenant itself wait.
fn relay_all(
    cluster: &Cluster,
    context: &effects::Context,
    jobs: &relay::Context,
    stop: &watch::Sender<bool>,
) {
    for shard in cluster.shards() {
        let most = capacity::part(effects::SESSIONS_OUT_MAX, jobs.shards);
        tokio::spawn(effects::work(shard.clone(), most, context.clone(), stop.subscribe()));
        tokio::spawn(relay::work(shard.clone(), jobs.clone(), stop.subscribe()));
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
