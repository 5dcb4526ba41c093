//! Arguments of `effect`.

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
    /// Show an effect: its destination and its last failure.
    Show(NamedEffect),
    /// Send a dead letter again and close its incident.
    ///
    /// A `notice` effect stands for a gate about which nobody was notified: a retry notifies the people to whom the
    /// directory leads now.
    Retry(NamedEffect),
    /// Dismiss a dead letter, or an effect that is held after a restore; this cannot be undone.
    Dismiss(DismissEffect),
    /// Release the tenant's effects, which are held after a restore from a backup.
    #[command(after_help = "\
Examples:
  switchward list effects
  switchward effect dismiss EFFECT
  switchward effect release
  switchward effect release --all-tenants

A backup does not contain what was sent after it was taken: mails, webhooks and HTTP requests in the outbox may have \
been sent already. Check the list, dismiss the effects that must not be sent twice, then release the rest. --all-tenants needs the key of an operator or admin of the server's first tenant; `switchward cluster \
status` shows how many tenants have their effects held.")]
    Release(ReleaseEffects),
}

/// Arguments of `effect release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseEffects {
    /// Release the effects of all tenants.
    #[arg(long)]
    pub(crate) all_tenants: bool,
}

/// What the subcommands that are about one effect take.
#[derive(Debug, Args)]
pub(crate) struct NamedEffect {
    /// The effect's name, from `switchward list effects`.
    #[arg(value_name = "EFFECT")]
    pub(crate) name: String,
}

/// Arguments of `effect dismiss`.
#[derive(Debug, Args)]
pub(crate) struct DismissEffect {
    /// The effect's name, from `switchward list effects`.
    #[arg(value_name = "EFFECT")]
    pub(crate) name: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
