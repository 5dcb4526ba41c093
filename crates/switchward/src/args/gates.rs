//! What a person says at a gate.

use clap::{Args, ValueEnum};

/// Arguments of `decide`.
#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The gate, as `switchward list gates` names it.
    pub(crate) gate: String,
    /// The decision; the words of formats are taken too: `resume` for approve, `refuse` and `decline` for reject.
    #[arg(value_enum)]
    pub(crate) decision: Verdict,
    /// Kept beside the decision; `discuss` needs it.
    #[arg(long, value_name = "TEXT", required_if_eq("decision", "discuss"))]
    pub(crate) comment: Option<String>,
    /// What is answered; a value that is no JSON is a text. `answer` needs it.
    #[arg(long, value_name = "VALUE", required_if_eq("decision", "answer"))]
    pub(crate) answer: Option<String>,
    /// Digest of what you were shown; refused where the gate is about something else.
    #[arg(long, value_name = "SHA256")]
    pub(crate) args_digest: Option<String>,
}

/// What a person can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verdict {
    /// It may go on.
    #[value(alias = "resume")]
    Approve,
    /// It may not.
    #[value(aliases = ["refuse", "decline"])]
    Reject,
    /// Neither: it is talked about, and stays open.
    Discuss,
    /// Here is what was asked for: of a part of a task.
    Answer,
}
