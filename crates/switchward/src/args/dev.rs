//! Arguments of `dev`.

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

use super::Unnamed;
use super::values::duration;
use crate::commands::dev::link::Mode;

/// How many servers a development cluster can have.
const SERVERS: [u64; 3] = [1, 3, 5];

/// Arguments of `dev`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  switchward dev
  switchward dev --data-dir ./data
  switchward dev --port 0 --clock manual -o json
  switchward dev --default deny
  switchward dev --servers 3

Prints the address and three API keys: for the agent, the person and a worker. Writes a context for each key: \
dev-agent, dev-person and dev-worker. Each context is a separate file; give an agent only dev-agent. With -o json, \
prints one line when the server is ready.

With --servers 3 or 5, starts a cluster: a process for each server, with its own folder, ports, certificate and \
contexts, such as dev-2-person for server 2. The logs of the servers are printed together. The commands below kill, \
pause and cut off single servers; nothing starts again by itself. Deliveries go over a Redis, which is started too \
(redis-server must be installed) unless --redis names one, or --without-redis says that there is none."
)]
pub(crate) struct DevArgs {
    /// What to do with the servers of a development cluster that runs.
    #[command(subcommand)]
    pub(crate) what: Option<DevCommand>,
    /// The data folder [default: a temporary folder, deleted when the server stops].
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The port to listen on; 0 for any free port. Further servers have the ports after it.
    #[arg(long, value_name = "PORT", default_value_t = 7400)]
    pub(crate) port: u16,
    /// The number of servers: 1, 3 or 5. Several servers form a cluster.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = servers)]
    pub(crate) servers: u64,
    /// The Redis of a cluster, such as redis://127.0.0.1:6379 [default: a new one, if redis-server is installed].
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// Start a cluster without Redis: each server then delivers what its own sessions send.
    #[arg(long, conflicts_with = "redis")]
    pub(crate) without_redis: bool,
    /// A host name besides localhost that may serve the pages /mail and /webhooks, such as a tunnel's; can be repeated.
    #[arg(long = "allow-host", value_name = "HOST")]
    pub(crate) allowed_hosts: Vec<String>,
    /// The server's clock. A manual clock stands still until `switchward clock advance` moves it; that of a cluster,
    /// until `switchward dev advance` does.
    #[arg(long, value_enum, default_value_t = ClockKind::System)]
    pub(crate) clock: ClockKind,
    /// A file with an offset of the machine's clock in milliseconds, read each time; for tests of clocks that jump.
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) clock_off: Option<PathBuf>,
    /// Kill the servers when the process ends that has started this one.
    #[arg(long, hide = true)]
    pub(crate) end_with_parent: bool,
    /// The number of shards of a new data folder [default: by the number of cores].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) shards: Option<u32>,
    /// The effect for tool calls that no policy rule matches [default: allow].
    #[arg(long = "default", value_name = "EFFECT", value_enum)]
    pub(crate) default_effect: Option<Unnamed>,
}

/// The clock of a development server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClockKind {
    /// The machine's clock.
    System,
    /// A clock that only a command moves.
    Manual,
}

impl ClockKind {
    /// `system` or `manual`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Manual => "manual",
        }
    }
}

/// What can be done with the servers of a development cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum DevCommand {
    /// Show the servers, their processes and links.
    Status(OfRunning),
    /// Kill a server with SIGKILL.
    Kill(OneServer),
    /// Start a server again that was killed or has ended.
    Start(OneServer),
    /// Stop the process of a server with SIGSTOP; its connections stay open.
    Pause(OneServer),
    /// Continue a paused server with SIGCONT.
    Resume(OneServer),
    /// Cut the links between a server and all others, in both directions.
    #[command(after_help = "\
Example:
  switchward dev partition 2

Clients still reach the server. Nothing that the servers send each other arrives; connections stay open, as in a \
network that loses every packet. `switchward dev heal` ends it.")]
    Partition(OneServer),
    /// Open the links of a server, or all links.
    Heal(HealServers),
    /// Set how one link between two servers forwards bytes.
    #[command(after_help = "\
Examples:
  switchward dev link 1 2 cut
  switchward dev link 1 2 cut-forth
  switchward dev link 1 2 delay:200
  switchward dev link 1 2 open

A link carries the connections that FROM opens to TO, so there are two links between two servers. The modes:
  open          bytes are forwarded at once
  cut           nothing is forwarded; connections stay open
  cut-forth     nothing from FROM to TO is forwarded
  cut-back      nothing from TO to FROM is forwarded
  delay:MS      bytes are forwarded this many milliseconds later
  slow:BYTES    at most this many bytes per second are forwarded
  reset         connections are reset, new ones too")]
    Link(SetLink),
    /// Advance the manual clock of all servers.
    #[command(after_help = "\
Example:
  switchward dev advance 1h30m

Moves the clocks of the running servers, one after the other. Timers fire in order, each at its own time. Exits with 4 \
if a server did not follow; its clock follows when it is started, resumed or healed.")]
    Advance(AdvanceAll),
    /// Run one server of a development cluster.
    #[command(hide = true)]
    Member(MemberOf),
    /// Run the Redis of a development cluster.
    #[command(hide = true)]
    Bus(BusOf),
}

/// The development cluster that a command is about.
#[derive(Debug, Args)]
pub(crate) struct OfRunning {
    /// The data folder of the development cluster [default: that of the one that was started last].
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

/// What the subcommands that are about one server take.
#[derive(Debug, Args)]
pub(crate) struct OneServer {
    /// The number of the server.
    #[arg(value_name = "SERVER")]
    pub(crate) server: u64,
    /// The cluster.
    #[command(flatten)]
    pub(crate) of: OfRunning,
}

/// Arguments of `dev heal`.
#[derive(Debug, Args)]
pub(crate) struct HealServers {
    /// The number of the server [default: all servers].
    #[arg(value_name = "SERVER")]
    pub(crate) server: Option<u64>,
    /// The cluster.
    #[command(flatten)]
    pub(crate) of: OfRunning,
}

/// Arguments of `dev link`.
#[derive(Debug, Args)]
pub(crate) struct SetLink {
    /// The server that opens the connections.
    #[arg(value_name = "FROM")]
    pub(crate) from: u64,
    /// The server that accepts them.
    #[arg(value_name = "TO")]
    pub(crate) to: u64,
    /// The mode: open, cut, cut-forth, cut-back, delay:MS, slow:BYTES or reset.
    #[arg(value_name = "MODE")]
    pub(crate) mode: Mode,
    /// The cluster.
    #[command(flatten)]
    pub(crate) of: OfRunning,
}

/// Arguments of `dev advance`.
#[derive(Debug, Args)]
pub(crate) struct AdvanceAll {
    /// The duration, such as 90s, 5m, 1h30m or 3d.
    #[arg(value_parser = duration)]
    pub(crate) by: Duration,
    /// The cluster.
    #[command(flatten)]
    pub(crate) of: OfRunning,
}

/// Arguments of the process of a server.
#[derive(Debug, Args)]
pub(crate) struct MemberOf {
    /// The file that configures it.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Make the tenant and its keys if they are missing.
    #[arg(long)]
    pub(crate) ensure_keys: bool,
}

/// Arguments of the process that becomes the Redis.
#[derive(Debug, Args)]
pub(crate) struct BusOf {
    /// The file that configures it.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// Reads the number of servers.
fn servers(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| SERVERS.contains(number));
    number.ok_or_else(|| "a cluster on one machine has 3 or 5 servers; 1 is a server alone".to_owned())
}
