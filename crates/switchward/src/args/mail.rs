//! What is done with mail.

use clap::{Args, Subcommand};
use std::path::PathBuf;

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
