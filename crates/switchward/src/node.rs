//! A server of one node: its shards, its services, its port.

use anyhow::Context as _;
use axum::Router;
use http::HeaderValue;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use switchward_delivery::desk::Office;
use switchward_delivery::mail::Sender;
use switchward_engine::{
    Body, Command, CreateKey, CreateTenant, DefaultEffect, Directory, EnsureTenancy, Key, KeyRing,
    PutDirectory, Reason, Role, Row, Scope, Settings, View,
};
use switchward_gateway::auth::NewKey;
use switchward_gateway::decision::SignIn;
use switchward_gateway::mail::{self, Mailroom};
use switchward_gateway::routes::{Health, Services, one_port};
use switchward_gateway::{
    Admission, ConnectionLimits, Door, PageSettings, QuotaDefaults, decision, sealing, serve, services,
    webhooks,
};
use switchward_machine::{TenantId, Time};
use switchward_shard::{Clock, Cluster, ClusterOptions, Failure, ManualClock};
use switchward_store::{DataDir, DiskLevel, DiskOptions};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind};
use tokio_rustls::TlsAcceptor;

use crate::backup::restore::{Restored, Restoring};
use crate::control::Control;
use crate::errands::{self, DeliveryConfig, RedisConfig};
use crate::home;
use crate::inspector;
use crate::key_ring::{self, Place, explained};
use crate::mail_config::Incoming;
use crate::mail_in::Doors;
use crate::mailbox::{self, Mailbox};
use crate::metrics;
use crate::metrics_port::MetricsPort;
use crate::page_guard;
use crate::quarantine::{Quarantine, Sweeper};
use crate::sign_in::warn_of_missing_provider;

/// Clean rows in memory where nothing else is said, bytes: those of some 20,000 sessions at work. What is parked longer
/// is read from disk when it goes on.
pub(crate) const CACHE_BYTES_DEFAULT: usize = 32 * 1024 * 1024;

/// How often health learns of the disk.
const DISK_TOLD: Duration = Duration::from_millis(250);

/// An opened node.
pub(crate) struct Node {
    cluster: Cluster,
    data: DataDir,
    door: Door,
    place: Place,
    health: Health,
    app: Router,
    metrics: Router,
    delivery: Option<errands::Role>,
    doors: Option<Doors>,
}

/// What a node is opened with.
pub(crate) struct Opening<'a> {
    /// Shards of a new data folder.
    pub(crate) shards: u32,
    /// What the server is to stay within, bytes.
    pub(crate) memory_bytes: usize,
    /// Clean rows in memory, bytes.
    pub(crate) cache_bytes: usize,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// The same, where calls may move it.
    pub(crate) manual: Option<ManualClock>,
    /// What the server does by itself outside.
    pub(crate) delivery: &'a DeliveryConfig,
    /// What that goes over; nothing: this process alone.
    pub(crate) redis: Option<&'a RedisConfig>,
    /// What secrets are sealed under, and where that is read again.
    pub(crate) keys: (KeyRing, Place),
    /// Where mail goes.
    pub(crate) mail: Mail,
    /// What happens when the disk runs low.
    pub(crate) disk: DiskOptions,
    /// Whose pages may call from a browser.
    pub(crate) origins: Vec<HeaderValue>,
    /// What holds for a tool call that no rule names, where its tenant says nothing.
    pub(crate) default_effect: Option<DefaultEffect>,
    /// How much a tenant may take for which nothing else is set.
    pub(crate) quotas: QuotaDefaults,
    /// How decision pages recognise people.
    pub(crate) pages: PageSettings,
    /// With whom people sign in to them; nothing: with nobody.
    pub(crate) sign_in: Option<Arc<dyn SignIn>>,
    /// A backup that was put into the data folder.
    pub(crate) restoring: Option<Restoring>,
}

