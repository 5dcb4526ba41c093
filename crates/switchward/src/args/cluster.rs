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
