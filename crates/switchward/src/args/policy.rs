//! Arguments of `policy`.

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
    /// Attach a policy to a definition's new sessions, or to the whole tenant at once.
    #[command(after_help = "\
Examples:
  switchward deploy guard.yaml
  switchward policy attach guard --to deploy-gate
  switchward policy attach guard --tenant
  switchward policy attach guard --tenant --version 3

--tenant needs an admin's key. The tenant keeps the version until another one is attached.")]
    Attach(AttachPolicy),
    /// Detach a policy from a definition's new sessions, or from the whole tenant at once.
    #[command(after_help = "\
Examples:
  switchward policy detach guard --from deploy-gate
  switchward policy detach guard --tenant")]
    Detach(DetachPolicy),
    /// List the policies of the tenant; `switchward get DEFINITION` shows those of a definition.
    List,
}

/// Arguments of `policy attach`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["to", "tenant"])))]
pub(crate) struct AttachPolicy {
    /// The policy's name.
    #[arg(value_name = "POLICY")]
    pub(crate) policy: String,
    /// The definition to whose new sessions the policy applies.
    #[arg(long, value_name = "DEFINITION")]
    pub(crate) to: Option<String>,
    /// Attach the policy to all sessions of the tenant.
    #[arg(long)]
    pub(crate) tenant: bool,
    /// The policy's version for the tenant [default: the active version].
    #[arg(long, value_name = "NUMBER", requires = "tenant", conflicts_with = "to")]
    pub(crate) version: Option<u32>,
}

/// Arguments of `policy detach`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("target").required(true).args(["from", "tenant"])))]
pub(crate) struct DetachPolicy {
    /// The policy's name.
    #[arg(value_name = "POLICY")]
    pub(crate) policy: String,
    /// The definition to detach the policy from.
    #[arg(long, value_name = "DEFINITION")]
    pub(crate) from: Option<String>,
    /// Detach the policy from the tenant.
    #[arg(long)]
    pub(crate) tenant: bool,
}
