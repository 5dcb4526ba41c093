//! Tool calls, and what they have cost.

use clap::Args;

/// A tool call.
#[derive(Debug, Args)]
pub(crate) struct Call {
    /// The session's id or key.
    pub(crate) session: String,
    /// What is called: `bash`, `mcp:filesystem:write_file`.
    pub(crate) capability: String,
    /// The call's arguments: JSON, mostly an object, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// What the call will cost.
    #[arg(long, value_name = "USD")]
    pub(crate) est_cost_usd: Option<String>,
}

/// Arguments of `authorize`.
#[derive(Debug, Args)]
pub(crate) struct Authorize {
    /// The call.
    #[command(flatten)]
    pub(crate) call: Call,
    /// Your own id of the call, unique in the session.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The session's id or key.
    pub(crate) session: String,
    /// What was called: its oldest call that was not reported. Without it and --call-id, the session itself.
    pub(crate) capability: Option<String>,
    /// The call, as it was authorized.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
    /// What it cost.
    #[arg(long, value_name = "USD")]
    pub(crate) cost_usd: Option<String>,
    /// Tokens that it used.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) tokens: u64,
    /// The tool failed; it counts all the same.
    #[arg(long)]
    pub(crate) failed: bool,
}
