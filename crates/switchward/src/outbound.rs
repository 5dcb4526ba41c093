//! The delivery role: what a session needs from outside and the server can do by itself goes out over the bus, is done by
//! a delivery worker, and comes back as a command.

mod answers;
mod backoff;
mod bus;
mod capacity;
mod caps;
mod config;
mod destinations;
mod effects;
mod health;
mod hooks;
mod mails;
mod ping;
mod ready;
mod relay;
mod rules;
#[cfg(test)]
mod tests;
mod timers;

use std::sync::Arc;

use switchward_bus::Bus;
use switchward_delivery::http::{Client, Config as HttpConfig};
use switchward_delivery::model::Model;
use switchward_delivery::worker::{Config as WorkerConfig, DeliveryWorker, MailChannel};
use switchward_gateway::Api;
use switchward_machine::WorkKind;
use switchward_shard::Cluster;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) use bus::RedisConfig;
pub(crate) use config::{DeliveryConfig, port_of};

/// The kinds of work that a model does.
const OF_MODEL: [WorkKind; 4] = [WorkKind::Extract, WorkKind::Judge, WorkKind::Classify, WorkKind::Intent];

/// The role at work.
pub(crate) struct Role {
    bus: Arc<dyn Bus>,
    stop: watch::Sender<bool>,
    worker: JoinHandle<()>,
    cluster: Cluster,
    timers: JoinHandle<()>,
}

/// The kinds of work that this server does by itself.
pub(crate) fn kinds(delivery: &DeliveryConfig) -> Vec<WorkKind> {
    if !delivery.enabled {
        return Vec::new();
    }
    let model = delivery.model.is_some();
    std::iter::once(WorkKind::Http).chain(OF_MODEL.into_iter().filter(|_| model)).collect()
}

impl Role {
    /// Starts delivering, over this Redis under this owner's name or within this process. `None` if the role is off.
    ///
    /// # Errors
    /// The model's key cannot be read, its address is not allowed, a host is invalid, or TLS cannot be set up; the address
    /// or the password of Redis cannot be used.
    pub(crate) async fn start(
        (cluster, api): (&Cluster, &Api),
        delivery: &DeliveryConfig,
        (redis, owner): (Option<&RedisConfig>, &str),
        channel: Option<MailChannel>,
    ) -> anyhow::Result<Option<Self>> {
        if !delivery.enabled {
            return Ok(None);
        }
        let names = Arc::new(rules::Known::new(cluster.clone()));
        let client = Client::new(HttpConfig::new(delivery.policies(Arc::clone(&names))?))?;
        let model = match &delivery.model {
            Some(model) => Some(Model::new(client.clone(), model.read()?)),
            None => None,
        };
        let bus = bus::open(redis, owner).await?;
        api.pinging(Arc::new(ping::Pinger(client.clone(), cluster.clone())));
        let answers = Arc::new(answers::ToShards::new(cluster.clone(), delivery.waits_ms()?));
        // A name that no other or earlier server has: this one must not seem to hold what that one held.
        let consumer = WorkerConfig::new(format!("desk-{:016x}", rand::random::<u64>()));
        let worker = DeliveryWorker::new(Arc::clone(&bus), answers, client, model, consumer)
            .with_mail(channel.clone());
        let (stop, stopped) = watch::channel(false);
        let caps = caps::Caps::new(cluster.clone());
        let context = effects::Context { bus: Arc::clone(&bus), mail: channel.is_some(), names, caps };
        let shards = cluster.shards().len();
        for shard in cluster.shards() {
            let most = capacity::part(effects::SESSIONS_OUT_MAX, shards);
            tokio::spawn(effects::work((shard.clone(), most), context.clone(), stop.subscribe()));
            let kinds = (kinds(delivery), shards);
            tokio::spawn(relay::work(shard.clone(), Arc::clone(&bus), kinds, stop.subscribe()));
        }
        // Effects about a tenant itself wait in the catalogue.
        let catalogue = (cluster.catalogue().clone(), effects::CATALOGUE_OUT_MAX);
        tokio::spawn(effects::work(catalogue, context, stop.subscribe()));
        let taker = format!("timers-{}", std::process::id());
        let timers = tokio::spawn(timers::take(cluster.clone(), Arc::clone(&bus), taker, stopped.clone()));
        cluster.set_timer_transport(Some(Arc::new(timers::ToBus(Arc::clone(&bus)))));
        let worker = tokio::spawn(worker.run(stopped));
        Ok(Some(Self { bus, stop, worker, cluster: cluster.clone(), timers }))
    }

    /// Takes nothing new, and waits until what was begun is done or given back.
    pub(crate) async fn end(self) {
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
