//! Arguments of `authorize`, `explain` and `report`.

use clap::Args;

use super::run_of::RunOf;

/// A tool call.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The session's id or key.
    pub(crate) session: String,
    /// The capability, such as `bash` or `mcp:filesystem:write_file`.
    pub(crate) capability: String,
    /// The arguments of the call: JSON, usually an object, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// The estimated cost of the call.
    #[arg(long, value_name = "USD")]
    pub(crate) est_cost_usd: Option<String>,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `authorize`.
#[derive(Debug, Args)]
pub(crate) struct Authorize {
    /// The call.
    #[command(flatten)]
    pub(crate) call: Call,
    /// Your id for the call, unique in the session.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The session's id or key.
    pub(crate) session: String,
    /// The capability; reports its oldest unreported call. Without CAPABILITY and --call-id, reports usage of the
    /// session.
    pub(crate) capability: Option<String>,
    /// The id of the authorized call.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
    /// The cost.
    #[arg(long, value_name = "USD")]
    pub(crate) cost_usd: Option<String>,
    /// The number of tokens used.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) tokens: u64,
    /// Report that the tool failed; the usage counts nevertheless.
    #[arg(long)]
    pub(crate) failed: bool,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}
