//! The server that a command calls.

use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

use super::values::duration;

/// A command and the server that it calls.
#[derive(Debug, Args)]
pub(crate) struct On<T: Args> {
    /// The command's own arguments.
    #[command(flatten)]
    pub(crate) what: T,
    /// The connection to the server.
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// The server that a command calls, and the API key.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Connection {
    /// The server's address [default: from the context].
    #[arg(long, global = true, value_name = "URL", env = "SWITCHWARD_ADDRESS")]
    pub(crate) address: Option<String>,
    /// The API key [default: from the context]. Prefer the environment variable, which does not appear in lists of
    /// processes.
    #[arg(long, global = true, value_name = "KEY", env = "SWITCHWARD_API_KEY", hide_env_values = true)]
    pub(crate) api_key: Option<String>,
    /// The context to use instead of the environment's address and key [default: SWITCHWARD_CONTEXT, else the context
    /// of `switchward context use`].
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The certificate authority of the server (PEM) [default: the authorities that this machine trusts].
    #[arg(long, global = true, value_name = "FILE", env = "SWITCHWARD_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// The time limit of one call.
    #[arg(long, global = true, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// An id that makes it safe to repeat the command: the same id has the same result [default: random].
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) request_id: Option<String>,
    /// Print only results, no hints.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Never ask for confirmation.
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
}
