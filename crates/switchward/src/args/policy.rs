//! What is done with policies.

use clap::{ArgGroup, Args, Subcommand};

/// Arguments of `policy`.
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: PolicyCommand,
}

/// What can be done with policies.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Let a policy hold for a definition's new sessions, or at once for the whole tenant.
    #[command(after_help = "\
Examples:
  switchward deploy guard.yaml
  switchward policy attach guard --to deploy-gate
  switchward policy attach guard --tenant
  switchward policy attach guard --tenant --version 3

--tenant needs an admin's key, and stays the version that it is until another one is set.")]
    Attach(AttachPolicy),
    /// Let a policy hold no more: for a definition's new sessions, or at once for the whole tenant.
    #[command(after_help = "\
Examples:
  switchward policy detach guard --from deploy-gate
  switchward policy detach guard --tenant")]
    Detach(DetachPolicy),
    /// List the policies that hold for the whole tenant; `switchward get DEFINITION` shows what is attached to it.
    List,
}

/// Arguments of `policy attach`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["to", "tenant"])))]
pub(crate) struct AttachPolicy {
    /// The policy.
    #[arg(value_name = "POLICY")]
    pub(crate) policy: String,
    /// The definition whose new sessions it is to hold for.
    #[arg(long, value_name = "DEFINITION")]
    pub(crate) to: Option<String>,
    /// Let it hold for all sessions of the tenant.
    #[arg(long)]
    pub(crate) tenant: bool,
    /// Which version of it holds for the tenant; the active one where it is left out.
    #[arg(long, value_name = "NUMBER", requires = "tenant", conflicts_with = "to")]
    pub(crate) version: Option<u32>,
}

/// Arguments of `policy detach`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["from", "tenant"])))]
pub(crate) struct DetachPolicy {
    /// The policy.
    #[arg(value_name = "POLICY")]
    pub(crate) policy: String,
    /// The definition that it is attached to.
    #[arg(long, value_name = "DEFINITION")]
    pub(crate) from: Option<String>,
    /// Let it hold for the tenant no more.
    #[arg(long)]
    pub(crate) tenant: bool,
}
