//! Arguments of `backup` and `server`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::ServerArgs;

/// Arguments of `backup`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  switchward backup /backups/monday --data-dir /var/lib/switchward
  switchward backup /backups/monday --config /etc/switchward/switchward.toml
  switchward backup verify /backups/monday
  switchward server --config /etc/switchward/switchward.toml --restore /backups/monday

Backs up a running or a stopped server; a server of a cluster must run. The backup is consistent: it contains \
everything that was acknowledged before one moment, for all tenants. A running server continues meanwhile. Run \
the command on the server's machine as the server's user: it needs no key, and calls the server through a socket \
in its data folder. DIR must not exist; it appears when the backup is complete. Secrets in the backup are \
encrypted; a restore needs the server's key ring."
)]
pub(crate) struct BackupArgs {
    /// What to do instead.
    #[command(subcommand)]
    pub(crate) what: Option<BackupCommand>,
    /// The folder of the backup; it must not exist.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The server's data folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The server's configuration file, which names its data folder and key ring.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) config: Option<PathBuf>,
}

/// What can be done with a backup.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Verify that a backup is complete, undamaged and readable by this program.
    #[command(after_help = "\
Example:
  switchward backup verify /backups/monday

Needs no server. Exits with 5 and lists the files if any are damaged.")]
    Verify(VerifyBackup),
}

/// Arguments of `backup verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyBackup {
    /// The folder of the backup.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// Arguments of `server`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchward server --config /etc/switchward/switchward.toml
  switchward server --data-dir /var/lib/switchward --listen 127.0.0.1:7400
  switchward server --config /etc/switchward/switchward.toml --restore /backups/monday

Options take precedence over SWITCHWARD_* environment variables, which take precedence over the file. SIGTERM \
finishes open calls and stops the server. With -o json, prints one line on the standard output when the server is \
ready; the log goes to the standard error.

After --restore, no tenant sends anything until one of its operators runs `switchward effect release`, because a \
backup does not contain what was sent after it was taken.")]
pub(crate) struct RunServer {
    /// The configuration.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Restore this backup into the data folder first, which must be new or empty.
    #[arg(long, value_name = "DIR")]
    pub(crate) restore: Option<PathBuf>,
    /// A tenant's export: sessions that it records as erased or deleted are erased or deleted again; can be repeated.
    #[arg(long, value_name = "FILE", requires = "restore")]
    pub(crate) erasures: Vec<PathBuf>,
}
