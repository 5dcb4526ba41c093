//! The delivery role: what a session needs from outside and the server can do by itself goes out over the bus, is done
//! at a desk, and comes back as a command.

mod answers;
mod bus;
mod caps;
mod config;
mod effects;
mod health;
mod hooks;
mod lanes;
mod letters;
mod ping;
mod places;
mod ready;
mod relay;
mod room;
mod rules;
#[cfg(test)]
mod tests;
mod timers;

use std::sync::Arc;

use switchward_bus::Bus;
use switchward_delivery::desk::{Config as DeskConfig, Desk, Office};
use switchward_delivery::http::{Client, Config as HttpConfig};
use switchward_delivery::model::Model;
use switchward_gateway::Door;
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
    desk: JoinHandle<()>,
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
    /// Begins to carry errands out, over this Redis under this owner's name or within this process; nothing where the role is switched off.
    ///
    /// # Errors
    /// The model's key cannot be read, its address may not be asked, a host is no host, or TLS cannot be set up; the
    /// address or the password of Redis cannot be used.
    pub(crate) async fn start(
        (cluster, door): (&Cluster, &Door),
        delivery: &DeliveryConfig,
        (redis, owner): (Option<&RedisConfig>, &str),
        office: Option<Office>,
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
        door.pinging(Arc::new(ping::Pinger(client.clone(), cluster.clone())));
        let answers = Arc::new(answers::ToShards::new(cluster.clone(), delivery.waits_ms()?));
        // One that no other server has, and none before: what that one held must not seem to be held by this one.
        let consumer = DeskConfig::new(format!("desk-{:016x}", rand::random::<u64>()));
        let desk = Desk::new(Arc::clone(&bus), answers, client, model, consumer).with_mail(office.clone());
        let (stop, stopped) = watch::channel(false);
        let caps = caps::Caps::new(cluster.clone());
        let road = effects::Road { bus: Arc::clone(&bus), mail: office.is_some(), names, caps };
        let shards = cluster.shards().len();
        for shard in cluster.shards() {
            let most = room::part(effects::SESSIONS_OUT_MAX, shards);
            tokio::spawn(effects::work((shard.clone(), most), road.clone(), stop.subscribe()));
            let kinds = (kinds(delivery), shards);
            tokio::spawn(relay::work(shard.clone(), Arc::clone(&bus), kinds, stop.subscribe()));
        }
        // What is about a tenant itself waits in the catalogue.
        let catalogue = (cluster.catalogue().clone(), effects::CATALOGUE_OUT_MAX);
        tokio::spawn(effects::work(catalogue, road, stop.subscribe()));
        let taker = format!("timers-{}", std::process::id());
        let timers = tokio::spawn(timers::take(cluster.clone(), Arc::clone(&bus), taker, stopped.clone()));
        cluster.set_timer_road(Some(Arc::new(timers::ToBus(Arc::clone(&bus)))));
        let desk = tokio::spawn(desk.run(stopped));
        Ok(Some(Self { bus, stop, desk, cluster: cluster.clone(), timers }))
    }

    /// Takes nothing new, and waits until what was begun is done or given back.
    pub(crate) async fn end(self) {
        self.cluster.set_timer_road(None);
        self.stop.send_replace(true);
        if let Err(error) = self.timers.await {
            tracing::warn!(%error, "whoever takes timers did not end in order");
        }
        if let Err(error) = self.desk.await {
            tracing::warn!(%error, "a desk did not end in order");
        }
        self.bus.close().await;
    }
}
