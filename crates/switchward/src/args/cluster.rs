//! Arguments of `cluster`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

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
    /// Make the certificates of a cluster's servers; needs no server.
    #[command(after_help = "\
Examples:
  switchward cluster certs --dir certs --servers 3
  switchward cluster certs --dir certs --servers 3 --host node.example --host 10.0.0.5
  switchward cluster certs --dir certs --first 4 --servers 1

Writes the authority (ca.crt, ca.key), the cluster's id (cluster-id) and, for each server, server-N.crt and \
server-N.key. If the folder already has an authority, it signs the new certificates, so a server can be added \
later. No file is overwritten.

Each server needs ca.crt and its own two files. Keep ca.key away from the servers: with it, anybody can join the \
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
cluster.peers. The number must be one that no server ever had. The key ring must be that of the other servers.")]
    Join(ClusterJoin),
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
    pub(crate) servers: u64,
    /// The number of the first of them.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) first: u64,
    /// A host name or IP address that each certificate also contains, so that it can serve the public port too. Can be
    /// repeated.
    #[arg(long = "host", value_name = "HOST")]
    pub(crate) hosts: Vec<String>,
    /// The cluster's id, 32 hexadecimal digits [default: a new one, or the one of the folder].
    #[arg(long, value_name = "ID")]
    pub(crate) cluster: Option<String>,
    /// For how many days the servers' certificates are valid. A new authority is valid for ten years.
    #[arg(long, value_name = "DAYS", default_value_t = 730)]
    pub(crate) days: u32,
}
