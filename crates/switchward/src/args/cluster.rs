//! Arguments of `cluster`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::DoctorArgs;
use super::connection::On;

/// Arguments of `cluster`.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: ClusterCommand,
}

/// What can be done with a cluster.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Make the certificates of a cluster's servers, gateways and delivery processes; needs no server.
    #[command(after_help = "\
Examples:
  switchward cluster certs --dir certs --servers 3
  switchward cluster certs --dir certs --servers 3 --host node.example --host 10.0.0.5
  switchward cluster certs --dir certs --first 4 --servers 1
  switchward cluster certs --dir certs --gateway edge-1 --gateway edge-2 --delivery out-1

Writes the authority (ca.crt, ca.key), the cluster's id (cluster-id), for each server server-N.crt and server-N.key, for \
each gateway gateway-NAME.crt and gateway-NAME.key, and for each delivery process delivery-NAME.crt and delivery-NAME.key. \
If the folder already has an authority, it signs the new certificates, so a server can be added later. No file is \
overwritten. With the certificate of a gateway or a delivery process nobody can join the cluster.

Each process needs ca.crt and its own two files. Keep ca.key away from the servers: with it, anybody can join the \
cluster.")]
    Certs(ClusterCerts),
    /// Make a data folder that of the first server of a new cluster; the server must not run.
    #[command(after_help = "\
Examples:
  switchward cluster init --config server-1.toml --tenant acme

The folder may be new, or that of a server which was alone so far: everything in it becomes the cluster's. The \
configuration needs [cluster] with server = 1. Without a tenant nobody can call the cluster, so --tenant creates one and \
shows its first key once.")]
    Init(ClusterInit),
    /// Make a new data folder that of a further server of a cluster; the server joins when it starts.
    #[command(after_help = "\
Examples:
  switchward cluster join --config server-2.toml

The configuration needs [cluster] with the number of this server, a certificate for it, and at least one of \
cluster.peers. The number must be one that no server ever had, so never 1: server 1 founds the cluster. The key ring \
must be that of the other servers.")]
    Join(ClusterJoin),
    /// Check the configuration of one server and ask all others (read-only); the same as `switchward doctor`.
    #[command(after_help = "\
Examples:
  switchward cluster doctor --config server-1.toml
  switchward cluster doctor --config server-1.toml -o json

Checks what `switchward doctor` checks: the server's own files, ports and certificates, and the clocks, feature levels, \
disks, keys and Redis of the others. The server itself may run or not. Exits with 5 if a check fails.")]
    Doctor(DoctorArgs),
    /// The commands that call a server of the cluster.
    #[command(flatten)]
    Call(ClusterCall),
}

/// What can be done with the servers of a cluster that runs.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCall {
    /// Show the servers and the groups, as the called server sees them.
    #[command(after_help = "\
Examples:
  switchward cluster status
  switchward cluster status -o json

Needs the key of an operator or admin of the server's first tenant. Any server answers; it asks the others and waits \
at most a second for each. What a server does not answer is shown as unknown. LAG is the number of log entries that \
a replica lacks, LOG the longest log that a replica of the group keeps, CONTACT the time since a leader's last \
contact with the server, CLOCK how far its clock is ahead of the median of all servers' clocks. If a clock differs \
by more than two seconds and no majority says which clock is right, it is shown as undecided. If a majority says \
that it is wrong, its server leads nothing.")]
    Status(On<ClusterStatus>),
    /// Compare the replicas of each group: whether all servers hold the same rows.
    #[command(after_help = "\
Examples:
  switchward cluster verify
  switchward cluster verify --group 2 -o json

Needs the key of an operator or admin of the server's first tenant. Each replica takes the digest of its rows at one entry of \
the log; callers do not wait for it. Exits with 5 if replicas differ. A replica that differs from a majority fails: it answers \
nothing any more, and its server must be replaced. With -o json, prints one object per group.")]
    Verify(On<ClusterVerify>),
    /// Drain a server: it leads nothing, and votes only if it must.
    #[command(after_help = "\
Examples:
  switchward cluster drain 2 --wait

Needs an admin key of the server's first tenant. Drain a server before maintenance, or before it is removed; `switchward \
cluster activate` uses it again. Refused if a group would not have enough voters without it. --wait returns when the server \
leads nothing.")]
    Drain(On<ClusterDrain>),
    /// Use a drained server again.
    #[command(after_help = "\
Examples:
  switchward cluster activate 2

Needs an admin key of the server's first tenant. Leaders move to the server by themselves within minutes.")]
    Activate(On<ClusterActivate>),
    /// Remove a server that votes nowhere; its number is never used again.
    #[command(after_help = "\
Examples:
  switchward cluster drain 4 --wait
  switchward cluster remove 4

Needs an admin key of the server's first tenant. Refused as long as the server votes in a group: a cluster of three servers \
keeps all three until a fourth one has joined. A server that is lost is replaced: see `switchward cluster replace`.")]
    Remove(On<ClusterRemove>),
    /// Replace a lost server by another one that has joined.
    #[command(after_help = "\
Examples:
  switchward cluster join --config server-4.toml   # on the new machine, then start its server
  switchward cluster replace 3 --by 4 --wait

