//! Backups of a server, and how one is restored.

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

Takes a backup of a server that runs, or of a stopped one: all that was acknowledged before is in it, for all tenants, as it
was at one moment. The server goes on meanwhile. Run it on the server's machine as the server's user: it needs no key, and
reaches the server by a socket in its data folder. The folder must not be there yet; it has its name when the backup is
whole. What mail tokens and webhooks are signed with is encrypted in it: it is restored with the server's key ring."
)]
pub(crate) struct BackupArgs {
    /// What else to do.
    #[command(subcommand)]
    pub(crate) what: Option<BackupCommand>,
    /// The folder to write it to.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// The server's data folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The server's configuration, which says where its data folder is.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) config: Option<PathBuf>,
}

/// What can be done with a backup.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// Read a backup to its end: every byte must be as it was written, and every row one that this program knows.
    #[command(after_help = "\
Example:
  switchward backup verify /backups/monday

Needs no server. Ends with 5 if something is damaged, and names the files.")]
    Verify(VerifyBackup),
}

/// Arguments of `backup verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyBackup {
    /// The backup.
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

A flag beats SWITCHWARD_* in the environment, which beats the file. SIGTERM finishes what is open and stops. With
-o json, one line on the standard output when it is ready; the log stays on the standard error.

After --restore nothing goes out, of no tenant, until an operator of it calls `switchward effect release`: a backup does not
know what was sent after it was taken.")]
pub(crate) struct RunServer {
    /// The server's own.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    /// Put this backup into the data folder, which must be new or empty, before serving.
    #[arg(long, value_name = "DIR")]
    pub(crate) restore: Option<PathBuf>,
    /// An export of a tenant: sessions that it says were erased or deleted are so again; may be said for each tenant.
    #[arg(long, value_name = "FILE", requires = "restore")]
    pub(crate) erasures: Vec<PathBuf>,
}
