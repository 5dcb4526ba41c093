//! Arguments of `decide`.

use clap::{Args, ValueEnum};

/// Arguments of `decide`.
#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The gate, from `switchward list gates`.
    pub(crate) gate: String,
    /// The decision. The words of the formats are accepted too: `resume` for approve, `refuse` and `decline` for
    /// reject.
    #[arg(value_enum)]
    pub(crate) decision: Verdict,
    /// A comment on the decision; required for `discuss`.
    #[arg(long, value_name = "TEXT", required_if_eq("decision", "discuss"))]
    pub(crate) comment: Option<String>,
    /// The answer to a task; a value that is not JSON is a string. Required for `answer`.
    #[arg(long, value_name = "VALUE", required_if_eq("decision", "answer"))]
    pub(crate) answer: Option<String>,
    /// The digest of the arguments that you saw; the decision is refused if the gate's arguments differ.
    #[arg(long, value_name = "SHA256")]
    pub(crate) args_digest: Option<String>,
}

/// The decisions of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verdict {
    /// Approve the request.
    #[value(alias = "resume")]
    Approve,
    /// Reject the request.
    #[value(aliases = ["refuse", "decline"])]
    Reject,
    /// Comment without deciding; the gate stays open.
    Discuss,
    /// Answer a task.
    Answer,
}
