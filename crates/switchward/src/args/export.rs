//! Arguments of `export`.

use clap::Args;
use std::path::PathBuf;

use super::values::time;

/// Arguments of `export`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchward export --to acme.jsonl
  switchward export --at 2026-01-01T00:00:00Z > acme-2025.jsonl

Needs an admin's key. Prints one record per line, an object with one member: session, event, decision, removal or \
tenantChange. The last line is {\"end\":{\"exportTime\",\"records\"}}; a file without it is incomplete.

With --to, an interrupted export continues when the same command is run again: FILE.resume contains the position, \
and is deleted at the end. An existing file without FILE.resume is not overwritten. `switchward server --restore DIR \
--erasures FILE` repeats the removals that an export contains.")]
pub(crate) struct Export {
    /// Write to this file [default: the standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<PathBuf>,
    /// Export the records as of this time, such as 2026-01-31T12:00:00Z [default: now].
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) at: Option<prost_types::Timestamp>,
}