/// Where mail goes.
pub(crate) enum Mail {
    /// Nowhere: it waits in the outbox.
    None,
    /// To a mail server; replies come back by these doors, where there are some.
    Office(Office, Option<Box<Incoming>>),
    /// Into the mailbox of a development server, beside an inspector of this tenant's webhooks; their pages are answered
    /// under these names too.
    Mailbox(Box<Sender>, Mailbox, &'static str, Vec<String>),
}

/// Both ways of mail.
#[derive(Default)]
struct Mails {
    office: Option<Office>,
    room: Option<Mailroom>,
    doors: Option<Doors>,
    pages: Router,
}

impl Mails {
    async fn of(mail: Mail, door: &Door, cluster: &Cluster) -> anyhow::Result<Self> {
        match mail {
            Mail::None => Ok(Self::default()),
            Mail::Office(office, incoming) => {
                let trusted = incoming.as_ref().map(|incoming| incoming.trusted_callers.clone());
                let doors = match incoming {
                    Some(incoming) => Some(Doors::find(*incoming, door.clone()).await?),
                    None => None,
                };
                let room = doors.as_ref().map(|doors| doors.room.clone());
                let pages = room.as_ref().map(|room| mail::pages(room, &trusted.unwrap_or_default()));
                let pages = pages.unwrap_or_default();
                Ok(Self { office: Some(office), room, doors, pages })
            }
            Mail::Mailbox(sender, mailbox, tenant, hosts) => {
                let at = sender.pages.clone().unwrap_or_default();
                let webhooks = inspector::pages(cluster.clone(), tenant, &at);
                let office = Office { sender: Arc::new(*sender), post: Arc::new(mailbox.clone()) };
                let room = mailbox::room(door.clone())?;
                let pages = mailbox::pages(mailbox, room.clone()).merge(webhooks);
                let pages = page_guard::before(pages, &hosts).merge(mail::pages(&room, &[]));
                Ok(Self { office: Some(office), room: Some(room), doors: None, pages })
            }
        }
    }
}

/// How many shards a new data folder gets: one a core, four at most; a shard costs batch size and nothing else.
pub(crate) fn shards_default() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores.min(4)).unwrap_or(1)
}

/// Ends the process of a server whose disk fails.
fn fatal(why: &str) {
    // Whatever is acknowledged is on disk; going on could acknowledge what is not.
    eprintln!("switchward: {why}");
    std::process::exit(1);
}

impl Node {
    /// Opens the data folder and everything behind the port.
    pub(crate) async fn open(data: &Path, opening: Opening<'_>) -> anyhow::Result<Self> {
        let Opening {
            shards,
            memory_bytes,
            cache_bytes,
            clock,
            manual,
            delivery,
            redis,
            keys: (ring, place),
            mail,
            disk,
            origins,
            default_effect,
            quotas,
            pages,
            sign_in,
            restoring,
        } = opening;
        let data = match &restoring {
            Some(restoring) => restoring.data.clone(),
            None => DataDir::open(data)?,
        };
        let data = data.watched(disk)?;
        let owner = data.id().to_owned();
        let quarantine = Quarantine::open(data.path())?;
        let on_fatal = Box::new(fatal);
        let options = ClusterOptions { data: data.clone(), shards, cache_bytes, clock, ring, on_fatal };
        let cluster = Cluster::open(options).await.map_err(|error| explained(error, &place))?;
        if let Some(clock) = &manual {
            catch_up(&cluster, clock).await?;
        }
        know_tenants(&cluster).await?;
        // Before anything could go out.
        if let Some(restoring) = restoring {
            restored(restoring.finish(&cluster).await?);
        }
        if sign_in.is_none() {
            warn_of_missing_provider(&cluster).await?;
        }
        let (all, health) = Services::new().await;
        let door = Door::new(cluster.clone(), manual).leaving(errands::kinds(delivery)).limiting(quotas);
        let door = door.within_memory(memory_bytes).defaulting(default_effect);
        let door = door.recognising(pages).signing_in(sign_in);
        let development = matches!(mail, Mail::Mailbox(..));
        let door = if development { door.of_development() } else { door };
        door.keeping(Arc::new(quarantine));
        let routes = services::all(all, &door).into_router();
        let Mails { office, room, doors, pages: mail_pages } = Mails::of(mail, &door, &cluster).await?;
        let imap = doors.as_ref().and_then(|doors| doors.imap_health.clone());
        let app = one_port(
            routes,
            health
                .pages()
                .merge(home::page(development))
                .merge(decision::pages(door.clone()))
                .merge(webhooks::pages(&door))
                .merge(mail_pages),
            origins,
            &Admission::of(&door),
        );
        let metrics = metrics::page(cluster.clone(), door.clone(), room, imap);
        if let Some(max) = delivery.outbox_max {
            cluster.set_outbox_max(max);
        }
        let delivery = errands::Role::start((&cluster, &door), delivery, (redis, &owner), office).await?;
        Ok(Self { cluster, data, door, place, health, app, metrics, delivery, doors })
    }

