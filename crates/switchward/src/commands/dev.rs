//! `switchward dev`: a development server on one port, with keys for the agent, the person and a worker; or several as a
//! cluster.

mod ask;
mod bus;
mod contexts;
mod control;
mod crew;
mod keys;
pub(crate) mod link;
mod links;
mod logs;
mod member;
mod opening;
mod parent;
mod plan;
mod ports;
mod process;
pub(in crate::commands) mod remote;
mod running;
mod words;

use contexts::Written;
use keys::Keys;
use opening::{Site, delivery, listen, ring};
use process::KeyCheck;
pub(crate) use running::server_at;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::pin::Pin;
use switchward_gateway::ConnectionLimits;
use switchward_messages::cli::dev as texts;

use crate::args::{DevArgs, DevCommand, Output};
use crate::exit::{Exit, unwritten};
use crate::node::{shards_default, stopped};
use crate::outbound::DeliveryConfig;
use crate::ready::Ready;
use crate::reload::hangups;
use crate::{private, runtime, telemetry, tls};

/// The tenant of a development server.
const TENANT: &str = "dev";
/// The person who is notified of gates that address nobody, unless there is a directory.
pub(crate) const PERSON: &str = "person@switchward.localhost";
/// The default log level.
const LEVEL: &str = "warn";

/// Done when a signal has come that stops the server.
type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves until it is stopped, or carries out a command about a cluster that runs.
pub(crate) fn run(mut args: DevArgs, output: Output) -> Result<(), Exit> {
    let done = match (args.what.take(), args.servers) {
        (Some(DevCommand::Member(of)), _) if of.ensure_keys => member::run(&of.file, KeyCheck::Ensure),
        (Some(DevCommand::Member(of)), _) => member::run(&of.file, KeyCheck::Skip),
        (Some(DevCommand::Bus(of)), _) => bus::run(&of.file),
        (Some(command), _) => ask::run(command, output),
        (None, 1) => alone(args, output),
        (None, _) => parent::run(args, output),
    };
    done.map_err(|exit| exit.in_format(output))
}

/// The data folder, and what deletes it when it is dropped if none was named.
fn data_folder(named: Option<&PathBuf>) -> anyhow::Result<(PathBuf, Option<tempfile::TempDir>)> {
    if let Some(folder) = named {
        return Ok((folder.clone(), None));
    }
    let scratch = tempfile::Builder::new().prefix("switchward-dev-").tempdir()?;
    // The key ring is beside the data folder, and is deleted with it.
    Ok((scratch.path().join("data"), Some(scratch)))
}

/// Serves alone.
fn alone(args: DevArgs, output: Output) -> Result<(), Exit> {
    if args.redis.is_some() {
        return Err(Exit::usage("--redis is for several servers").next("--servers 3    starts a cluster"));
    }
    tls::install_provider();
    private::begin();
    if args.end_with_parent {
        member::end_with_parent();
    }
    let runtime = runtime::make()?;
    // From now on, so that a temporary folder is deleted also if a signal comes before the server is ready.
    let stop: Option<Stop> = args.data_dir.is_none().then(|| {
        let _entered = runtime.enter();
        Box::pin(stopped()) as Stop
    });
    let (folder, scratch) = data_folder(args.data_dir.as_ref())?;
    plan::refuse_cluster(&folder)?;
    let served = runtime.block_on(serve(args, folder, output, stop));
    // The store closes when the last task is gone, and its files must be there until then.
    drop(runtime);
    drop(scratch);
    served.map_err(Exit::failed)
}

/// Starts logging, at the level of the environment.
fn start_logging() -> anyhow::Result<telemetry::Telemetry> {
    let level = std::env::var("SWITCHWARD_LOG__LEVEL").unwrap_or_else(|_| LEVEL.into());
    telemetry::start(&level)
}

async fn serve(args: DevArgs, folder: PathBuf, output: Output, stop: Option<Stop>) -> anyhow::Result<()> {
    let _telemetry = start_logging()?;
    // A terminal that closes does not end the server.
    let following = tokio::spawn(tls::follow(None, hangups()));
    let delivery = delivery()?;
    let listener = listen(args.port).await?;
    let at = format!("http://{}", listener.local_addr()?);
    let site = Site {
        folder: &folder,
        address: &at,
        shards: args.shards.unwrap_or_else(shards_default),
        clock: args.clock,
        clock_off: args.clock_off.as_deref(),
        allowed_hosts: args.allowed_hosts,
        default_effect: args.default_effect,
        delivery: &delivery,
        redis: None,
        keys: ring(&folder, &folder)?,
        cluster: None,
    };
    let node = site.open().await?;
    let keys = Keys::of(&folder)?;
    keys.ensure(&node).await?;
    let metrics = listen(0).await?;
    let contexts = Written::write(&at, listener.local_addr()?.port(), &keys)?;
    let ready = Ready {
        address: Some(at),
        metrics: Some(format!("http://{}/metrics", metrics.local_addr()?)),
        keys: Some(keys.shown()),
        data_dir: folder,
        durable: args.data_dir.is_some(),
        clock: args.clock.name(),
    };
    let stop = stop.unwrap_or_else(|| Box::pin(stopped()));
    if output.json() {
        ready.print()?;
    } else {
        announce(&ready, &contexts, &delivery).map_err(unwritten)?;
    }
    let served = node.serve(Some(listener), Some(metrics), None, ConnectionLimits::default(), stop).await;
    following.abort();
    served?;
    words::stopped(output);
    Ok(())
}

/// Prints the address, the keys and the next commands.
fn announce(ready: &Ready, contexts: &Written, delivery: &DeliveryConfig) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let (bold, reset) = (anstyle::Style::new().bold(), anstyle::Reset);
    let at = ready.address.as_deref().unwrap_or_default();
    writeln!(out, "{bold}Switchward{reset} {}", texts::SERVER_READY)?;
    writeln!(out)?;
    writeln!(out, "  address     {bold}{at}{reset}")?;
    words::keys(&mut out, ready)?;
    writeln!(out, "  mail        {bold}{at}/mail{reset}")?;
    writeln!(out, "  webhooks    {bold}{at}/webhooks{reset}")?;
    if let Some(metrics) = &ready.metrics {
        writeln!(out, "  metrics     {metrics}")?;
    }
    words::facts(&mut out, ready, contexts, delivery)?;
    writeln!(out)?;
    words::next(&mut out, contexts)?;
    writeln!(out)?;
    writeln!(out, "{}", texts::HOW_TO_STOP)?;
    out.flush()
}
