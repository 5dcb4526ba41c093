//! What a worker does.

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

/// What a worker does.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkCommand {
    /// Take work that is ready, oldest first; nobody else gets it until its lease is over.
    #[command(after_help = "\
Examples:
  switchward work poll
  switchward work poll --kind extract,judge --queue refund --max 5 --wait 20s -o jsonl

Ends with 0 where there is no work, too. With -o jsonl, one item a line.")]
    Poll(PollWork),
    /// Hand in a result. Ends with 5 where it is not accepted: the attempt has failed.
    #[command(after_help = "\
Examples:
  switchward work complete wrk_... TOKEN --result '{\"order\":\"A-17\"}'
  switchward work complete wrk_... TOKEN --result @result.json --cost-usd 0.02 --tokens 1200
  read-it | switchward work complete wrk_... TOKEN --result -

The same command again has the same result.")]
    Complete(CompleteWork),
    /// Say that work cannot be done: the attempt has failed.
    #[command(
        after_help = "Example:\n  switchward work fail wrk_... TOKEN 'the text is in no language I know'"
    )]
    Fail(FailWork),
    /// Give work back undone, for another worker to take at once; it is no attempt.
    #[command(after_help = "Example:\n  switchward work release wrk_... TOKEN")]
    Release(ReleaseWork),
    /// Keep work for longer.
    #[command(after_help = "Example:\n  switchward work extend wrk_... TOKEN --lease 10m")]
    Extend(ExtendLease),
}

/// Arguments of `work poll`.
#[derive(Debug, Args)]
pub(crate) struct PollWork {
    /// Kinds of work, separated by commas; without it, all but those that the server does by itself.
    #[arg(long = "kind", value_name = "KIND", value_enum, value_delimiter = ',')]
    pub(crate) kinds: Vec<KindOfWork>,
    /// A definition whose work is wanted, or an assistant's for the kind intent; may be said again; without it, all.
    #[arg(long = "queue", value_name = "NAME")]
    pub(crate) queues: Vec<String>,
    /// Items at most, 1 to 100.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) max: u32,
    /// How long to wait where there is none, at most 60s; without it, not at all.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// How long the work is yours without another word, 1s to 1h; without it, 60s.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lease: Option<Duration>,
    /// How the worker calls itself, for the history; without it, by the subject of its key.
    #[arg(long, value_name = "ID")]
    pub(crate) worker: Option<String>,
}

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KindOfWork {
    /// Do what the instructions say.
    Agent,
    /// Read fields out of a text.
    Extract,
    /// Judge whether something holds.
    Judge,
    /// Make an HTTP request.
    Http,
    /// Saying what a reply means that no phrase decides.
    Classify,
    /// Do what the instructions say as another assistant.
    Delegate,
    /// Saying which workflows a first message means.
    Intent,
}

/// Work that was taken.
#[derive(Debug, Args)]
pub(crate) struct Taken {
    /// The work, as `work poll` names it.
    pub(crate) work: String,
    /// The lease token that came with it.
    pub(crate) token: String,
}

/// What work has cost.
#[derive(Debug, Args)]
pub(crate) struct Spent {
    /// What it cost.
    #[arg(long, value_name = "USD")]
    pub(crate) cost_usd: Option<String>,
    /// Tokens that it used.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(crate) tokens: u64,
}

/// Arguments of `work complete`.
#[derive(Debug, Args)]
pub(crate) struct CompleteWork {
    /// The work.
    #[command(flatten)]
    pub(crate) taken: Taken,
    /// What came of it: a JSON object, @FILE, or - for the standard input; without it, nothing.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) result: Option<String>,
    /// What it cost.
    #[command(flatten)]
    pub(crate) spent: Spent,
}

/// Arguments of `work fail`.
#[derive(Debug, Args)]
pub(crate) struct FailWork {
    /// The work.
    #[command(flatten)]
    pub(crate) taken: Taken,
    /// Why, for the history.
    pub(crate) message: Option<String>,
    /// It may have been done all the same: the next attempt has the same idempotency key.
    #[arg(long)]
    pub(crate) unknown: bool,
    /// What it cost.
    #[command(flatten)]
    pub(crate) spent: Spent,
}

/// Arguments of `work release`.
#[derive(Debug, Args)]
pub(crate) struct ReleaseWork {
    /// The work.
    #[command(flatten)]
    pub(crate) taken: Taken,
}

/// Arguments of `work extend`.
#[derive(Debug, Args)]
pub(crate) struct ExtendLease {
    /// The work.
    #[command(flatten)]
    pub(crate) taken: Taken,
    /// How long from now, 1s to 1h; without it, 60s.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lease: Option<Duration>,
}
