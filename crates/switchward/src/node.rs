//! A server of one node: its shards, its services, its port.

use anyhow::Context as _;
use axum::Router;
use http::HeaderValue;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use switchward_delivery::{channels::MailChannel, mail::Sender};
use switchward_gateway::{
    Admission, Api, ConnectionLimits, PageSettings, Port, QuotaDefaults,
    auth::NewKey,
    decision::{self, SignIn},
    mail::{self, MailIngress},
    one_port::{OneService, one_port},
    proxy::CallServer,
    routes::{Health, Services},
    sealing, serve, services, webhooks,
};
use switchward_machine::TenantId;
use switchward_outbound::{DeliveryServer, RelaySettings};
use switchward_query::{Evaluate, GetApiKey, GetTenant, GetTenantRecord};
use switchward_shard::{Clock, Cluster, ClusterOptions, Failure, ManualClock, MemberOptions};
use switchward_state::catalogue::{
    CatalogueCommand, CreateKey, CreateTenant, DefaultEffect, Directory, PutDirectory, Role, Settings,
};
use switchward_state::seal::KeyRing;
use switchward_state::{Body, Command, Reason};
use switchward_store::{DataDir, DiskOptions};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind},
};
use tokio_rustls::TlsAcceptor;

use crate::backup::restore::{Restored, Restoring};
use crate::control::Control;
use crate::exit::{end_process, limit_stop};
use crate::key_ring::{KeyRingLocation, explained};
use crate::mail_config::Incoming;
use crate::mail_in::MailListeners;
use crate::mailbox::Mailbox;
use crate::member::{ClusterConfig, Connections, ProcessRole, pass_on};
use crate::metrics_port::MetricsPort;
use crate::outbound::{DeliveryConfig, Jobs, RedisConfig};
use crate::quarantine::{Quarantine, Sweeper};
use crate::reload::{hangups, hangups_unless_ignored};
use crate::sign_in::warn_of_missing_provider;
use crate::start_checks::{KNOWN_TENANTS, SIGN_IN, catch_up, ensure_tenancy, know_tenants, or_at_next_start};
use crate::{health, home, inspector, key_ring, mailbox, metrics, outbound, page_guard};

/// The default size of clean rows in memory, bytes: those of some 20,000 sessions at work. What is parked longer
/// is read from disk when it goes on.
pub(crate) const CACHE_BYTES_DEFAULT: usize = 32 * 1024 * 1024;

/// An opened node.
pub(crate) struct Node {
    cluster: Cluster,
    data: DataDir,
    api: Api,
    location: KeyRingLocation,
    health: Health,
    app: Port,
    metrics: Router,
    delivery: Option<switchward_outbound::Role>,
    listeners: Option<MailListeners>,
    connections: Option<Connections>,
}

/// The options of a node.
pub(crate) struct Opening<'a> {
    /// Shards of a new data folder.
    pub(crate) shards: u32,
    /// The memory limit of the server, bytes.
    pub(crate) memory_bytes: usize,
    /// Clean rows in memory, bytes.
    pub(crate) cache_bytes: usize,
    /// The time.
    pub(crate) clock: Arc<dyn Clock>,
    /// The same, if calls may move it.
    pub(crate) manual: Option<ManualClock>,
    /// What the server does by itself outside.
    pub(crate) delivery: &'a DeliveryConfig,
    /// The Redis that this goes over; `None`: within this process.
    pub(crate) redis: Option<&'a RedisConfig>,
    /// The key ring, and the location from which it is read again.
    pub(crate) keys: (KeyRing, KeyRingLocation),
    /// Where mail goes.
    pub(crate) mail: Mail,
    /// What happens when the disk runs low.
    pub(crate) disk: DiskOptions,
    /// Whose pages may call from a browser.
    pub(crate) origins: Vec<HeaderValue>,
    /// What holds for a tool call that no rule names, unless its tenant sets it.
    pub(crate) default_effect: Option<DefaultEffect>,
    /// The quotas of a tenant that has none of its own.
    pub(crate) quotas: QuotaDefaults,
    /// How decision pages recognise people.
    pub(crate) pages: PageSettings,
    /// The sign-in of those pages; `None`: there is none.
    pub(crate) sign_in: Option<Arc<dyn SignIn>>,
    /// A backup that was put into the data folder.
    pub(crate) restoring: Option<Restoring>,
    /// The cluster that the server belongs to; `None`: it is alone.
    pub(crate) cluster: Option<&'a ClusterConfig>,
}

