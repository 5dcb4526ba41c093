//! What is done with tenants.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

use super::client::Page;

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
    /// Make a tenant and its first admin key, whose secret is shown once.
    #[command(after_help = "\
Examples:
  switchward tenant create acme
  switchward tenant create acme --data-dir /var/lib/switchward

A running server makes a tenant for an admin key of its first tenant. With --data-dir the tenant is made in the data
folder of a stopped server, without any key: this is how a new server gets its first one. Run it as the server's user.")]
    Create(CreateTenant),
    /// Show a tenant and its switches.
    Get(GetTenant),
    /// List the tenants; takes an admin key of the server's first tenant.
    List(Page),
    /// Change the switches of a tenant; a stricter one holds at once, for running sessions too.
    #[command(after_help = "Example:\n  switchward tenant set --default deny")]
    Set(SetTenant),
    /// Show or set the quotas of a tenant; takes an admin key of the server's first tenant.
    #[command(after_help = "\
Examples:
  switchward tenant quotas acme
  switchward tenant quotas acme --sessions 50000 --bytes 5GiB
  switchward tenant quotas acme --requests-per-second default

Without an option it shows the quotas and what is used of them, as `switchward tenant get` does for the key's own tenant.
A value is a number, 0 for no limit, or `default` for what the server's configuration says. What a quota has no room for is
refused with QUOTA_EXCEEDED; nothing is taken away.")]
    Quotas(TenantQuotas),
    /// Delete a tenant with all that it has; takes an admin key of the server's first tenant.
    #[command(after_help = "\
Example:
  switchward tenant delete acme

Its keys open nothing from then on, nothing of it moves on and nothing goes out. Its rows go in the background; its name is
free when the last one is gone. To keep its records, run `switchward export` with a key of it before.")]
    Delete(DeleteTenant),
}

/// What a tool call gets that no rule of a policy matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefaultEffect {
    /// It is allowed.
    Allow,
    /// A person is asked.
    Ask,
    /// It is denied.
    Deny,
}

/// Arguments of `tenant create`.
#[derive(Debug, Args)]
pub(crate) struct CreateTenant {
    /// Its name: 1 to 63 of a-z, 0-9 and -.
    pub(crate) tenant: String,
    /// A name for people.
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// What a tool call gets that no rule of a policy matches.
    #[arg(long = "default", value_name = "EFFECT", value_enum)]
    pub(crate) default_effect: Option<DefaultEffect>,
    /// Let sessions start with another role than their policy's; they run without the policy.
    #[arg(long)]
    pub(crate) allow_foreign_role: bool,
    /// Make it here, in the data folder of a stopped server.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Shards of a new data folder, as `server` takes them.
    #[arg(long, value_name = "NUMBER", requires = "data_dir", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) shards: Option<u32>,
}

/// Arguments of `tenant get`.
#[derive(Debug, Args)]
pub(crate) struct GetTenant {
    /// Its name; it can only be the key's own tenant, which it is without a name.
    #[arg(default_value = "-", hide_default_value = true)]
    pub(crate) tenant: String,
}

/// Arguments of `tenant quotas`.
#[derive(Debug, Args)]
pub(crate) struct TenantQuotas {
    /// Which.
    pub(crate) tenant: String,
    /// Requests per second of all of its keys together, on one server.
    #[arg(long, value_name = "NUMBER", value_parser = super::values::limit)]
    pub(crate) requests_per_second: Option<Limit>,
    /// Sessions that are kept, those that have ended among them.
    #[arg(long, value_name = "NUMBER", value_parser = super::values::limit)]
    pub(crate) sessions: Option<Limit>,
    /// Bytes of the histories of its sessions, like 20GiB.
    #[arg(long, value_name = "BYTES", value_parser = super::values::limit_bytes)]
    pub(crate) bytes: Option<Limit>,
    /// How many times the share of another tenant its share of the server's time is: 1 to 100, or default.
    #[arg(long, value_name = "NUMBER", value_parser = super::values::weight)]
    pub(crate) weight: Option<Weight>,
}

/// A weight that is typed; `None`: the server's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight(pub(crate) Option<u32>);

/// A limit that is typed; `None`: the server's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(pub(crate) Option<u64>);

/// Arguments of `tenant delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteTenant {
    /// Which.
    pub(crate) tenant: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `tenant set`.
#[derive(Debug, Args)]
pub(crate) struct SetTenant {
    /// Its name; it can only be the key's own tenant, which it is without a name.
    #[arg(default_value = "-", hide_default_value = true)]
    pub(crate) tenant: String,
    /// What to change.
    #[command(flatten)]
    pub(crate) switches: Switches,
}

/// The switches of a tenant; one of them at least.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Switches {
    /// What a tool call gets that no rule of a policy matches.
    #[arg(long = "default", value_name = "EFFECT", value_enum)]
    pub(crate) default_effect: Option<DefaultEffect>,
    /// Whether sessions may start with another role than their policy's; they run without the policy.
    #[arg(long, value_name = "true|false")]
    pub(crate) allow_foreign_role: Option<bool>,
    /// Whether approvers and escalation contacts that come from data or from the start are asked although the directory
    /// does not hold them.
    #[arg(long, value_name = "true|false")]
    pub(crate) any_approver_address: Option<bool>,
    /// How decision pages recognise people.
    #[arg(long, value_name = "HOW", value_enum)]
    pub(crate) link_auth: Option<LinkAuth>,
    /// How long a browser stays known to decision pages, like 12h: 10 minutes to 365 days.
    #[arg(long, value_name = "TIME", value_parser = super::values::duration)]
    pub(crate) browser_known: Option<std::time::Duration>,
}

/// How decision pages recognise people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkAuth {
    /// By the link alone: a mail that is passed on passes on the decision.
    Link,
    /// By a code that is mailed to the person.
    Code,
    /// By a sign-in with the OpenID provider of the server's configuration.
    Oidc,
    /// As the server's configuration says.
    Default,
}

/// Arguments of `keys bootstrap`.
#[derive(Debug, Args)]
pub(crate) struct BootstrapKey {
    /// The data folder of the stopped server.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// The tenant that the key opens; needed if there are several.
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// The person or program that will hold it; without it, the key's own id.
    #[arg(long, value_name = "WHO")]
    pub(crate) subject: Option<String>,
}
