//! Arguments of `assistant`.

use clap::{Args, Subcommand};

use super::page::Page;

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
    /// Create or replace an assistant; running sessions keep what they started with.
    #[command(after_help = "\
Examples:
  switchward assistant put support --workflow refund --workflow shipping
  switchward assistant put support --workflow refund --instructions @support.txt")]
    Put(PutAssistant),
    /// Show an assistant.
    Get(GetAssistant),
    /// List assistants by name.
    List(Page),
    /// Delete an assistant; this cannot be undone.
    Delete(DeleteAssistant),
}

/// Arguments of `assistant put`.
#[derive(Debug, Args)]
pub(crate) struct PutAssistant {
    /// The assistant's name: 1 to 63 of a-z, 0-9 and -.
    pub(crate) assistant: String,
    /// The definition of a workflow; can be repeated.
    #[arg(long = "workflow", value_name = "DEFINITION", required = true)]
    pub(crate) workflows: Vec<String>,
    /// Instructions for every workflow: a text, or @FILE.
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
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