/// Where mail goes.
pub(crate) enum Mail {
    /// Nowhere: it waits in the outbox.
    None,
    /// To a mail server; replies come back by these listeners, if there are any.
    Channel(MailChannel, Option<Box<Incoming>>),
    /// To delivery processes, which send it; replies come back here.
    Elsewhere(Option<Box<Incoming>>),
    /// Into the mailbox of a development server, beside an inspector of this tenant's webhooks; their pages are answered
    /// under these names too.
    Mailbox(Box<Sender>, Mailbox, &'static str, Vec<String>),
}

/// Outbound and inbound mail.
#[derive(Default)]
struct Mails {
    channel: Option<MailChannel>,
    ingress: Option<MailIngress>,
    listeners: Option<MailListeners>,
    pages: Router,
}

impl Mails {
    async fn of(mail: Mail, api: &Api, cluster: &Cluster) -> anyhow::Result<Self> {
        match mail {
            Mail::None => Ok(Self::default()),
            Mail::Elsewhere(incoming) => Self::incoming(incoming, api, cluster).await,
            Mail::Channel(channel, incoming) => {
                let mails = Self::incoming(incoming, api, cluster).await?;
                Ok(Self { channel: Some(channel), ..mails })
            }
            Mail::Mailbox(sender, mailbox, tenant, hosts) => {
                let at = sender.pages.clone().unwrap_or_default();
                let webhooks = inspector::pages(cluster.clone(), tenant, &at);
                let channel = MailChannel { sender: Arc::new(*sender), post: Arc::new(mailbox.clone()) };
                let ingress = mailbox::ingress(api.clone())?;
                let pages = mailbox::pages(mailbox, ingress.clone()).merge(webhooks);
                let pages = page_guard::before(pages, &hosts).merge(mail::pages(&ingress, &[]));
                Ok(Self { channel: Some(channel), ingress: Some(ingress), listeners: None, pages })
            }
        }
    }

    /// The listeners by which replies come back, and their pages.
    async fn incoming(incoming: Option<Box<Incoming>>, api: &Api, cluster: &Cluster) -> anyhow::Result<Self> {
        let Some(incoming) = incoming else { return Ok(Self::default()) };
        let trusted = incoming.trusted_callers.clone();
        let catalogue = cluster.catalogue().clone();
        let listeners = MailListeners::find(*incoming, api.clone(), catalogue).await?;
        let ingress = listeners.ingress.clone();
        let pages = mail::pages(&ingress, &trusted);
        Ok(Self { channel: None, ingress: Some(ingress), listeners: Some(listeners), pages })
    }
}

/// How many shards a new data folder gets: one per core, four at most; a shard costs only batch size.
pub(crate) fn shards_default() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores.min(4)).unwrap_or(1)
}

