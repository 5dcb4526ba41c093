//! What is done with data that has ended.

use clap::{Args, Subcommand};

/// Arguments of `session`.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: SessionCommand,
}

/// What can be done with a session that has ended.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Delete a session that has ended, with its history and its data. What it used of rates and budgets stays counted.
    #[command(after_help = "Example:\n  switchward session delete release-42")]
    Delete(EndSession),
    /// Erase what a session that has ended holds. What remains is when it ran, what it used, and who decided what.
    #[command(after_help = "Example:\n  switchward session erase release-42")]
    Erase(EndSession),
}

/// One session, for good.
#[derive(Debug, Args)]
pub(crate) struct EndSession {
    /// Its id or its key.
    pub(crate) session: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `retention`.
#[derive(Debug, Args)]
pub(crate) struct RetentionArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: RetentionCommand,
}

/// What can be done with the rules of what is kept.
#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// Set all rules, from a JSON file: {"rules": [{"ended_sessions": "400d"}, {"definition": "survey", "history": "30d"}]}.
    #[command(after_help = "\
Example:
  switchward retention put retention.json --yes

The rules hold at once, also for sessions that have ended before: what is past them is removed for good. The shortest time
is 60s. A session that still has something to send stays until that has arrived or is a dead letter.

Without a definition, a rule holds for all that have none of their own. ended_sessions, history and decisions are times
after a session's end, like 90s, 36h or 400d; what is left out is kept for good. Who decided what outlives a session that
has expired until `decisions` is over. quarantine is a time after a mail came that was not taken, in the rule without a
definition alone: {\"rules\": [{\"quarantine\": \"7d\"}]}. Left out, it is 30d, which is also the longest; the mail of a session
that is erased or deleted goes with it.")]
    Put(PutRetention),
    /// Show them.
    Get,
}

/// Arguments of `retention put`.
#[derive(Debug, Args)]
pub(crate) struct PutRetention {
    /// The file; - reads from stdin.
    pub(crate) file: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
