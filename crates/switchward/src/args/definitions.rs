//! The arguments of the commands about definitions and their versions.

use clap::Args;
use std::path::PathBuf;

use super::page::Page;

/// Arguments of `deploy`.
#[derive(Debug, Args)]
pub(crate) struct Deploy {
    /// Definition files, one definition per file, or folders with such files, in any order.
    #[arg(required = true, value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Store the version without activating it.
    #[arg(long)]
    pub(crate) no_activate: bool,
    /// Print what would be deployed, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Arguments of `activate`.
#[derive(Debug, Args)]
pub(crate) struct Activate {
    /// The definition's name.
    pub(crate) definition: String,
    /// The version's number, or `latest`.
    pub(crate) version: String,
}

/// Arguments of `retire`.
#[derive(Debug, Args)]
pub(crate) struct Retire {
    /// The definition's name.
    pub(crate) definition: String,
    /// The version's number, or `latest`.
    pub(crate) version: String,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The definition's name.
    pub(crate) definition: String,
    /// The version before: its number, `active` or `latest`.
    #[arg(default_value = "active")]
    pub(crate) before: String,
    /// The version after: its number, `active` or `latest`.
    #[arg(default_value = "latest", conflicts_with = "file")]
    pub(crate) after: String,
    /// Compare with the definition in this file instead of a version.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Exit with 5 if a control is weaker.
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Arguments of `archive`.
#[derive(Debug, Args)]
pub(crate) struct Archive {
    /// The definition's name.
    pub(crate) definition: String,
}

/// Arguments of `unarchive`.
#[derive(Debug, Args)]
pub(crate) struct Unarchive {
    /// The definition's name.
    pub(crate) definition: String,
}

/// Arguments of `delete`.
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The definition's name.
    pub(crate) definition: String,
    /// The version's number [default: the definition with all versions].
    pub(crate) version: Option<String>,
    /// Check only whether it can be deleted now.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `list definitions`.
#[derive(Debug, Args)]
pub(crate) struct ListDefinitions {
    /// List archived definitions, too.
    #[arg(long)]
    pub(crate) show_archived: bool,
    /// The page.
    #[command(flatten)]
    pub(crate) page: Page,
}
