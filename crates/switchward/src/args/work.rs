//! Arguments of `work`.

use clap::{Args, Subcommand, ValueEnum};
use std::time::Duration;

use super::values::duration;

/// Arguments of `work`.
#[derive(Debug, Args)]
pub(crate) struct Work {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: WorkCommand,
}

/// What a worker can do.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkCommand {
    /// Take ready work items, oldest first, under a lease.
    #[command(after_help = "\
Examples:
  switchward work poll
  switchward work poll --kind extract,judge --queue refund --max 5 --wait 20s -o jsonl

Exits with 0 also if there is no work. With -o jsonl, prints one item per line.")]
    Poll(PollWork),
    /// Hand in a result.
    #[command(after_help = "\
Examples:
  switchward work complete wrk_... TOKEN --result '{\"order\":\"A-17\"}'
  switchward work complete wrk_... TOKEN --result @result.json --cost-usd 0.02 --tokens 1200
  read-it | switchward work complete wrk_... TOKEN --result -

Exits with 5 if the result is not accepted; the attempt has then failed. Repeating the command has the same result.")]
    Complete(CompleteWork),
    /// Report that the attempt has failed.
    #[command(
        after_help = "Example:\n  switchward work fail wrk_... TOKEN 'the language of the text is not supported'"
    )]
    Fail(FailWork),
    /// Release a work item for other workers; this does not count as an attempt.
    #[command(after_help = "Example:\n  switchward work release wrk_... TOKEN")]
    Release(ReleaseWork),
    /// Extend the lease of a work item.
    #[command(after_help = "Example:\n  switchward work extend wrk_... TOKEN --lease 10m")]
    Extend(ExtendLease),
}

/// Arguments of `work poll`.
#[derive(Debug, Args)]
pub(crate) struct PollWork {
    /// Kinds of work, separated by commas [default: all kinds that the server does not do itself].
    #[arg(long = "kind", value_name = "KIND", value_enum, value_delimiter = ',')]
    pub(crate) kinds: Vec<KindOfWork>,
    /// A definition, or an assistant for the kind intent; can be repeated [default: all].
    #[arg(long = "queue", value_name = "NAME")]
    pub(crate) queues: Vec<String>,
    /// The maximum number of items, 1 to 100.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) max: u32,
    /// How long to wait for work, at most 60s [default: no waiting].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// The length of the lease, 1s to 1h [default: 60s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lease: Option<Duration>,
    /// The worker's id, for the history [default: the subject of its key].
    #[arg(long, value_name = "ID")]
    pub(crate) worker: Option<String>,
}

/// What a worker does with an item, as `WorkKind` of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindOfWork {
    /// Follow instructions.
    Agent,
    /// Extract fields from a text.
    Extract,
    /// Judge whether a condition holds.
    Judge,
    /// Make an HTTP request.
    Http,
    /// Classify a reply that no phrase decides.
    Classify,
    /// Follow instructions as another assistant.
    Delegate,
    /// Determine the workflows that a first message asks for.
    Intent,
    /// Call a tool.
    Tool,
    /// Ask a model once, and answer with JSON.
    Interaction,
    /// Run a script.
    Script,
}

/// A work item under a lease.
#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// The work item, from `work poll`.
    pub(crate) work: String,
    /// The lease token of the work item.
    pub(crate) token: String,
}

/// The usage of an attempt.
#[derive(Debug, Args)]
pub(crate) struct Spent {
    /// The cost.
    #[arg(long, value_name = "USD")]
    pub(crate) cost_usd: Option<String>,
    /// The number of tokens used.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) tokens: u64,
}

/// Arguments of `work complete`.
#[derive(Debug, Args)]
pub(crate) struct CompleteWork {
    /// The work item.
    #[command(flatten)]
    pub(crate) taken: LeaseArgs,
    /// The result: JSON, @FILE, or - for the standard input [default: no result].
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
    /// The transition that the result chooses, one of the item's exits [default: none].
    #[arg(long, value_name = "NAME")]
    pub(crate) next: Option<String>,
    /// The usage.
    #[command(flatten)]
    pub(crate) spent: Spent,
}

/// Arguments of `work fail`.
#[derive(Debug, Args)]
pub(crate) struct FailWork {
    /// The work item.
    #[command(flatten)]
    pub(crate) taken: LeaseArgs,
    /// The reason, for the history.
    pub(crate) message: Option<String>,
    /// The work may have been done nevertheless: the next attempt has the same idempotency key.
    #[arg(long)]
    pub(crate) unknown: bool,
    /// The usage.
    #[command(flatten)]
    pub(crate) spent: Spent,
}

/// Arguments of `work release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseWork {
    /// The work item.
    #[command(flatten)]
    pub(crate) taken: LeaseArgs,
}

/// Arguments of `work extend`.
#[derive(Debug, Args)]
pub(crate) struct ExtendLease {
    /// The work item.
    #[command(flatten)]
    pub(crate) taken: LeaseArgs,
    /// The length of the lease from now, 1s to 1h [default: 60s].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lease: Option<Duration>,
}
