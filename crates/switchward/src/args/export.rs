//! Exports of a tenant.

use clap::Args;
use std::path::PathBuf;

use super::values::time;

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchward export --to acme.jsonl
  switchward export --at 2026-01-01T00:00:00Z > acme-2025.jsonl

Needs an admin's key. One record a line, an object with one member: session, event, decision,
removal or tenantChange. The last line is {\"end\":{\"exportTime\",\"records\"}}; a file without it is
not whole.

With --to, the same command goes on where it was interrupted: FILE.resume says where that is, and is
gone at the end. A file that is there without it is left alone. `switchward server --restore DIR
--erasures FILE` repeats the removals that a file holds.")]
pub(crate) struct Export {
    /// Write to this file; without it, to the standard output.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Only what was so at this time, like 2026-01-31T12:00:00Z; without it, now.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) at: Option<prost_types::Timestamp>,
}
