//! What `switchward check` says of definitions.

/// After the totals: files of the folders, given as their count with a noun, that were not checked.
#[must_use]
pub fn skipped(files: &str) -> String {
    format!("{files} skipped (not a definition)")
}
