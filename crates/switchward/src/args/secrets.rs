//! Arguments of `secrets`.

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

A server encrypts the secrets that sign mail tokens and webhooks with the first key of its key ring, a file that \
keys_file in its configuration names. The other keys decrypt older secrets. Keep a copy of the key ring apart from \
the backups: without it, no backup can be restored.")]
pub(crate) struct SecretsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: SecretsCommand,
}

/// What can be done with a key ring.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretsCommand {
    /// Create a key ring with one key.
    Create(RingFile),
    /// Add a key, which encrypts secrets from the server's next start or reload.
    #[command(after_help = "\
Example:
  switchward secrets rotate /etc/switchward/switchward-keys

The server re-encrypts existing secrets when it starts, or when it gets SIGHUP and reads the key ring from this \
file. Older keys stay in the key ring until `switchward secrets drop`.")]
    Rotate(RingFile),
    /// Show which keys a server's rows and backups need.
    Status(SecretsStatus),
    /// Remove a key that is not needed from a key ring.
    Drop(DropKey),
}

/// A key ring.
#[derive(Debug, Args)]
pub(crate) struct RingFile {
    /// The key ring's file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

/// A server and its backups.
#[derive(Debug, Args)]
pub(crate) struct SecretsStatus {
    /// The server's data folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The server's configuration file, which names its data folder and key ring.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) config: Option<PathBuf>,
    /// A backup that was moved. Backups of this data folder that were not moved are checked without this option. Can be
    /// repeated.
    #[arg(long = "backup", value_name = "DIR")]
    pub(crate) backups: Vec<PathBuf>,
}

/// Arguments of `secrets drop`.
#[derive(Debug, Args)]
pub(crate) struct DropKey {
    /// The key's id.
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The key ring's file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The server and backups that must not need the key.
    #[command(flatten)]
    pub(crate) of: SecretsStatus,
    /// Confirm that all missing backups were deleted or are named by --backup.
    #[arg(long)]
    pub(crate) missing_deleted: bool,
}
