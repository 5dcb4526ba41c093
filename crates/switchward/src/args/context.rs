//! Arguments of `context` and `completion`.

use clap::{Args, Subcommand};
use clap_complete::Shell;
use std::path::PathBuf;

/// Arguments of `context`.
#[derive(Debug, Args)]
pub(crate) struct ContextArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: ContextCommand,
}

/// What can be done with contexts.
#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List the contexts and show which one is in use.
    List,
    /// Use a context by default.
    #[command(after_help = "Example:\n  switchward context use staging")]
    Use(NamedContext),
    /// Show a context without its key.
    Show(ShownContext),
    /// Create or replace a context; the key is read from a file.
    #[command(after_help = "\
Examples:
  switchward context set staging --address https://switchward.example --api-key-file staging.key
  switchward context set staging --address https://10.0.0.5:7400 --ca ca.pem --api-key-file - < staging.key")]
    Set(SetContext),
    /// Delete a context; the server and the key are not changed.
    Delete(NamedContext),
}

/// What the subcommands that are about one context take.
#[derive(Debug, Args)]
pub(crate) struct NamedContext {
    /// The context's name.
    pub(crate) name: String,
}

/// Arguments of `context show`.
#[derive(Debug, Args)]
pub(crate) struct ShownContext {
    /// The context's name [default: the context in use].
    pub(crate) name: Option<String>,
}

/// Arguments of `context set`.
#[derive(Debug, Args)]
pub(crate) struct SetContext {
    /// The context's name: a-z, 0-9, - and _.
    pub(crate) name: String,
    /// The server's address, such as https://switchward.example.
    #[arg(long, value_name = "URL")]
    pub(crate) address: String,
    /// The file with the API key, or `-` for the standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: PathBuf,
    /// The role of the key, for display.
    #[arg(long, value_name = "ROLE", default_value = "", hide_default_value = true)]
    pub(crate) role: String,
    /// The certificate authority of the server (PEM).
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

/// Arguments of `completion`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchward completion bash > ~/.local/share/bash-completion/completions/switchward
  switchward completion zsh > ~/.zfunc/_switchward")]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}
