//! Arguments of `docs` and `man`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `docs`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchward docs
  switchward docs cli | less

Without PAGE, lists the pages and their titles. With PAGE, prints the page as Markdown. The pages are part of this \
program and match its version; no network is needed. With -o json, prints {\"pages\":[{\"name\",\"title\"}]}, or \
{\"name\",\"title\",\"text\"} of one page.")]
pub(crate) struct DocsArgs {
    /// The name of a page.
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<String>,
    /// Print docs/cli.md, generated from the description of the command line.
    #[arg(long, hide = true, conflicts_with = "page")]
    pub(crate) generate_cli: bool,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  switchward man | man -l -
  switchward man --dir ~/.local/share/man/man1

Without --dir, prints the page of the program. With --dir, writes switchward.1 and a page for every command, such as \
switchward-endpoint-put.1.")]
pub(crate) struct ManArgs {
    /// Write all pages into this folder, which is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