    /// Serves until `stop` is done, then finishes what is open and writes down what is in memory.
    pub(crate) async fn serve(
        self,
        (listener, metrics): (TcpListener, Option<TcpListener>),
        (tls, limits): (Option<TlsAcceptor>, ConnectionLimits),
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        self.health.set_ready(true).await;
        let control = Control::listen(&self.data, &self.cluster);
        let doors = self.doors.map(Doors::open);
        let (health, door) = (self.health.clone(), self.door.clone());
        let (ending, ended) = tokio::sync::oneshot::channel::<()>();
        let metrics_port = MetricsPort::start(metrics, self.metrics.merge(self.health.pages()), ended)?;
        let sealing = tokio::spawn(key_ring::follow(self.cluster.clone(), self.place, hangups()));
        let disk = tokio::spawn(tell_of_disk(self.health.clone(), self.cluster.clone()));
        let sweeper = Sweeper::start(self.door.clone());
        let stop = async move {
            stop.await;
            health.set_ready(false).await;
            door.drain();
        };
        serve::serve(listener, tls, self.app, limits, stop).await;
        disk.abort();
        sealing.abort();
        sweeper.stop().await;
        if let Some(control) = control {
            control.close();
        }
        drop(ending);
        metrics_port.end().await?;
        if let Some(doors) = doors {
            doors.close().await;
        }
        if let Some(delivery) = self.delivery {
            delivery.end().await;
        }
        self.cluster.shutdown().await.context("failed to write down the state")
    }

    /// Makes sure that a tenant and a key of it exist. What exists already is left as it is.
    pub(crate) async fn ensure(
        &self,
        tenant: &str,
        key: &NewKey,
        role: Role,
        subject: &str,
    ) -> anyhow::Result<()> {
        // What is there already is looked for first: a server starts on a disk that has no room for it, too.
        if !self.has(&Key::tenant(tenant)).await? {
            let create = CreateTenant {
                name: tenant.into(),
                display_name: tenant.into(),
                settings: Settings::default(),
            };
            self.inner(TenantId(0), Body::CreateTenant(create)).await?;
        }
        let row =
            self.cluster.catalogue().read().await?.row(&Key::tenant(tenant)).context("failed to read")?;
        let Some(Row::Tenant(row)) = row.as_deref() else { anyhow::bail!("tenant {tenant} was not made") };
        ensure_tenancy(&self.cluster, row.id).await?;
        if self.has(&Key::api_key(&key.id)).await? {
            return Ok(());
        }
        let create = CreateKey {
            id: key.id.clone(),
            tenant_name: tenant.into(),
            hash: key.hash,
            role,
            subject: subject.into(),
            display_name: subject.into(),
            expires: None,
        };
        self.inner(row.id, Body::CreateKey(create)).await
    }

    /// Makes sure that somebody is told of gates that address nobody: this address, where the tenant has no directory.
    pub(crate) async fn tell(&self, tenant: &str, address: &str) -> anyhow::Result<()> {
        let view = self.cluster.catalogue().read().await?;
        let row = view.row(&Key::tenant(tenant)).context("failed to read")?;
        let Some(Row::Tenant(row)) = row.as_deref() else { anyhow::bail!("there is no tenant {tenant}") };
        let known = view.row(&Key::tenancy_record(row.id)).context("failed to read")?;
        if let Some(Row::Tenancy(known)) = known.as_deref()
            && known.directory != Directory::default()
        {
            return Ok(());
        }
        let directory = Directory { audience: vec![address.to_owned()], ..Directory::default() };
        let (key, etag) = (sealing::mail_key(&self.cluster.ring(), row.id), String::new());
        self.inner(row.id, Body::PutDirectory(PutDirectory { directory, key, etag })).await
    }

    /// Returns true if there is any tenant, and so a key that opens the server.
    pub(crate) async fn has_tenants(&self) -> anyhow::Result<bool> {
        Ok(!self.cluster.tenants().await?.is_empty())
    }

