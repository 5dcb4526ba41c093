//! The key ring: how it is made and changed, and what needs its keys.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `secrets`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchward secrets create /etc/switchward/switchward-keys
  switchward secrets rotate /etc/switchward/switchward-keys
  switchward secrets status --data-dir /var/lib/switchward
  switchward secrets drop ID /etc/switchward/switchward-keys --data-dir /var/lib/switchward

What mail tokens and webhooks are signed with is encrypted wherever a server writes it: under the first key of a key ring,
a file that the server is told by keys_file. The others open what is older. Keep a copy of the ring apart from the backups:
without it none of them can be restored.")]
pub(crate) struct SecretsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: SecretsCommand,
}

/// What can be done with a key ring.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Make a key ring with one key.
    Create(RingFile),
    /// Add a key, under which secrets are sealed from the server's next start or reload on.
    #[command(after_help = "\
Example:
  switchward secrets rotate /etc/switchward/switchward-keys

The server seals existing secrets again when it starts, or when it is told SIGHUP and reads the file itself. Older keys stay in
the ring until `switchward secrets drop`.")]
    Rotate(RingFile),
    /// Say which keys the rows of a server and its backups need.
    Status(SecretsStatus),
    /// Take a key out of a ring that nothing needs any more.
    Drop(DropKey),
}

/// A key ring.
#[derive(Debug, Args)]
pub(crate) struct RingFile {
    /// The file of the ring.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// A server, and backups of it.
#[derive(Debug, Args)]
pub(crate) struct SecretsStatus {
    /// The server's data folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The server's configuration, which says where its data folder is.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) config: Option<PathBuf>,
    /// A backup to look at beside those that were taken of this data folder and still are where they were written; may be
    /// said again.
    #[arg(long = "backup", value_name = "DIR")]
    pub(crate) backups: Vec<PathBuf>,
}

/// Arguments of `secrets drop`.
#[derive(Debug, Args)]
pub(crate) struct DropKey {
    /// The key's id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The file of the ring.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// What must not need it.
    #[command(flatten)]
    pub(crate) of: SecretsStatus,
    /// Backups that are not where they were written were deleted, or are named by --backup.
    #[arg(long)]
    pub(crate) missing_deleted: bool,
}
