//! What `switchward backup` says of a backup.

use std::fmt::Display;

/// The verdict on the files of a backup that has no damage.
pub const COMPLETE: &str = "complete";

/// The verdict on the files of a backup.
#[must_use]
pub fn damaged(files: usize) -> String {
    format!("{files} damaged")
}

/// A backup was taken, and could not be added to the list of the server's backups.
#[must_use]
pub fn not_noted(error: &impl Display) -> String {
    format!("`switchward secrets status` will not check this backup: {error:#}")
}
