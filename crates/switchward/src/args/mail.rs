//! Arguments of `mail`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::page::Page;
use super::run_of::RunOf;

/// Arguments of `mail`.
#[derive(Debug, Args)]
pub(crate) struct MailArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: MailCommand,
}

/// What can be done with mail.
#[derive(Debug, Subcommand)]
pub(crate) enum MailCommand {
    /// Ingest a received message: replies and bounces are recorded.
    #[command(after_help = "\
Examples:
  switchward mail ingest reply.eml
  switchward mail ingest - --sender lead@example.com --recipient 'r+...@reply.acme.example' < reply.eml

Exits with 4 if the message was quarantined, and with 69 if it must be ingested again later. Ingesting the same \
message twice records one reply.")]
    Ingest(IngestMail),
    /// Send a mail in a session's name, within the limits of its policy.
    #[command(after_help = "\
Examples:
  switchward mail send order-17 --to ann@example.com --subject 'Your order' --text 'It is on its way.'
  switchward mail send order-17 --from bot@example.com --to ann@example.com --cc lead@example.com \\
    --subject Report --text @report.txt

Exits with 6 if the mail is denied, and with 7 if a person must decide; after they approve, send the same mail \
again.")]
    Send(SendMail),
    /// Inspect inbound mail that was not accepted.
    #[command(after_help = "\
Examples:
  switchward mail quarantine list
  switchward mail quarantine show 3f9c0a17b2d84e65a1c0
  switchward mail quarantine show 3f9c0a17b2d84e65a1c0 --raw > mail.eml && switchward mail ingest mail.eml

Operators see the mail that names their tenant; admins of the server's first tenant also see mail that names no \
tenant. A mail is kept for 30 days, or for a shorter time that `switchward retention put` sets, and no longer than \
the session that it names.")]
    Quarantine(QuarantineArgs),
}

/// Arguments of `mail quarantine`.
#[derive(Debug, Args)]
pub(crate) struct QuarantineArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: QuarantineCommand,
}

/// What can be done with quarantined mail.
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List quarantined mail, newest first.
    List(Page),
    /// Show a mail: the reason, the headers and the text (of HTML, the visible text).
    Show(ShowMail),
    /// Delete a mail.
    Delete(DeleteMail),
}

/// Arguments of `mail quarantine show`.
#[derive(Debug, Args)]
pub(crate) struct ShowMail {
    /// The mail's name, from the list.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Print only the original message, byte for byte.
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Arguments of `mail quarantine delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteMail {
    /// The mail's name, from the list.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `mail send`.
#[derive(Debug, Args)]
pub(crate) struct SendMail {
    /// The session's id or key.
    pub(crate) session: String,
    /// The sender, who gets the replies [default: the server's address; replies go to the session].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: Option<String>,
    /// A recipient; can be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: Vec<String>,
    /// A recipient of a copy; can be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cc: Vec<String>,
    /// A recipient of a blind copy; can be repeated.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bcc: Vec<String>,
    /// The subject, one line.
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: String,
    /// The text of the mail, or @FILE.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: String,
    /// Your id for the call, unique in the session.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `mail ingest`.
#[derive(Debug, Args)]
pub(crate) struct IngestMail {
    /// The file of the message, or `-` for the standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The envelope sender (return path), if the transport knows it; empty for the null sender.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) sender: Option<String>,
    /// An envelope recipient; can be repeated.
    #[arg(long = "recipient", value_name = "ADDRESS")]
    pub(crate) recipients: Vec<String>,
}
