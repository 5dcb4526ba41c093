//! `switchward server`: one node, configured by a file, the environment and options.

use anyhow::Context as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchward_gateway::{auth::NewKey, decision::SignIn};
use switchward_shard::MonotonicClock;
use switchward_state::catalogue::Role;
use switchward_state::seal::{KeyRing, RingKey};
use tokio::net::TcpListener;

use crate::args::{Output, RunServer, ServerArgs};
use crate::backup::restore::{self, Restoring};
use crate::config::Config;
use crate::exit::Exit;
use crate::key_ring::KeyRingLocation;
use crate::mail_config::MailConfig;
use crate::member::{ProcessKind, ProcessRole};
use crate::node::{CACHE_BYTES_DEFAULT, Mail, Node, Opening, shards_default, stopped};
use crate::output::shell;
use crate::ready::Ready;
use crate::reload::hangups;
use crate::sign_in::OpenId;
use crate::start_checks::{CONFIGURED_TENANTS, or_at_next_start};
use crate::tls::Certificates;
use crate::{config, delivery_process, gateway, key_ring, private, runtime, telemetry, tls};

/// Serves until it is stopped.
pub(crate) fn run(args: RunServer, output: Output) -> Result<(), Exit> {
    configured(&args, output).map_err(|exit| exit.in_format(output))
}

fn configured(args: &RunServer, output: Output) -> Result<(), Exit> {
    tls::install_provider();
    private::begin();
    let config = config::read(args.server.config.as_ref(), &flags(&args.server))?;
    runtime::make()?.block_on(async {
        let _telemetry = telemetry::start(&config.log.level)?;
        let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
        for name in config::unread(names) {
            tracing::warn!("{name} is not a setting; the server ignores it");
        }
        for file in private::secret_files(&config) {
            private::refuse_open_file(file)?;
        }
        let kind = config.kind();
        if kind != ProcessKind::Server && args.restore.is_some() {
            return Err(Exit::usage("this process keeps no data, so no backup can be restored into it"));
        }
        match kind {
            ProcessKind::Gateway => return gateway::serve(config, output).await,
            ProcessKind::Delivery => return delivery_process::serve(config, output).await,
            ProcessKind::Server => {}
        }
        if args.restore.is_some() && config.cluster.is_some() {
            let message =
                "a backup is restored into a server alone, and the configuration has a table [cluster]";
            return Err(Exit::usage(message)
                .next("restore without [cluster], stop the server, then run `switchward cluster init`"));
        }
        let location = KeyRingLocation::find(config.keys_file.as_deref(), &config.data_dir);
        let keys = location.read()?;
        let restoring = match &args.restore {
            Some(backup) => {
                Some(restored(backup.clone(), args.erasures.clone(), &config, &keys, &location).await?)
            }
            None => None,
        };
        serve(config, KeyRing::of(keys), location, restoring, output).await
    })
}

/// The configuration values of the command line, by key.
pub(super) fn flags(args: &ServerArgs) -> Vec<(&'static str, serde_json::Value)> {
    let path = |path: &std::path::PathBuf| serde_json::Value::from(path.to_string_lossy().into_owned());
    let mut flags = Vec::new();
    flags.extend(args.listen.map(|listen| ("listen", listen.to_string().into())));
    flags.extend(args.data_dir.as_ref().map(|dir| ("data_dir", path(dir))));
    flags.extend(args.tls_cert.as_ref().map(|file| ("tls.cert_file", path(file))));
    flags.extend(args.tls_key.as_ref().map(|file| ("tls.key_file", path(file))));
    flags.extend(args.insecure_listen.then_some(("insecure_listen", true.into())));
    flags.extend(args.shards.map(|shards| ("shards", shards.into())));
    flags.extend(args.log.as_ref().map(|level| ("log.level", level.clone().into())));
    flags
}

/// Restores a backup into the data folder.
async fn restored(
    backup: PathBuf,
    lists: Vec<PathBuf>,
    config: &Config,
    keys: &[RingKey],
    location: &KeyRingLocation,
) -> Result<Restoring, Exit> {
    let (ids, location): (Vec<_>, _) = (keys.iter().map(RingKey::id).collect(), location.clone());
    let data = config.data_dir.clone();
    tracing::info!(backup = %backup.display(), data_dir = %data.display(), "restoring a backup");
    let prepared =
        tokio::task::spawn_blocking(move || restore::prepare(&backup, &lists, &data, &ids, &location)).await;
    prepared.map_err(anyhow::Error::from)?
}

