//! What is done with assistants.

use clap::{Args, Subcommand};

use super::client::Page;

/// Arguments of `assistant`.
#[derive(Debug, Args)]
pub(crate) struct AssistantArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: AssistantCommand,
}

/// What can be done with assistants.
#[derive(Debug, Subcommand)]
pub(crate) enum AssistantCommand {
    /// Make an assistant, or set everything of one that exists; sessions that run keep what they began with.
    #[command(after_help = "\
Examples:
  switchward assistant put support --workflow refund --workflow shipping
  switchward assistant put support --workflow refund --instructions @support.txt")]
    Put(PutAssistant),
    /// Show one.
    Get(GetAssistant),
    /// List them by name.
    List(Page),
    /// Delete one; this cannot be undone.
    Delete(DeleteAssistant),
}

/// Arguments of `assistant put`.
#[derive(Debug, Args)]
pub(crate) struct PutAssistant {
    /// The assistant's name: 1 to 63 of a-z, 0-9 and -.
    pub(crate) assistant: String,
    /// The definition of a workflow; may be said again.
    #[arg(long = "workflow", value_name = "DEFINITION", required = true)]
    pub(crate) workflows: Vec<String>,
    /// What it is told in every workflow: a text, or @FILE.
    #[arg(long, value_name = "TEXT")]
    pub(crate) instructions: Option<String>,
}

/// Arguments of `assistant get`.
#[derive(Debug, Args)]
pub(crate) struct GetAssistant {
    /// The assistant's name.
    pub(crate) assistant: String,
}

/// Arguments of `assistant delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteAssistant {
    /// The assistant's name.
    pub(crate) assistant: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
