//! A gateway: a process that holds no data, and passes all calls on to the servers of its cluster.

use anyhow::Context as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use switchward_gateway::proxy::{Proxy, gateway_port};
use switchward_gateway::serve::serve as serve_port;
use switchward_peer::CallDialer;
use tokio::net::TcpListener;

use crate::args::Output;
use crate::commands::server::metrics;
use crate::config::Config;
use crate::exit::Exit;
use crate::member::{self, ToServers};
use crate::metrics_port::MetricsPort;
use crate::node::stopped;
use crate::ready::Ready;
use crate::reload::hangups;
use crate::tls::{self, Certificates};

/// Serves until it is stopped.
pub(crate) async fn serve(config: Config, output: Output) -> Result<(), Exit> {
    let cluster = config.cluster.as_ref().context("the configuration is that of a server alone")?;
    let [of_port, of_cluster] = [hangups(), hangups()];
    let certificates = config.tls.as_ref().map(Certificates::open).transpose()?;
    let own = member::read_certificates(cluster)?;
    let (name, id) = member::without_data(cluster, &own)?;
    let dialer = CallDialer::new(id, name, &own).context("cluster.cert_file")?;
    let (servers, memory) = (Arc::new(ToServers(dialer.clone())), config.memory_bytes());
    let proxy = Proxy::of_gateway(cluster.peers()?, servers, memory);
    let (app, health) = gateway_port(&proxy, config.cors.origins()?, memory).await;
    let listener = TcpListener::bind(config.listen).await;
    let listener = listener.with_context(|| format!("listen: failed to listen on {}", config.listen))?;
    let pages = metrics(&config).await?;
    let acceptor = certificates.as_ref().map(Certificates::acceptor);
    let stopped = stopped();
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    let address = format!("{scheme}://{}", listener.local_addr().map_err(anyhow::Error::from)?);
    tracing::info!(%address, "listening");
    announce(Some(address), None, output)?;
    let (ending, ended) = tokio::sync::oneshot::channel::<()>();
    let metrics_port = MetricsPort::start(pages, health.pages(), ended)?;
    let follow = (proxy.clone(), health.clone());
    let tasks = [
        tokio::spawn(async move { follow.0.follow(follow.1).await }),
        tokio::spawn(member::follow_certificates(cluster.clone(), of_cluster, move |tls| {
            dialer.set_tls(tls)
        })),
        tokio::spawn(tls::follow(certificates, of_port)),
    ];
    let following = tasks[0].abort_handle();
    let stop = async move {
        stopped.await;
        following.abort();
        health.set_not_ready().await;
        proxy.stop();
    };
    serve_port(listener, acceptor, app, config.connections.limits(), stop).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    drop(ending);
    metrics_port.end().await?;
    tracing::info!("stopped");
    Ok(())
}

/// Says to a program where a process without data listens for clients, if it does, and where its metrics are. It works once
/// it knows the cluster, which its health says.
pub(crate) fn announce(
    address: Option<String>,
    metrics: Option<SocketAddr>,
    output: Output,
) -> anyhow::Result<()> {
    if output.json() {
        let (data_dir, durable) = (PathBuf::new(), false);
        let metrics = metrics.map(|at| format!("http://{at}/metrics"));
        let ready = Ready { address, metrics, keys: None, data_dir, durable, clock: "system" };
        ready.print()?;
    }
    Ok(())
}
