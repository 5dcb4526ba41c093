//! What is done with what a session sends out.

use clap::{Args, Subcommand};

/// Arguments of `effect`.
#[derive(Debug, Args)]
pub(crate) struct EffectArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: EffectCommand,
}

/// What can be done with an effect.
#[derive(Debug, Subcommand)]
pub(crate) enum EffectCommand {
    /// Show where it goes, and why it could not be delivered.
    Show(NamedEffect),
    /// Send a dead letter again; its incident is closed. Of a notice that nobody got, tell whom the directory leads to now.
    Retry(NamedEffect),
    /// Give up a dead letter, or an effect that is held after a restore, for good.
    Dismiss(DismissEffect),
    /// Let the tenant's effects go out again, which a restore from a backup holds.
    #[command(after_help = "\
Example:
  switchward list effects
  switchward effect dismiss EFFECT
  switchward effect release

A backup knows nothing of what went out after it was taken: mails, webhooks and requests of definitions that stand in the
outbox may have been sent before. Look through the list, give up what must not be sent a second time, then release the
rest.")]
    Release,
}

/// One effect.
#[derive(Debug, Args)]
pub(crate) struct NamedEffect {
    /// Its name, as `switchward list effects` has it.
    #[arg(value_name = "EFFECT")]
    pub(crate) name: String,
}

/// Arguments of `effect dismiss`.
#[derive(Debug, Args)]
pub(crate) struct DismissEffect {
    /// Its name, as `switchward list effects` has it.
    #[arg(value_name = "EFFECT")]
    pub(crate) name: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
