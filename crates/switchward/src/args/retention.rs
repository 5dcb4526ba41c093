//! Arguments of `session` and `retention`.

use clap::{Args, Subcommand};

/// Arguments of `session`.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: SessionCommand,
}

/// What can be done with an ended session.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// Delete an ended session with its history and data; its use of rates and budgets stays counted.
    #[command(after_help = "Example:\n  switchward session delete release-42")]
    Delete(EndSession),
    /// Erase the content of an ended session; its times, usage and decisions remain.
    #[command(after_help = "Example:\n  switchward session erase release-42")]
    Erase(EndSession),
}

/// What `switchward delete` and `switchward erase` take.
#[derive(Debug, Args)]
pub(crate) struct EndSession {
    /// The session's id or key.
    pub(crate) session: String,
    /// Do not ask for confirmation.
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

/// What can be done with the retention rules.
#[derive(Debug, Subcommand)]
pub(crate) enum RetentionCommand {
    /// Replace the retention rules with a JSON file.
    #[command(after_help = "\
Example:
  switchward retention put retention.json --yes

The file:
  {\"rules\": [{\"ended_sessions\": \"400d\"}, {\"definition\": \"survey\", \"history\": \"30d\"}]}

The rules apply at once, also to sessions that have ended before: what they do not keep is removed and cannot be \
restored. The shortest time is 60s. A session with undelivered effects is kept until they are delivered or dead \
letters.

A rule without a definition applies to all definitions without a rule of their own. ended_sessions, history and \
decisions are times after the end of a session, such as 90s, 36h or 400d; what has no time is kept forever. The \
decisions of an expired session are kept until their own time ends. quarantine is a time after a mail was received \
that was not accepted; only the rule without a definition can set it: {\"rules\": [{\"quarantine\": \"7d\"}]}. The \
default and longest value is 30d. The mail of a session that is erased or deleted is removed with the session.")]
    Put(PutRetention),
    /// Show the rules.
    Get,
}

/// Arguments of `retention put`.
#[derive(Debug, Args)]
pub(crate) struct PutRetention {
    /// The file, or `-` for the standard input.
    pub(crate) file: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}
