//! The backups that were taken of a data folder: where each was written.

use anyhow::Context as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The list in the data folder, one path a line.
const LIST: &str = "BACKUPS";
/// Paths that are read of it, the newest.
const KNOWN_MAX: usize = 1_000;

/// Notes that a backup was written here.
///
/// # Errors
/// The list cannot be written.
pub(crate) fn note(data: &Path, backup: &Path) -> anyhow::Result<()> {
    let backup = std::path::absolute(backup)?;
    let Some(line) = backup.to_str().filter(|path| !path.contains('\n')) else { return Ok(()) };
    let list = data.join(LIST);
    let file = std::fs::File::options().create(true).append(true).open(&list);
    let written = file.and_then(|mut file| writeln!(file, "{line}"));
    written.with_context(|| format!("failed to write {}", list.display()))
}

/// Where backups of a data folder were written, the newest ones.
pub(crate) fn backups(data: &Path) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(data.join(LIST)).unwrap_or_default();
    let mut paths: Vec<PathBuf> = Vec::new();
    for line in text.lines().rev().filter(|line| !line.is_empty()) {
        let path = PathBuf::from(line);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths.truncate(KNOWN_MAX);
    paths
}