async fn serve(
    config: Config,
    ring: KeyRing,
    location: KeyRingLocation,
    restoring: Option<Restoring>,
    output: Output,
) -> Result<(), Exit> {
    let hangups = hangups();
    let certificates = config.tls.as_ref().map(Certificates::open).transpose()?;
    let keys = keys(&config)?;
    config.delivery.waits_ms()?;
    if config.has(ProcessRole::Delivery) {
        config.delivery.check_worker()?;
    }
    let limits = config.connections.limits();
    let listener = listener(&config).await?;
    let metrics = metrics(&config).await?;
    let none = ring.current().is_none().then(|| location.clone());
    let node = opened(&config, ring, location, restoring).await?;
    none.iter().for_each(key_ring::warn_without_keys);
    for (tenant, key) in &keys {
        let ensured = node.ensure(tenant, key, Role::Admin, "admin").await;
        let ensured = ensured.with_context(|| format!("tenants: {tenant}"));
        or_at_next_start(CONFIGURED_TENANTS, ensured)?;
    }
    if !node.has_tenants().await? {
        node.close().await?;
        return Err(without_tenants(&config));
    }
    let stopped = stopped();
    let acceptor = certificates.as_ref().map(Certificates::acceptor);
    let address = address(listener.as_ref(), acceptor.is_some())?;
    let page = metrics.as_ref().and_then(|metrics| metrics.local_addr().ok());
    let page = page.map(|at| format!("http://{at}/metrics"));
    tracing::info!(address, metrics = page, "ready");
    if output.json() {
        let ready = Ready {
            address,
            metrics: page,
            keys: None,
            data_dir: config.data_dir,
            durable: true,
            clock: "system",
        };
        ready.print()?;
    }
    let following = tokio::spawn(tls::follow(certificates, hangups));
    let served = node.serve(listener, metrics, acceptor, limits, stopped).await;
    following.abort();
    served?;
    tracing::info!("stopped");
    Ok(())
}

/// The listener for clients; `None` without the role gateway: then clients are answered through other processes alone.
async fn listener(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    if !config.has(ProcessRole::Gateway) {
        return Ok(None);
    }
    let listener = TcpListener::bind(config.listen).await;
    listener.map(Some).with_context(|| format!("listen: failed to listen on {}", config.listen))
}

/// Where clients reach the server; `None` if they do not.
fn address(listener: Option<&TcpListener>, secure: bool) -> anyhow::Result<Option<String>> {
    let scheme = if secure { "https" } else { "http" };
    let at = listener.map(TcpListener::local_addr).transpose()?;
    Ok(at.map(|at| format!("{scheme}://{at}")))
}

/// The listener of the metrics page; `None` if another server of this machine uses the default port.
pub(crate) async fn metrics(config: &Config) -> anyhow::Result<Option<TcpListener>> {
    let (at, asked) = config.metrics_at();
    match TcpListener::bind(at).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if asked => {
            Err(error).with_context(|| format!("metrics.listen: failed to listen on {at}"))
        }
        Err(error) => {
            tracing::warn!(%at, %error, "the metrics page is off: set metrics.listen to another address");
            Ok(None)
        }
    }
}

async fn opened(
    config: &Config,
    ring: KeyRing,
    location: KeyRingLocation,
    restoring: Option<Restoring>,
) -> anyhow::Result<Node> {
    let mail = match &config.mail {
        Some(mail) if config.has(ProcessRole::Delivery) => {
            Mail::Channel(mail.channel()?, mail.incoming()?.map(Box::new))
        }
        Some(mail) => Mail::Elsewhere(mail.incoming()?.map(Box::new)),
        None => Mail::None,
    };
    let provider = config.mail.as_ref().map(MailConfig::provider).transpose()?.flatten();
    let opening = Opening {
        shards: config.shards.unwrap_or_else(shards_default),
        memory_bytes: config.memory_bytes(),
        cache_bytes: config.cache_mib.map_or(CACHE_BYTES_DEFAULT, |mib| mib.saturating_mul(1024 * 1024)),
        clock: Arc::new(MonotonicClock::new()),
        manual: None,
        delivery: &config.delivery,
        redis: config.redis.as_ref(),
        keys: (ring, location),
        mail,
        disk: config.disk.options(),
        origins: config.cors.origins()?,
        default_effect: config.default_effect.map(Into::into),
        quotas: config.quotas.defaults(),
        pages: config.mail.as_ref().map(MailConfig::page_settings).unwrap_or_default(),
        sign_in: provider.map(|provider| Arc::new(OpenId(provider)) as Arc<dyn SignIn>),
        restoring,
        cluster: config.cluster.as_ref(),
    };
    let node = Node::open(&config.data_dir, opening).await;
    node.with_context(|| format!("data_dir: failed to open {}", config.data_dir.display()))
}

/// The error of a server without tenants.
fn without_tenants(config: &Config) -> Exit {
    let keys = config.keys_file.as_deref().map(Path::to_string_lossy);
    let ring = keys.map(|file| format!("SWITCHWARD_KEYS_FILE={} ", shell(&file))).unwrap_or_default();
    let data = config.data_dir.to_string_lossy();
    let make = format!("switchward tenant create NAME --data-dir {}", shell(&data));
    Exit::usage("this server has no tenant, so no key can call it")
        .next(format!("{ring}{make}    creates a tenant and shows its first key once"))
        .next("[[tenants]] in the configuration creates a tenant with a key from a file; see deploy/switchward.toml")
}

/// The first keys of the configured tenants, from their files.
pub(super) fn keys(config: &Config) -> anyhow::Result<Vec<(String, NewKey)>> {
    let key = |tenant: &config::Tenant| {
        let file = &tenant.admin_key_file;
        let text = fs::read_to_string(file)
            .with_context(|| format!("tenants: failed to read {}", file.display()))?;
        let key = NewKey::given(text.trim());
        let key = key.with_context(|| {
            format!("tenants: {} is not a key; write swk_, 16 hex digits, _, 64 hex digits", file.display())
        })?;
        Ok((tenant.name.clone(), key))
    };
    config.tenants.iter().map(key).collect()
}