Needs an admin key of the server's first tenant. The other server takes the seats of the lost one, which is then removed for \
good. Refused if the server still answers, or if the other one does not have all entries yet. --wait returns when the lost \
server is removed.")]
    Replace(On<ClusterReplace>),
    /// Have other servers lead groups.
    #[command(after_help = "\
Examples:
  switchward cluster transfer --from 1
  switchward cluster transfer --from 1 --group 2 --to 3
  switchward cluster transfer --group 2

Needs an admin key of the server's first tenant. Without --to, each group goes to the voter that leads fewest groups. The \
cluster spreads leaders by itself: if a server leads two groups more than another one, one of them moves within a minute.")]
    Transfer(On<ClusterTransfer>),
    /// Show the feature level that the cluster writes, or raise it.
    #[command(after_help = "\
Examples:
  switchward cluster level
  switchward cluster level --raise

Raise the level when all servers run the new version and none shall go back: this is final. The level rises to the highest \
one that all servers know; nothing raises it by itself. Showing it needs the key of an operator or admin of the server's \
first tenant, raising it an admin's.")]
    Level(On<ClusterLevel>),
}

/// Arguments of `cluster status`.
#[derive(Debug, Args)]
pub(crate) struct ClusterStatus {}

/// Arguments of `cluster verify`.
#[derive(Debug, Args)]
pub(crate) struct ClusterVerify {
    /// A group; the catalogue is 0. Can be repeated [default: all groups].
    #[arg(long = "group", value_name = "GROUP")]
    pub(crate) groups: Vec<u64>,
}

/// Arguments of `cluster drain`.
#[derive(Debug, Args)]
pub(crate) struct ClusterDrain {
    /// The number of the server.
    #[arg(value_name = "SERVER")]
    pub(crate) server: u64,
    /// Wait until the server leads nothing.
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Arguments of `cluster activate`.
#[derive(Debug, Args)]
pub(crate) struct ClusterActivate {
    /// The number of the server.
    #[arg(value_name = "SERVER")]
    pub(crate) server: u64,
}

/// Arguments of `cluster remove`.
#[derive(Debug, Args)]
pub(crate) struct ClusterRemove {
    /// The number of the server.
    #[arg(value_name = "SERVER")]
    pub(crate) server: u64,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `cluster replace`.
#[derive(Debug, Args)]
pub(crate) struct ClusterReplace {
    /// The number of the lost server.
    #[arg(value_name = "SERVER")]
    pub(crate) server: u64,
    /// The number of the server that takes its seats.
    #[arg(long, value_name = "SERVER")]
    pub(crate) by: u64,
    /// Wait until the lost server is removed.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `cluster transfer`.
#[derive(Debug, Args)]
#[group(id = "what", required = true, multiple = true, args = ["from", "groups"])]
pub(crate) struct ClusterTransfer {
    /// The server that leads the groups now [default: the leader of the only --group].
    #[arg(long, value_name = "SERVER")]
    pub(crate) from: Option<u64>,
    /// A group; the catalogue is 0. Can be repeated [default: all that the server leads].
    #[arg(long = "group", value_name = "GROUP")]
    pub(crate) groups: Vec<u64>,
    /// The server that is to lead them [default: for each group the voter that leads fewest].
    #[arg(long, value_name = "SERVER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) to: Option<u64>,
}

/// Arguments of `cluster level`.
#[derive(Debug, Args)]
pub(crate) struct ClusterLevel {
    /// Raise it to the highest level that all servers know.
    #[arg(long)]
    pub(crate) raise: bool,
    /// Do not ask for confirmation.
    #[arg(short, long, requires = "raise")]
    pub(crate) yes: bool,
}

/// Arguments of `cluster init`.
#[derive(Debug, Args)]
pub(crate) struct ClusterInit {
    /// The server's configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The first tenant, if there is none.
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
}

/// Arguments of `cluster join`.
#[derive(Debug, Args)]
pub(crate) struct ClusterJoin {
    /// The server's configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Arguments of `cluster certs`.
#[derive(Debug, Args)]
pub(crate) struct ClusterCerts {
    /// The folder to write to; created if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// How many servers get a certificate.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..=64))]
    pub(crate) servers: Option<u64>,
    /// The number of the first of them.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) first: u64,
    /// The name of a gateway that gets a certificate: 1 to 40 of a-z, 0-9 and -. Can be repeated.
    #[arg(long = "gateway", value_name = "NAME")]
    pub(crate) gateways: Vec<String>,
    /// The name of a delivery process that gets a certificate: 1 to 40 of a-z, 0-9 and -. Can be repeated.
    #[arg(long = "delivery", value_name = "NAME")]
    pub(crate) deliveries: Vec<String>,
    /// A host name or IP address that each certificate also contains, so that it can serve the public port too. Can be
    /// repeated.
    #[arg(long = "host", value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// The cluster's id, 32 hexadecimal digits [default: a new one, or the one of the folder].
    #[arg(long, value_name = "ID")]
    pub(crate) cluster: Option<String>,
    /// For how many days the certificates of processes are valid. A new authority is valid for ten years.
    #[arg(long, value_name = "DAYS", default_value_t = 730)]
    pub(crate) days: u32,
}
