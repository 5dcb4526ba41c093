//! A delivery process: it holds no data, takes jobs from the Redis of its cluster, does them, and reports to the servers.

use anyhow::Context as _;
use std::sync::Arc;
use switchward_gateway::{proxy::Proxy, routes::Services};
use switchward_outbound::{FromServers, Worker};
use switchward_peer::{CallDialer, cluster_text};

use crate::args::Output;
use crate::commands::server::metrics;
use crate::config::Config;
use crate::exit::Exit;
use crate::gateway::announce;
use crate::mail_config::MailConfig;
use crate::member::{self, ToServers};
use crate::metrics_port::MetricsPort;
use crate::node::stopped;
use crate::outbound;
use crate::reload::hangups;

/// Delivers until it is stopped. What was begun by then is done, or left to other processes.
pub(crate) async fn serve(config: Config, output: Output) -> Result<(), Exit> {
    let cluster = config.cluster.as_ref().context("the configuration is that of a server alone")?;
    let hangups = hangups();
    let own = member::read_certificates(cluster)?;
    let (name, id) = member::without_data(cluster, &own)?;
    let shown = name.to_string();
    let dialer = CallDialer::new(id, name, &own).context("cluster.cert_file")?;
    let mail = config.mail.as_ref().map(MailConfig::channel).transpose()?;
    let settings = outbound::worker(&config.delivery, mail)?;
    let pages = metrics(&config).await?;
    let at = pages.as_ref().and_then(|pages| pages.local_addr().ok());
    let bus = outbound::open_bus(config.redis.as_ref(), &cluster_text(&id)).await?;
    let proxy = Proxy::of_delivery(cluster.peers()?, Arc::new(ToServers(dialer.clone())));
    let servers = FromServers::new(proxy.clone());
    let (_, health) = Services::new().await;
    let (ending, ended) = tokio::sync::oneshot::channel::<()>();
    let metrics_port = MetricsPort::start(pages, health.pages(), ended)?;
    let answers = Arc::new(servers.clone());
    let worker = Worker::start(Arc::clone(&bus), answers, servers, settings).map_err(anyhow::Error::from)?;
    let stopped = stopped();
    tracing::info!(name = shown, "delivering");
    announce(None, at, output)?;
    let (follow, ready) = (proxy, health.clone());
    let tasks = [
        tokio::spawn(async move { follow.follow(ready).await }),
        tokio::spawn(member::follow_certificates(cluster.clone(), hangups, move |tls| dialer.set_tls(tls))),
    ];
    stopped.await;
    health.set_not_ready().await;
    worker.end().await;
    bus.close().await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    drop(ending);
    metrics_port.end().await?;
    tracing::info!("stopped");
    Ok(())
}
