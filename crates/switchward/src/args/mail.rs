//! What is done with mail.

use clap::{Args, Subcommand};
use std::path::PathBuf;

use super::client::Page;

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
    /// Bring a message that came in, as it came: a reply is recorded, a bounce is told.
    #[command(after_help = "\
Examples:
  switchward mail ingest reply.eml
  switchward mail ingest - --sender lead@example.com --recipient 'r+...@reply.acme.example' < reply.eml

Ends with 4 where the message went into quarantine, and with 69 where it is to be brought again. The same message twice is
one reply.")]
    Ingest(IngestMail),
    /// Send a mail in a session's name, as far as its process lets it.
    #[command(after_help = "\
Examples:
  switchward mail send order-17 --to ann@example.com --subject 'Your order' --text 'It is on its way.'
  switchward mail send order-17 --from bot@example.com --to ann@example.com --cc lead@example.com \\
    --subject Report --text @report.txt

Ends with 6 where it is denied, and with 7 where a person is asked first: then send the same again once it is approved.")]
    Send(SendMail),
    /// Look at mail that came in and was not taken.
    #[command(after_help = "\
Examples:
  switchward mail quarantine list
  switchward mail quarantine show 3f9c0a17b2d84e65a1c0
  switchward mail quarantine show 3f9c0a17b2d84e65a1c0 --raw > mail.eml && switchward mail ingest mail.eml

Each server keeps what came in by itself: in a cluster, ask each with --address. A tenant's operators see what names the
tenant; what names none is shown to admins of the server's first tenant. A mail is kept for 30 days, or for a shorter time
that `switchward retention put` sets, and no longer than the session that it names.")]
    Quarantine(QuarantineArgs),
}

/// Arguments of `mail quarantine`.
#[derive(Debug, Args)]
pub(crate) struct QuarantineArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) what: QuarantineCommand,
}

/// What can be done with mail that was not taken.
#[derive(Debug, Subcommand)]
pub(crate) enum QuarantineCommand {
    /// List it, the newest first.
    List(Page),
    /// Show one mail: why it was not taken, its headers and its text. Of HTML the visible words are shown.
    Show(ShowMail),
    /// Delete one mail.
    Delete(DeleteMail),
}

/// Arguments of `mail quarantine show`.
#[derive(Debug, Args)]
pub(crate) struct ShowMail {
    /// Its name, as the list has it.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Write the message as it came, byte for byte, and nothing else.
    #[arg(long)]
    pub(crate) raw: bool,
}

/// Arguments of `mail quarantine delete`.
#[derive(Debug, Args)]
pub(crate) struct DeleteMail {
    /// Its name, as the list has it.
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Do not ask whether you mean it.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `mail send`.
#[derive(Debug, Args)]
pub(crate) struct SendMail {
    /// The session's id or key.
    pub(crate) session: String,
    /// Who sends it, and gets the replies; without it the server's own address, and replies come to the session.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) from: Option<String>,
    /// To whom; may be said again.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: Vec<String>,
    /// Who gets a copy; may be said again.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cc: Vec<String>,
    /// Who gets a copy that nobody sees; may be said again.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bcc: Vec<String>,
    /// One line.
    #[arg(long, value_name = "TEXT")]
    pub(crate) subject: String,
    /// What it says, or @FILE.
    #[arg(long, value_name = "TEXT")]
    pub(crate) text: String,
    /// Your own id of the call, unique in the session.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
}

/// Arguments of `mail ingest`.
#[derive(Debug, Args)]
pub(crate) struct IngestMail {
    /// The message, or `-` for the standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The address that bounces go to, where the transport knew it; empty for the null sender.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) sender: Option<String>,
    /// An address that the message was delivered to; may be said again.
    #[arg(long = "recipient", value_name = "ADDRESS")]
    pub(crate) recipients: Vec<String>,
}
