//! Arguments of the commands about gates.

use clap::{Args, Subcommand, ValueEnum};

use super::connection::On;

/// The commands about gates.
#[derive(Debug, Subcommand)]
pub(crate) enum GatesCommand {
    /// Decide a gate: approve, reject, discuss or answer.
    #[command(after_help = "\
Examples:
  switchward list gates
  switchward decide gat_... approve
  switchward decide gat_... reject --comment 'not on a Friday'
  switchward decide gat_... discuss --comment 'what is it for?'    # the gate stays open
  switchward decide gat_... answer --answer 'Five stars'           # a task")]
    Decide(On<Decide>),
    /// Hand a gate to somebody else.
    Gate(On<GateArgs>),
}

impl GatesCommand {
    /// Their names, in the order of the help.
    pub(crate) const NAMES: &[&str] = &["decide", "gate"];
}

/// Arguments of `decide`.
#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// The gate, from `switchward list gates`.
    pub(crate) gate: String,
    /// The decision. The words of the formats are accepted too: `resume` for approve, `refuse` and `decline` for
    /// reject.
    #[arg(value_enum)]
    pub(crate) decision: GateAction,
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
pub(crate) enum GateAction {
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

/// Arguments of `gate`.
#[derive(Debug, Args)]
pub(crate) struct GateArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: GateCommand,
}

/// What can be done with a gate, besides deciding it.
#[derive(Debug, Subcommand)]
pub(crate) enum GateCommand {
    /// Hand an open gate, or one person's part of it, to somebody else.
    ///
    /// An operator or an admin hands over the whole gate, or with --from one person's part. An approver hands over their
    /// own part. The person who gets it is asked by mail; who had it before is informed, and can no longer decide.
    #[command(after_help = "\
Examples:
  switchward gate assign gat_... kim
  switchward gate assign gat_... kim --from dana --comment 'Dana is away'

The requester can neither assign a gate nor get it.")]
    Assign(AssignGate),
}

/// Arguments of `gate assign`.
#[derive(Debug, Args)]
pub(crate) struct AssignGate {
    /// The gate, from `switchward list gates`.
    pub(crate) gate: String,
    /// Who gets it: a name of the directory, or an address that it holds.
    #[arg(value_name = "NAME")]
    pub(crate) to: String,
    /// Whose part is handed over; needed if several must approve.
    #[arg(long, value_name = "NAME")]
    pub(crate) from: Option<String>,
    /// A comment, which is kept with the gate.
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    /// The digest of the arguments that you saw; the call is refused if the gate's arguments differ.
    #[arg(long, value_name = "SHA256")]
    pub(crate) args_digest: Option<String>,
}
