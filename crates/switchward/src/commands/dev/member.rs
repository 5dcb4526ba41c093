//! One server of a development cluster: the process that `dev` starts for it.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use switchward_gateway::ConnectionLimits;
use switchward_state::seal::KeyRing;
use switchward_store::DataDir;

use super::keys::Keys;
use super::opening::{Site, delivery, listen};
use super::process::KeyCheck;
use super::start_logging;
use crate::args::{ClockKind, Unnamed};
use crate::exit::Exit;
use crate::key_ring::KeyRingLocation;
use crate::member::{ClusterConfig, ServerClocks, identity};
use crate::node::stopped;
use crate::outbound::RedisConfig;
use crate::ready::Ready;
use crate::reload::hangups;
use crate::{private, runtime, tls};

/// The configuration of the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Member {
    /// Where it listens for clients.
    pub(super) listen: SocketAddr,
    /// Its own data folder.
    pub(super) data_dir: PathBuf,
    /// The folder of the cluster, with its keys.
    pub(super) folder: PathBuf,
    /// The key ring; absent: it is in the environment.
    pub(super) keys_file: Option<PathBuf>,
    /// Shards of a new cluster.
    pub(super) shards: u32,
    pub(super) clock: ClockKind,
    pub(super) clock_off: Option<PathBuf>,
    pub(super) allowed_hosts: Vec<String>,
    pub(super) default_effect: Option<Unnamed>,
    pub(super) cluster: ClusterConfig,
    /// Absent: each server delivers what its own sessions send.
    pub(super) redis: Option<RedisConfig>,
}

impl Member {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or is damaged.
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let bytes = std::fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
        let mut member: Self =
            serde_json::from_slice(&bytes).with_context(|| format!("{} is damaged", file.display()))?;
        member.cluster.fixed_peers = true;
        member.cluster.clocks = match member.clock {
            ClockKind::System => ServerClocks::Compared,
            ClockKind::Manual => ServerClocks::MovedByHand,
        };
        Ok(member)
    }

    /// Binds the data folder to the server.
    fn claim(&self) -> anyhow::Result<()> {
        let data = DataDir::open(&self.data_dir).context("failed to open the data folder")?;
        Ok(data.claim(identity(&self.cluster)?)?)
    }
}

/// Serves until SIGTERM, or until the process that started this one has ended.
///
/// # Errors
/// The file or the data folder cannot be used, or an address is in use.
pub(super) fn run(file: &Path, keys: KeyCheck) -> Result<(), Exit> {
    tls::install_provider();
    private::begin();
    end_with_parent();
    std::thread::spawn(end_with_input);
    let member = Member::read(file)?;
    runtime::make()?.block_on(serve(member, keys)).map_err(Exit::failed)
}

/// Has the system kill this process when the thread that started it ends, also if this process is paused then.
pub(super) fn end_with_parent() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        crate::exit::print_error_line(&switchward_messages::cli::dev::outlives_cluster(&error));
    }
}

/// Ends this process when its standard input ends: the other end is held by the process that started it, which may have
/// ended before [`end_with_parent`].
fn end_with_input() {
    let mut input = std::io::stdin().lock();
    let mut bytes = [0; 64];
    while input.read(&mut bytes).is_ok_and(|count| count > 0) {}
    std::process::exit(1);
}

async fn serve(member: Member, keys: KeyCheck) -> anyhow::Result<()> {
    let _telemetry = start_logging()?;
    let following = tokio::spawn(tls::follow(None, hangups()));
    let delivery = delivery()?;
    let listener = listen(member.listen.port()).await?;
    member.claim()?;
    let location = KeyRingLocation::find(member.keys_file.as_deref(), &member.folder);
    let at = format!("http://{}", member.listen);
    let site = Site {
        folder: &member.data_dir,
        address: &at,
        shards: member.shards,
        clock: member.clock,
        clock_off: member.clock_off.as_deref(),
        allowed_hosts: member.allowed_hosts,
        default_effect: member.default_effect,
        delivery: &delivery,
        redis: member.redis.as_ref(),
        keys: (KeyRing::of(location.read()?), location),
        cluster: Some(&member.cluster),
    };
    let node = site.open().await?;
    if keys == KeyCheck::Ensure {
        Keys::of(&member.folder)?.ensure(&node).await?;
    }
    let metrics = listen(0).await?;
    let stopped = stopped();
    let ready = Ready {
        address: Some(at),
        metrics: Some(format!("http://{}/metrics", metrics.local_addr()?)),
        keys: None,
        data_dir: member.data_dir,
        durable: true,
        clock: member.clock.name(),
    };
    ready.print()?;
    let served = node.serve(Some(listener), Some(metrics), None, ConnectionLimits::default(), stopped).await;
    following.abort();
    served
}