/// Ends the process of a server whose disk fails.
fn fatal(why: &str) {
    // Whatever is acknowledged is on disk; going on could acknowledge what is not.
    end_process(why)
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
            keys: (ring, location),
            mail,
            disk,
            origins,
            default_effect,
            quotas,
            pages,
            sign_in,
            restoring,
            cluster: membership,
        } = opening;
        let data = match &restoring {
            Some(restoring) => restoring.data.clone(),
            None => DataDir::open(data)?,
        };
        let data = data.watched(disk)?;
        let (owner, reach) = (outbound::owner(&data), outbound::reach(redis, &data));
        let quarantine = Quarantine::open(data.path())?;
        let (mut connections, member) = joined(membership, &data, &ring, &clock)?;
        let on_fatal = Box::new(fatal);
        let options =
            ClusterOptions { data: data.clone(), shards, cache_bytes, clock, ring, on_fatal, member };
        let cluster = open_cluster(options, &mut connections, &location).await?;
        catch_up(&cluster, manual.as_ref()).await?;
        or_at_next_start(KNOWN_TENANTS, know_tenants(&cluster).await)?;
        // Before anything could go out.
        if let Some(restoring) = restoring {
            restored(restoring.finish(&cluster).await?);
        }
        if sign_in.is_none() {
            or_at_next_start(SIGN_IN, warn_of_missing_provider(&cluster).await)?;
        }
        let (all, health) = Services::new().await;
        let clock = manual.map(|clock| Arc::new(clock) as Arc<dyn services::MovableClock>);
        let api = Api::new(cluster.clone(), clock).leaving(outbound::kinds(delivery)).limiting(quotas);
        let api = api.within_memory(memory_bytes).defaulting(default_effect);
        let api = api.recognising(pages).signing_in(sign_in);
        let development = matches!(mail, Mail::Mailbox(..));
        let sends_mail = !matches!(mail, Mail::None);
        let api = if development { api.of_development() } else { api };
        api.keeping(Arc::new(quarantine));
        let routes = OneService::of(services::all(all, &api));
        let routes = pass_on(connections.as_ref(), &cluster, routes);
        let Mails { channel, ingress, listeners, pages: mail_pages } =
            Mails::of(mail, &api, &cluster).await?;
        let imap = listeners.as_ref().and_then(|listeners| listeners.imap_health.clone());
        let home = if development { home::page_of_development() } else { home::page() };
        let pages = pages_of(&health, &api).merge(home).merge(mail_pages);
        let app = one_port(routes, pages, origins, &Admission::of(&api));
        if let Some(connections) = &mut connections {
            let answers = Arc::new(DeliveryServer::new(cluster.clone(), delivery.waits_ms()?));
            connections.serve(&cluster, &api, app.clone(), redis, answers);
        }
        let metrics = metrics::page(cluster.clone(), api.clone(), ingress, imap);
        let delivers = membership.is_none_or(|cluster| cluster.has(ProcessRole::Delivery));
        let elsewhere = RelaySettings { models: delivery.model.is_some(), mail: sends_mail };
        let jobs = if delivers { Jobs::Here(channel) } else { Jobs::Elsewhere(elsewhere) };
        let delivery = outbound::start(&cluster, &api, delivery, redis, &owner, reach, jobs).await?;
        Ok(Self { cluster, data, api, location, health, app, metrics, delivery, listeners, connections })
    }

    /// Serves until `stop` is done, then finishes what is open and writes down what is in memory. Without a listener, clients
    /// are answered only through other processes of the cluster. The process must end then, see [`limit_stop`].
    pub(crate) async fn serve(
        self,
        listener: Option<TcpListener>,
        metrics: Option<TcpListener>,
        tls: Option<TlsAcceptor>,
        limits: ConnectionLimits,
        stop: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let (calls, passed_on) = (self.calls(), self.calls());
        self.health.set_ready().await;
        let control = Control::listen(&self.data, &self.cluster);
        let listeners = self.listeners.map(MailListeners::open);
        let (health, api, cluster) = (self.health.clone(), self.api.clone(), self.cluster.clone());
        let delivery = self.delivery.as_ref();
        let (ending, ended) = tokio::sync::oneshot::channel::<()>();
        let metrics_port = MetricsPort::start(metrics, self.metrics.merge(self.health.pages()), ended)?;
        let sealing = tokio::spawn(key_ring::follow(self.cluster.clone(), self.location, hangups()));
        let disk = tokio::spawn(health::follow(self.health.clone(), self.cluster.clone()));
        let sweeper = Sweeper::start(self.api.clone());
        let stop = async move {
            stop.await;
            limit_stop();
            health.set_not_ready().await;
            if let Some(calls) = calls {
                calls.stop();
            }
            api.drain();
            // The others lead while this one finishes what is open.
            tokio::spawn(async move { cluster.step_down().await });
            if let Some(delivery) = delivery {
                delivery.stop();
            }
        };
        match listener {
            Some(listener) => serve::serve(listener, tls, self.app, limits, stop).await,
            None => stop.await,
        }
        if let Some(calls) = passed_on {
            calls.ended().await;
        }
        disk.abort();
        sealing.abort();
        sweeper.stop().await;
        if let Some(control) = control {
            control.close();
        }
        drop(ending);
        metrics_port.end().await?;
        if let Some(listeners) = listeners {
            listeners.close().await;
        }
        if let Some(delivery) = self.delivery {
            delivery.end().await;
        }
        let written = self.cluster.shutdown().await.context("failed to write the state to disk");
        if let Some(connections) = self.connections {
            connections.close().await;
        }
        written
    }

    /// What answers calls that others pass on; `None` for a server alone.
    fn calls(&self) -> Option<CallServer> {
        self.connections.as_ref().and_then(Connections::calls)
    }

    /// Makes sure that a tenant and a key of it exist. What exists already is left as it is.
    pub(crate) async fn ensure(
        &self,
        tenant: &str,
        key: &NewKey,
        role: Role,
        subject: &str,
    ) -> anyhow::Result<()> {
        // Looks first for what exists: a server also starts on a disk without space for it.
        let by_name = GetTenant { name: tenant.into() };
        if self.ask(&by_name).await?.is_none() {
            let create = CreateTenant {
                name: tenant.into(),
                display_name: tenant.into(),
                settings: Settings::default(),
            };
            self.inner(TenantId(0), Body::Catalogue(CatalogueCommand::CreateTenant(create))).await?;
        }
        let created = self.ask(&by_name).await?;
        let id = created.with_context(|| format!("the tenant {tenant} was not created"))?.id;
        ensure_tenancy(&self.cluster, id).await?;
        if self.ask(&GetApiKey { id: key.id.clone() }).await?.is_some() {
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
        self.inner(id, Body::Catalogue(CatalogueCommand::CreateKey(create))).await
    }

    /// Makes sure that somebody is notified of gates that address nobody: this address, if the tenant has no directory.
    pub(crate) async fn ensure_audience(&self, tenant: &str, address: &str) -> anyhow::Result<()> {
        let found = self.ask(&GetTenant { name: tenant.into() }).await?;
        let id = found.with_context(|| format!("the tenant {tenant} does not exist"))?.id;
        let record = self.ask(&GetTenantRecord { tenant: id }).await?;
        if record.is_some_and(|record| record.directory != Directory::default()) {
            return Ok(());
        }
        let directory = Directory { audience: vec![address.to_owned()], ..Directory::default() };
        let (key, etag) = (sealing::mail_key(&self.cluster.ring(), id), String::new());
        self.inner(id, Body::Catalogue(CatalogueCommand::PutDirectory(PutDirectory { directory, key, etag })))
            .await
    }

    /// Returns true if there is any tenant, and so a key that opens the server; also if there is no leader to ask.
    pub(crate) async fn has_tenants(&self) -> anyhow::Result<bool> {
        match self.cluster.tenants().await {
            Ok(tenants) => Ok(!tenants.is_empty()),
            // A server of a cluster that knows its leaders no more had them before.
            Err(Failure::Electing) => Ok(true),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Ends a node that never served.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        if let Some(delivery) = self.delivery {
            delivery.end().await;
        }
        let written = self.cluster.shutdown().await.context("failed to write the state to disk");
        if let Some(connections) = self.connections {
            connections.close().await;
        }
        written
    }

    /// Answers a query of the catalogue's rows.
    async fn ask<Q: Evaluate>(&self, query: &Q) -> anyhow::Result<Q::Answer> {
        query.evaluate(&self.cluster.catalogue().read().await?).context("failed to read")
    }

    async fn inner(&self, tenant: TenantId, body: Body) -> anyhow::Result<()> {
        let command = Command::in_own_scope(tenant, body);
        match self.cluster.execute(command).await {
            Ok(_) => Ok(()),
            Err(Failure::Rejected(no)) if no.reason == Reason::AlreadyExists => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }
}

/// Opens the cluster. If that fails, the connections to other servers end before this returns, and what Raft's tasks hold is
/// free.
async fn open_cluster(
    options: ClusterOptions,
    connections: &mut Option<Connections>,
    location: &KeyRingLocation,
) -> anyhow::Result<Cluster> {
    match Cluster::open(options).await {
        Ok(cluster) => Ok(cluster),
        Err(error) => {
            if let Some(connections) = connections.take() {
                connections.close().await;
            }
            Err(explained(error, location))
        }
    }
}

/// The connections to the other servers of a cluster, and what this server is there; both are `None` for a server alone.
fn joined(
    membership: Option<&ClusterConfig>,
    data: &DataDir,
    ring: &KeyRing,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<(Option<Connections>, Option<MemberOptions>)> {
    let Some(config) = membership else { return Ok((None, None)) };
    let connections = Connections::start(config, data, ring, clock)?;
    let member = connections.member(data)?;
    Ok((Some(connections), Some(member)))
}

/// The pages that every server has.
fn pages_of(health: &Health, api: &Api) -> Router {
    health.pages().merge(decision::pages(api.clone())).merge(webhooks::pages(api))
}

/// Logs the result of a restore.
fn restored(restored: Restored) {
    let Restored { taken, held, removed } = restored;
    let taken = switchward_state::policy::time_text(taken);
    tracing::info!(taken, removed_again = removed, "restored the backup");
    tracing::warn!(
        tenants = held,
        "effects are held: an operator of each tenant releases them with `switchward effect release`"
    );
}

/// Listens from now on for SIGTERM and ctrl-c; the returned future is done when either has come.
pub(crate) fn stopped() -> impl Future<Output = ()> + Send {
    let listen = |kind, name: &str| {
        let signal = tokio::signal::unix::signal(kind);
        signal.inspect_err(|error| tracing::error!(%error, "failed to listen for {name}")).ok()
    };
    let terminate = listen(SignalKind::terminate(), "SIGTERM");
    let interrupt = listen(SignalKind::interrupt(), "ctrl-c");
    async move {
        // Either may come first; the other one is then ignored.
        tokio::select! {
            () = came(terminate) => {}
            () = came(interrupt) => {}
        }
    }
}

/// The same for a command that must not outlive its terminal: done, too, when SIGHUP has come.
pub(crate) fn stopped_or_hung_up() -> impl Future<Output = ()> + Send {
    let (stopped, hangups) = (stopped(), hangups_unless_ignored());
    async move {
        // Either may come first; the other one is then ignored.
        tokio::select! {
            () = stopped => {}
            () = came(hangups) => {}
        }
    }
}

/// Waits for the signal; forever if it could not be listened for.
async fn came(signal: Option<Signal>) {
    match signal {
        Some(mut signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