    /// Ends a node that never served.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        if let Some(delivery) = self.delivery {
            delivery.end().await;
        }
        self.cluster.shutdown().await.context("failed to write down the state")
    }

    async fn has(&self, key: &Key) -> anyhow::Result<bool> {
        Ok(self.cluster.catalogue().read().await?.row(key).context("failed to read")?.is_some())
    }

    async fn inner(&self, tenant: TenantId, body: Body) -> anyhow::Result<()> {
        let command = Command::of_server(tenant, Scope::Catalogue, body);
        match self.cluster.execute(command).await {
            Ok(_) => Ok(()),
            Err(Failure::Rejected(no)) if no.reason == Reason::AlreadyExists => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Keeps what health says of the disk up to date.
async fn tell_of_disk(health: Health, cluster: Cluster) {
    let mut tick = tokio::time::interval(DISK_TOLD);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut told = false;
    loop {
        tick.tick().await;
        let low = cluster.disk().level() != DiskLevel::Enough;
        if std::mem::replace(&mut told, low) != low {
            health.set_disk_low(low).await;
        }
    }
}

/// Logs the result of a restore.
fn restored(restored: Restored) {
    let Restored { taken, held, removed } = restored;
    let taken = switchward_engine::time_text(taken);
    tracing::info!(taken, removed_again = removed, "the backup is restored");
    tracing::warn!(
        tenants = held,
        "effects are held: an operator of each tenant lets them go with `switchward effect release`"
    );
}

/// Every shard knows of every tenant what it must, and every tenant has what its mail tokens are made with.
async fn know_tenants(cluster: &Cluster) -> anyhow::Result<()> {
    for tenant in cluster.tenants().await? {
        ensure_tenancy(cluster, tenant).await?;
    }
    Ok(())
}

async fn ensure_tenancy(cluster: &Cluster, tenant: TenantId) -> anyhow::Result<()> {
    let command = Command::of_server(
        tenant,
        Scope::Catalogue,
        Body::EnsureTenancy(EnsureTenancy {
            any_approver_address: false,
            link_auth: None,
            key: sealing::mail_key(&cluster.ring(), tenant),
        }),
    );
    match cluster.execute(command).await {
        Ok(_) => Ok(()),
        // A later start makes up for it.
        Err(failure @ Failure::DiskLow { .. }) => {
            tracing::warn!(%failure, "it was not looked whether every shard knows of the tenant");
            Ok(())
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Sets a manual clock to where the data folder's time stands, or to the system's where it is new.
async fn catch_up(cluster: &Cluster, clock: &ManualClock) -> anyhow::Result<()> {
    let mut last = Time(0);
    for shard in cluster.all() {
        let row = shard.read().await?.row(&Key::clock()).context("failed to read the clock")?;
        if let Some(Row::Clock(at)) = row.as_deref() {
            last = last.max(*at);
        }
    }
    let target = if last == Time(0) { switchward_shard::SystemClock.now() } else { last };
    clock.advance(target.since_ms(clock.now()));
    Ok(())
}

/// Listens from now on for being told to stop, by SIGTERM or ctrl-c; what it gives is done when that has come.
pub(crate) fn stopped() -> impl Future<Output = ()> + Send {
    let heard = |kind, name: &str| {
        let told = tokio::signal::unix::signal(kind);
        told.inspect_err(|error| tracing::error!(%error, "failed to listen for {name}")).ok()
    };
    let terminate = heard(SignalKind::terminate(), "SIGTERM");
    let interrupt = heard(SignalKind::interrupt(), "ctrl-c");
    async move {
        // Either may come first; the other one is then of no interest any more.
        tokio::select! {
            () = came(terminate) => {}
            () = came(interrupt) => {}
        }
    }
}

/// Listens for SIGHUP from now on, which then ends the process no more.
pub(crate) fn hangups() -> Option<Signal> {
    let heard = tokio::signal::unix::signal(SignalKind::hangup());
    heard.inspect_err(|error| tracing::error!(%error, "failed to listen for SIGHUP")).ok()
}

/// Done when the signal has come; never where nobody listens for it.
async fn came(signal: Option<Signal>) {
    match signal {
        Some(mut signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
