//! The page of a list.

use clap::Args;

/// A page of a list.
#[derive(Debug, Clone, Args)]
pub(crate) struct Page {
    /// The maximum number of entries, 0 for all [default: 100; all events and decisions].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) limit: Option<usize>,
    /// Continue a list from this token.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) page_token: Option<String>,
}
