//! Arguments of `tenant` and `keys bootstrap`.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

use super::page::Page;
use super::values::{Limit, Weight};

/// Arguments of `tenant`.
#[derive(Debug, Args)]
pub(crate) struct TenantArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: TenantCommand,
}

/// What can be done with tenants.
#[derive(Debug, Subcommand)]
pub(crate) enum TenantCommand {
    /// Create a tenant and its first admin key; the key's secret is shown once.
    #[command(after_help = "\
Examples:
  switchward tenant create acme
  switchward tenant create acme --data-dir /var/lib/switchward
  switchward tenant create acme --config /etc/switchward/switchward.toml

On a running server, needs an admin key of the server's first tenant. With --data-dir or --config, creates the tenant \
in the data folder of a stopped server and needs no key; this creates the first tenant of a new server. Run it as the \
server's user. Use --config if the configuration has a keys_file: with --data-dir, the key ring is the one that \
SWITCHWARD_KEYS_FILE names, or the file DIR.keys.")]
    Create(CreateTenant),
    /// Show a tenant, its settings and quotas.
    Get(GetTenant),
    /// List the tenants; needs an admin key of the server's first tenant.
    List(Page),
    /// Change settings of a tenant; they apply at once, also to running sessions.
    #[command(after_help = "Example:\n  switchward tenant set --default deny")]
    Set(SetTenant),
    /// Show or set the quotas of a tenant; needs an admin key of the server's first tenant.
    #[command(after_help = "\
Examples:
  switchward tenant quotas acme
  switchward tenant quotas acme --sessions 50000 --bytes 5GiB
  switchward tenant quotas acme --requests-per-second default

Without options, shows the quotas and their use, as `switchward tenant get` does for the key's own tenant. A value \
is a number, 0 for no limit, or `default` for the value in the server's configuration. Calls that exceed a quota are \
refused with QUOTA_EXCEEDED; existing data is kept.")]
    Quotas(TenantQuotas),
    /// Delete a tenant and all its data; needs an admin key of the server's first tenant.
    #[command(after_help = "\
Example:
  switchward tenant delete acme

The tenant's keys, sessions and deliveries stop at once. Its rows are removed in the background; the name can be \
used again after the last row is removed. To keep the records, run `switchward export` with a key of the tenant \
first.")]
    Delete(DeleteTenant),
}

/// The effect for tool calls that no policy rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefaultEffect {
    /// Allow the call.
    Allow,
    /// Ask a person.
    Ask,
    /// Deny the call.
    Deny,
}

/// Arguments of `tenant create`.
#[derive(Debug, Args)]
pub(crate) struct CreateTenant {
    /// The tenant's name: 1 to 63 characters of a-z, 0-9 and -.
    pub(crate) tenant: String,
    /// A name for display.
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// The effect for tool calls that no policy rule matches.
    #[arg(long = "default", value_name = "EFFECT", value_enum)]
    pub(crate) default_effect: Option<DefaultEffect>,
    /// Allow sessions with a role other than their policy's; they run without the policy.
    #[arg(long)]
    pub(crate) allow_foreign_role: bool,
    /// Create the tenant in this data folder of a stopped server.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Create the tenant in the data folder that this configuration file of a stopped server names.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) config: Option<PathBuf>,
    /// The number of shards of a new data folder, as for `server`.
    #[arg(long, value_name = "NUMBER", requires = "data_dir", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) shards: Option<u32>,
}

/// Arguments of `tenant get`.
#[derive(Debug, Args)]
pub(crate) struct GetTenant {
    /// The tenant's name; only the key's own tenant is allowed [default: the key's tenant].
    #[arg(default_value = "-", hide_default_value = true)]
    pub(crate) tenant: String,
}

/// Arguments of `tenant quotas`.
#[derive(Debug, Args)]
pub(crate) struct TenantQuotas {
    /// The tenant's name.
    pub(crate) tenant: String,
    /// Requests per second of all keys of the tenant, on one server.
    #[arg(long, value_name = "NUMBER", value_parser = super::values::limit)]
    pub(crate) requests_per_second: Option<Limit>,
    /// Stored sessions, including ended ones.
    #[arg(long, value_name = "NUMBER", value_parser = super::values::limit)]
    pub(crate) sessions: Option<Limit>,
    /// Bytes of the sessions' histories and remembered replies, such as 20GiB.
    #[arg(long, value_name = "BYTES", value_parser = super::values::limit_bytes)]
    pub(crate) bytes: Option<Limit>,
    /// The tenant's share of the server's time, relative to other tenants: 1 to 100, or default.
    #[arg(long, value_name = "NUMBER", value_parser = super::values::weight)]
    pub(crate) weight: Option<Weight>,
}

/// Arguments of `tenant delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteTenant {
    /// The tenant's name.
    pub(crate) tenant: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `tenant set`.
#[derive(Debug, Args)]
pub(crate) struct SetTenant {
    /// The tenant's name; only the key's own tenant is allowed [default: the key's tenant].
    #[arg(default_value = "-", hide_default_value = true)]
    pub(crate) tenant: String,
    /// The settings to change.
    #[command(flatten)]
    pub(crate) switches: Switches,
}

/// The settings of a tenant; at least one.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Switches {
    /// The effect for tool calls that no policy rule matches.
    #[arg(long = "default", value_name = "EFFECT", value_enum)]
    pub(crate) default_effect: Option<DefaultEffect>,
    /// Whether sessions can start with a role other than their policy's; they run without the policy.
    #[arg(long, value_name = "true|false")]
    pub(crate) allow_foreign_role: Option<bool>,
    /// Whether approvers and escalation contacts from data or from `start` are asked if they are not in the directory.
    #[arg(long, value_name = "true|false")]
    pub(crate) any_approver_address: Option<bool>,
    /// How decision pages authenticate people.
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) link_auth: Option<LinkAuth>,
    /// How long decision pages remember a browser, such as 12h: 10 minutes to 365 days.
    #[arg(long, value_name = "TIME", value_parser = super::values::duration)]
    pub(crate) browser_known: Option<std::time::Duration>,
}

/// How decision pages authenticate people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkAuth {
    /// By the link alone: everyone with the link can decide.
    Link,
    /// By a code that is mailed to the person.
    Code,
    /// By a sign-in with the OpenID provider of the server's configuration.
    Oidc,
    /// As the server's configuration sets.
    Default,
}

/// Arguments of `keys bootstrap`.
#[derive(Debug, Args)]
pub(crate) struct BootstrapKey {
    /// The data folder of the stopped server.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file of the stopped server, which names its data folder and key ring.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) config: Option<PathBuf>,
    /// The tenant of the key; required if there are several.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// The person or program that will use the key [default: the key's id].
    #[arg(long, value_name = "SUBJECT")]
    pub(crate) subject: Option<String>,
}
