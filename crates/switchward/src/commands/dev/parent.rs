//! `switchward dev --servers 3`: the process that starts the servers of a development cluster, and stops them.

use anyhow::Context as _;
use serde::Serialize;
use std::future::pending;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use switchward_messages::cli::dev as texts;
use switchward_store::write_secret;
use tokio::sync::mpsc;

use super::bus::{self, LocalBus};
use super::contexts::Written;
use super::control::{Control, PendingRequest};
use super::crew::{Crew, FOUNDER};
use super::keys::Keys;
use super::links::Links;
use super::logs::{Source, say};
use super::member::{Member, end_with_parent};
use super::opening::{delivery, ring};
use super::plan::Plan;
use super::process::ended_in_words;
use super::running::Running;
use super::{data_folder, start_logging, words};
use crate::args::{DevArgs, Output};
use crate::exit::{Exit, unwritten};
use crate::node::{shards_default, stopped};
use crate::outbound::{DeliveryConfig, RedisConfig};
use crate::ready::{Ready, print_json};
use crate::reload::hangups;
use crate::{private, runtime, tls};

/// Serves until it is stopped.
///
/// # Errors
/// Something that is needed is missing or in use, or a server does not start.
pub(super) fn run(args: DevArgs, output: Output) -> Result<(), Exit> {
    tls::install_provider();
    private::begin();
    if args.end_with_parent {
        end_with_parent();
    }
    if args.redis.is_none() && !args.without_redis {
        bus::check()?;
    }
    let (folder, scratch) = data_folder(args.data_dir.as_ref())?;
    if folder.to_str().is_none() {
        return Err(Exit::usage("the path of the data folder of several servers must be UTF-8"));
    }
    let plan = Plan::make(folder, args.servers, args.port)?;
    let served = runtime::make()?.block_on(serve(args, plan, output));
    drop(scratch);
    served.map_err(Exit::failed)
}

/// The servers, and what must live as long as they do.
struct Cluster {
    crew: Crew,
    /// `None` if the Redis was given, or there is none.
    bus: Option<LocalBus>,
    keys: Keys,
    delivery: DeliveryConfig,
}

async fn serve(args: DevArgs, plan: Plan, output: Output) -> anyhow::Result<()> {
    let _telemetry = start_logging()?;
    // A terminal that closes does not end the servers.
    let _hangups = hangups();
    let mut stop = Box::pin(stopped());
    let (_control, mut requests) = Control::listen(&plan.folder)?;
    let folder = plan.folder.clone();
    let mut cluster = Cluster::prepare(&args, plan).await?;
    let formed = tokio::select! {
        formed = cluster.crew.form() => Some(formed),
        () = &mut stop => None,
    };
    if let Some(Ok(())) = formed {
        let _running = Running::note(&folder)?;
        let _contexts = announce(&cluster, &args, folder, output)?;
        attend(&mut cluster, &mut requests, stop).await;
    }
    // Waiting callers get an answer, and ctrl-c once more kills the servers, which end with this process.
    drop(requests);
    tokio::select! {
        () = cluster.crew.stop() => {}
        () = stopped() => say(Source::Dev, texts::KILLED_REMAINING),
    }
    formed.transpose()?;
    words::stopped(output);
    Ok(())
}

impl Cluster {
    /// Makes everything that the servers need.
    async fn prepare(args: &DevArgs, plan: Plan) -> anyhow::Result<Self> {
        let delivery = delivery()?;
        let (_, location) = ring(&plan.folder, &plan.data(FOUNDER))?;
        let keys = Keys::of(&plan.folder)?;
        let (bus, redis) = redis(args, &plan.folder).await?;
        let links = Links::open(&plan.peers()).await.context("failed to open the links")?;
        for slot in &plan.servers {
            let member = Member {
                listen: slot.public,
                data_dir: plan.data(slot.number),
                folder: plan.folder.clone(),
                keys_file: location.file().map(std::path::absolute).transpose()?,
                shards: args.shards.unwrap_or_else(shards_default),
                clock: args.clock,
                clock_off: args.clock_off.clone(),
                allowed_hosts: args.allowed_hosts.clone(),
                default_effect: args.default_effect,
                cluster: plan.cluster(*slot, links.peers_of(slot.number)),
                redis: redis.clone(),
            };
            write_secret(&plan.file(slot.number), &serde_json::to_vec_pretty(&member)?)?;
        }
        let crew = Crew::new(plan, links, args.clock, keys.person.clone());
        Ok(Self { crew, bus, keys, delivery })
    }
}

/// The Redis of the servers: the one that is named, none, or one that is started here.
async fn redis(args: &DevArgs, folder: &Path) -> anyhow::Result<(Option<LocalBus>, Option<RedisConfig>)> {
    match &args.redis {
        Some(url) => Ok((None, Some(RedisConfig { url: url.clone(), password_file: None, prefix: None }))),
        None if args.without_redis => Ok((None, None)),
        None => {
            let (bus, redis) = LocalBus::start(folder).await?;
            Ok((Some(bus), Some(redis)))
        }
    }
}

/// Answers requests until `stop` is done.
async fn attend(
    cluster: &mut Cluster,
    requests: &mut mpsc::Receiver<PendingRequest>,
    mut stop: std::pin::Pin<Box<impl Future<Output = ()>>>,
) {
    loop {
        tokio::select! {
            () = &mut stop => return,
            how = redis_ended(&mut cluster.bus) => {
                say(Source::Dev, &texts::redis_ended(&how));
            }
            (number, how) = cluster.crew.next_end() => {
                say(Source::Dev, &texts::server_ended(number, &how));
            }
            Some(asked) = requests.recv() => {
                tokio::select! {
                    () = &mut stop => return,
                    answer = cluster.crew.act(asked.request) => {
                        // The caller may be gone.
                        let _gone = asked.answer.send(answer);
                    }
                }
            }
        }
    }
}

/// Waits until the Redis has ended by itself; forever if there is none, or if its end was returned before.
async fn redis_ended(bus: &mut Option<LocalBus>) -> String {
    match bus {
        Some(bus) => ended_in_words(bus.ended().await),
        None => pending().await,
    }
}

/// A server in the line of a ready cluster.
#[derive(Serialize)]
struct ReadyServer {
    server: u64,
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<String>,
}

/// The line of a ready cluster: that of its first server, and all servers.
#[derive(Serialize)]
struct ReadyCluster {
    #[serde(flatten)]
    first: Ready,
    servers: Vec<ReadyServer>,
}

/// Writes the contexts, and prints the addresses, the keys and the next commands.
fn announce(
    cluster: &Cluster,
    args: &DevArgs,
    folder: PathBuf,
    output: Output,
) -> anyhow::Result<Option<Written>> {
    let addresses = cluster.crew.addresses();
    let servers: Vec<ReadyServer> = addresses
        .iter()
        .map(|(slot, metrics)| ReadyServer {
            server: slot.number,
            address: slot.url(),
            metrics: metrics.clone(),
        })
        .collect();
    let Some((first, metrics)) = addresses.first() else { return Ok(None) };
    let mut contexts = Written::write(&first.url(), first.public.port(), &cluster.keys)?;
    for one in servers.iter().skip(1) {
        contexts.add(one.server, &one.address, &cluster.keys)?;
    }
    let first = Ready {
        address: Some(first.url()),
        metrics: metrics.clone(),
        keys: Some(cluster.keys.shown()),
        data_dir: folder,
        durable: args.data_dir.is_some(),
        clock: args.clock.name(),
    };
    let ready = ReadyCluster { first, servers };
    if output.json() {
        print_json(&ready)?;
    } else {
        show(&ready, &contexts, &cluster.delivery).map_err(unwritten)?;
    }
    Ok(Some(contexts))
}

fn show(ready: &ReadyCluster, contexts: &Written, delivery: &DeliveryConfig) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let (bold, reset) = (anstyle::Style::new().bold(), anstyle::Reset);
    writeln!(out, "{bold}Switchward{reset} {}", texts::cluster_ready(ready.servers.len()))?;
    writeln!(out)?;
    for one in &ready.servers {
        writeln!(out, "  server {}    {bold}{}{reset}", one.server, one.address)?;
    }
    words::keys(&mut out, &ready.first)?;
    writeln!(out, "  mail        {}", texts::MAIL_OF_EACH_SERVER)?;
    words::facts(&mut out, &ready.first, contexts, delivery)?;
    writeln!(out, "              {}", texts::further_contexts(&contexts.of_server(2)))?;
    writeln!(out)?;
    words::next(&mut out, contexts)?;
    writeln!(out)?;
    for line in ["status", "kill 2", "start 2", "partition 2", "heal"] {
        writeln!(out, "  switchward dev {line}")?;
    }
    writeln!(out)?;
    writeln!(out, "{}", texts::HOW_TO_STOP_ALL)?;
    out.flush()
}
